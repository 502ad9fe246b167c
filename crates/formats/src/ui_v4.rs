//! `format=ui-v4`: messages as version 4 of the AI SDK shows them, with annotations for the state of
//! each call and each message.
//!
//! An answer is one message however many steps it took: the texts and calls of its steps are annotations of
//! the final text (`content`), as is the message's own annotation. An answer without a final text, because it
//! still runs or was cut off, is a placeholder with empty content, under the same id. Everything without a part
//! of its own is an annotation too, as data part of `format=ui`; sources and files of imported messages are parts
//! again. Discarded texts and the actions of sub-agents are left out.

pub(crate) mod import;
mod incoming;
mod stream;

use serde_json::{Value, json};
use transcript::{
    Call, CallState, Content, Decision, Link, Message, MessageRole, Millis, Part, PartKind,
    RunMessage, RunStatus, TextRole, UserMessage, Validation,
};

pub use import::{import, import_rows};
pub use incoming::request;
pub use stream::{MARKER_HEADER, Stream};

use crate::call;
use crate::ui::{self, FileUrl};

#[cfg(test)]
mod tests;

/// Converts a message of the transcript to one of AI SDK 4; `None` for events outside any run.
pub fn message(message: &Message, file_url: FileUrl<'_>) -> Option<Value> {
    let created_at = match &message.content {
        Content::Run(answer) => answered_at(answer).unwrap_or(message.created_at),
        Content::User(_) | Content::Aside(_) => message.created_at,
    };
    let mut value = match &message.content {
        Content::User(input) => input_message(input, file_url),
        Content::Run(answer) => json!({
            "id": answer.id,
            "role": "assistant",
            "content": answer.content(),
            "parts": parts(answer),
            "annotations": annotations(answer),
        }),
        Content::Aside(_) => return None,
    };
    value["createdAt"] = json!(created_at);
    Some(value)
}

/// Returns the time of a run's final text or, if it has none, of its last part. `None` if it has no
/// parts.
fn answered_at(answer: &RunMessage) -> Option<Millis> {
    let is_final = |part: &&Part| match &part.kind {
        PartKind::Text(text) => text.role == TextRole::Final && !text.leaked,
        _ => false,
    };
    let mut outer = answer.parts.iter().filter(|part| part.parent.is_none()).rev();
    let last = match has_final_text(answer) {
        true => outer.find(is_final),
        false => outer.next(),
    };
    last.map(|part| part.started_at)
}

/// Returns the index at which the last page of `limit` messages begins; `None` if there are fewer.
/// Only user messages and runs with a final text count, so that tool calls between two answers do
/// not change the pages.
pub fn page_start(messages: &[&Message], limit: usize) -> Option<usize> {
    let counts = |message: &Message| match &message.content {
        Content::User(input) => input.role == MessageRole::User,
        Content::Run(answer) => has_final_text(answer),
        Content::Aside(_) => false,
    };
    let mut counted = messages.iter().enumerate().rev().filter(|(_, message)| counts(message));
    counted.nth(limit.checked_sub(1)?).map(|(idx, _)| idx)
}

fn input_message(input: &UserMessage, file_url: FileUrl<'_>) -> Value {
    let role = match input.role {
        MessageRole::User => "user",
        MessageRole::System => "system",
    };
    let mut value = json!({
        "id": input.id,
        "role": role,
        "content": input.text,
        "parts": [{ "type": "text", "text": input.text }],
    });
    let files = input.attachments.iter().map(
        |file| json!({ "name": file.name, "contentType": file.media_type, "url": file_url(file) }),
    );
    let links = input.links().map(|Link { url, media_type, name }| match name {
        Some(name) => json!({ "name": name, "contentType": media_type, "url": url }),
        None => json!({ "contentType": media_type, "url": url }),
    });
    let attached: Vec<Value> = files.chain(links).collect();
    if !attached.is_empty() {
        value["experimental_attachments"] = Value::Array(attached);
    }
    value
}

fn parts(answer: &RunMessage) -> Vec<Value> {
    let outer = answer.parts.iter().filter(|part| part.parent.is_none());
    let parts = outer.filter_map(|part| match &part.kind {
        PartKind::Text(text) if text.role != TextRole::Discarded && !text.text.is_empty() => {
            Some(json!({ "type": "text", "text": text.text }))
        }
        PartKind::Thinking(it) if !it.discarded && !it.text.is_empty() => Some(json!({
            "type": "reasoning",
            "reasoning": it.text,
            "details": [{ "type": "text", "text": it.text }],
        })),
        PartKind::Call(call) => {
            Some(json!({ "type": "tool-invocation", "toolInvocation": invocation(call) }))
        }
        kind => foreign_part(kind),
    });
    parts.collect()
}

/// Returns an imported source or file unchanged; `None` for other parts.
fn foreign_part(kind: &PartKind) -> Option<Value> {
    let PartKind::Unrecognized { source, raw, .. } = kind else { return None };
    let part: Value = serde_json::from_str(raw).ok().filter(|_| source == ui::foreign::SOURCE)?;
    let is_text = |name: &str| part[name].is_string();
    let is_taken = match part["type"].as_str()? {
        "source" => part["source"].is_object(),
        "file" => is_text("mimeType") && is_text("data"),
        _ => false,
    };
    is_taken.then_some(part)
}

fn invocation(call: &Call) -> Value {
    let mut invocation = json!({ "toolCallId": call.id, "toolName": call.label() });
    if call.arguments_done || call.outcome.is_some() {
        invocation["args"] = call::input_object(call);
    }
    let state = match &call.outcome {
        Some(_) => {
            invocation["result"] = result(call);
            "result"
        }
        None if call.arguments_done => "call",
        None => "partial-call",
    };
    invocation["state"] = json!(state);
    invocation
}

/// Returns the result of a tool call. AI SDK 4 has no failed calls, so an error is a result with
/// the field `error`.
fn result(call: &Call) -> Value {
    let Some(text) = call::error_text(call) else { return call::output(call) };
    let error = call.outcome.as_ref().and_then(|it| it.error.as_ref());
    let code = error.map_or("tool_failed", |it| it.code.as_str());
    json!({ "error": { "code": code, "message": text } })
}

fn annotations(answer: &RunMessage) -> Vec<Value> {
    let outer = answer.parts.iter().filter(|part| part.parent.is_none());
    let of_parts = outer.enumerate().filter_map(|(idx, part)| match &part.kind {
        PartKind::Text(_) | PartKind::Thinking(_) => None,
        PartKind::Call(call) => Some(tool_annotation(call)),
        kind => foreign_part(kind).is_none().then(|| ui::data(&answer.id, idx, kind)),
    });
    of_parts.chain(message_annotation(answer)).collect()
}

fn tool_annotation(call: &Call) -> Value {
    json!({
        "toolCallId": call.id,
        "validated": validated(call),
        "isComplete": call.outcome.is_some() && call.state != CallState::Interrupted,
        "toolState": call.state,
    })
}

fn validated(call: &Call) -> &'static str {
    let decision = call::resolution(call).map(|it| it.decision);
    match (call.validation, decision) {
        (_, Some(Decision::Accepted)) => "accepted",
        (_, Some(Decision::Rejected | Decision::TimedOut | Decision::Withdrawn)) => "rejected",
        (Some(Validation::Pending), None) => "pending",
        (_, None) if call.waits_for_approval() => "pending",
        (Some(Validation::NotRequired) | None, None) => "not_required",
    }
}

/// Returns the annotation of a run's message; `None` if the run has no final text, because its
/// message is a placeholder then.
fn message_annotation(answer: &RunMessage) -> Option<Value> {
    let completed =
        answer.finish.as_ref().is_some_and(|finish| finish.status == RunStatus::Completed);
    has_final_text(answer).then(|| json!({ "messageId": answer.id, "isComplete": completed }))
}

fn has_final_text(answer: &RunMessage) -> bool {
    !answer.content().trim().is_empty()
}
