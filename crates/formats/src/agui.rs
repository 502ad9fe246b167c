//! AG-UI: a run as its events (`stream.rs`), the messages that its clients make of them, requests
//! (`incoming.rs`) and import (`import.rs`).
//!
//! Only the parts of the protocol that versions 0.0.45, 0.0.59 and 1.0 all accept are used. Calls are in the
//! assistant message with the text that led to them. Everything without a message of its own is a `CUSTOM` event
//! and is not stored: steered messages, exchanges, notices. Discarded texts stay, and the actions of sub-agents
//! are left out.

pub(crate) mod import;
mod incoming;
mod snapshot;
mod stream;

use serde_json::{Value, json};
use transcript::{Call, Content, Message, MessageRole, PartKind, RunMessage, Seq, UserMessage};

pub use import::import;
pub use incoming::{Request, earlier, request};
pub use snapshot::snapshots;
pub use stream::Stream;

use crate::call;
use crate::ui::FileUrl;

#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, reason = "tests call it")]
pub mod testing;
#[cfg(test)]
mod tests;

/// Version of the AG-UI protocol that a client speaks. The versions differ in the form of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// AG-UI 0.0.x, in which a file is a content part of the type `binary`.
    V0,
    /// AG-UI from 1.0, in which the type of a file is `image`, `audio`, `video` or `document`.
    V1,
}

/// Converts a message of the transcript to the AG-UI messages that a client has for it.
pub fn messages(message: &Message, version: Version, file_url: FileUrl<'_>) -> Vec<Value> {
    match &message.content {
        Content::User(input) => vec![input_message(input, version, file_url)],
        Content::Run(answer) => answer_messages(answer),
        Content::Aside(_) => Vec::new(),
    }
}

/// Converts a user or system message to AG-UI. Its id is the client's, if the client gave one.
fn input_message(input: &UserMessage, version: Version, file_url: FileUrl<'_>) -> Value {
    let role = match input.role {
        MessageRole::User => "user",
        MessageRole::System => "system",
    };
    let id = input.client_id.as_ref().map_or(input.id.as_str(), |it| it.as_str());
    let attached = input
        .attachments
        .iter()
        .map(|file| file_piece(&file.media_type, Some(&file.name), version, &file_url(file)));
    let links = input.links().map(|it| file_piece(it.media_type, it.name, version, it.url));
    let files: Vec<Value> = attached.chain(links).collect();
    let content = match input.role {
        MessageRole::User if !files.is_empty() => {
            let text = Some(&input.text).filter(|it| !it.is_empty());
            let text = text.map(|it| json!({ "type": "text", "text": it }));
            text.into_iter().chain(files).collect()
        }
        MessageRole::User | MessageRole::System => json!(input.text),
    };
    json!({ "id": id, "role": role, "content": content })
}

fn file_piece(media_type: &str, name: Option<&str>, version: Version, url: &str) -> Value {
    if version == Version::V0 {
        let mut piece = json!({ "type": "binary", "mimeType": media_type, "url": url });
        if let Some(name) = name {
            piece["filename"] = json!(name);
        }
        return piece;
    }
    let kind = media_type.split('/').next();
    let kind = kind.filter(|it| ["image", "audio", "video"].contains(it)).unwrap_or("document");
    let source = json!({ "type": "url", "value": url, "mimeType": media_type });
    let mut piece = json!({ "type": kind, "source": source });
    if let Some(name) = name {
        piece["metadata"] = json!({ "filename": name });
    }
    piece
}

fn answer_messages(answer: &RunMessage) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    let mut parents = Parents::default();
    let mut step = None;
    for part in answer.parts.iter().filter(|part| part.parent.is_none()) {
        if part.step != step {
            step = part.step;
            parents.start_anew();
        }
        match &part.kind {
            PartKind::Text(text) => {
                parents.start_text(text.id.as_str());
                let message = json!({ "id": text.id, "role": "assistant", "content": text.text });
                messages.push(message);
            }
            PartKind::Thinking(it) => {
                parents.start_anew();
                messages.push(json!({ "id": it.id, "role": "reasoning", "content": it.text }));
            }
            PartKind::Call(call) => {
                let parent = parents.of_call(call);
                let known = messages.iter().position(|it| it["id"] == parent);
                let idx = known.unwrap_or_else(|| {
                    messages.push(json!({ "id": parent, "role": "assistant" }));
                    messages.len() - 1
                });
                add_call(&mut messages[idx], call);
            }
            PartKind::Steered(_)
            | PartKind::Exchange(_)
            | PartKind::Notice { .. }
            | PartKind::Unrecognized { .. } => (),
        }
    }
    with_results(messages, answer)
}

fn add_call(message: &mut Value, call: &Call) {
    let arguments = call::text_of(&call.arguments);
    let function = json!({ "name": call.label(), "arguments": arguments });
    let call = json!({ "id": call.id, "type": "function", "function": function });
    match message.get_mut("toolCalls").and_then(Value::as_array_mut) {
        Some(calls) => calls.push(call),
        None => message["toolCalls"] = json!([call]),
    }
}

/// Inserts the tool results after the messages with their calls, in the order in which the calls
/// ended.
fn with_results(messages: Vec<Value>, answer: &RunMessage) -> Vec<Value> {
    let mut ended: Vec<(Seq, &Call)> =
        answer.calls().filter_map(|it| Some((it.outcome.as_ref()?.seq, it))).collect();
    ended.sort_by_key(|(seq, _)| *seq);
    let results = |message: &Value| -> Vec<Value> {
        let calls = message["toolCalls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_of_it = |id: &str| calls.iter().any(|call| call["id"] == id);
        let ended = ended.iter().filter(|(_, call)| is_of_it(call.id.as_str()));
        ended.map(|(_, call)| result_message(call)).collect()
    };
    let followed = messages.into_iter().flat_map(|message| {
        let results = results(&message);
        std::iter::once(message).chain(results)
    });
    followed.collect()
}

fn result_message(call: &Call) -> Value {
    json!({
        "id": result_id(call),
        "role": "tool",
        "toolCallId": call.id,
        "content": result_text(call),
    })
}

fn result_id(call: &Call) -> String {
    format!("result_{}", call.id)
}

/// Returns the text of a tool call's result. AG-UI has no field for errors, so an error becomes the
/// JSON text `{"error": ...}`.
fn result_text(call: &Call) -> String {
    match (call::error_text(call), call::output(call)) {
        (Some(error), _) => json!({ "error": error }).to_string(),
        (None, Value::String(text)) => text,
        (None, Value::Null) => String::new(),
        (None, value) => value.to_string(),
    }
}

fn interrupt_id(call: &Call) -> String {
    format!("approval_{}", call.id)
}

/// Chooses the assistant message for a tool call: the one with the last text or call, unless a new
/// step or thinking came in between. Then the call begins a message of its own.
#[derive(Debug, Default)]
struct Parents {
    last: Option<String>,
}

impl Parents {
    fn start_anew(&mut self) {
        self.last = None;
    }

    fn start_text(&mut self, id: &str) {
        self.last = Some(id.to_owned());
    }

    fn of_call(&mut self, call: &Call) -> String {
        self.last.get_or_insert_with(|| call.id.to_string()).clone()
    }
}
