//! AG-UI: a run as its events (`stream.rs`), as the messages that its clients make of them, in and out
//! (`import.rs`), and what they send (`incoming.rs`).
//!
//! Only what versions 0.0.45, 0.0.59 and 1.0 all take is said. Calls stand in the assistant message
//! with the words that led to them. What that vocabulary has no message for is a `CUSTOM` event and is
//! not kept: steered messages, exchanges, notices. Texts that were taken back stay, and what sub-agents
//! did is left out.

pub(crate) mod import;
mod incoming;
mod stream;

use serde_json::{Value, json};
use transcript::{Answer, Call, Content, Message, PartKind, SaidBy};

pub use import::import;
pub use incoming::{Request, request};
pub use stream::Stream;

use crate::call;

#[cfg(test)]
mod tests;

/// The messages that one of the transcript's becomes, as a snapshot has them.
pub fn messages(message: &Message) -> Vec<Value> {
    match &message.content {
        Content::Said(said) => {
            let role = match said.role {
                SaidBy::User => "user",
                SaidBy::System => "system",
            };
            vec![json!({ "id": said.id, "role": role, "content": said.text })]
        }
        Content::Answer(answer) => answer_messages(answer),
        Content::Aside(_) => Vec::new(),
    }
}

fn answer_messages(answer: &Answer) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    let mut parents = Parents::default();
    let mut step = None;
    for part in answer.parts.iter().filter(|part| part.parent.is_none()) {
        if part.step != step {
            step = part.step;
            parents.start_step();
        }
        match &part.kind {
            PartKind::Text(text) => {
                parents.start_text(text.id.as_str());
                let message = json!({ "id": text.id, "role": "assistant", "content": text.text });
                messages.push(message);
            }
            PartKind::Thinking(it) => {
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
            _ => (),
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

/// Results follow the message that made the calls.
fn with_results(messages: Vec<Value>, answer: &Answer) -> Vec<Value> {
    let results = |message: &Value| -> Vec<Value> {
        let calls = message["toolCalls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ids = calls.iter().filter_map(|call| call["id"].as_str());
        let calls = ids.filter_map(|id| answer.calls().find(|call| call.id.as_str() == id));
        calls.filter(|call| call.outcome.is_some()).map(result_message).collect()
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

/// Errors have no field of their own on the way, so the text says it.
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

/// Which message a call goes into: the last text of its step, else one that the step's first call
/// begins.
#[derive(Debug, Default)]
struct Parents {
    of_step: Option<String>,
}

impl Parents {
    fn start_step(&mut self) {
        self.of_step = None;
    }

    fn start_text(&mut self, id: &str) {
        self.of_step = Some(id.to_owned());
    }

    fn of_call(&mut self, call: &Call) -> String {
        self.of_step.get_or_insert_with(|| call.id.to_string()).clone()
    }
}
