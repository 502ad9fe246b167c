//! Chat messages as a database keeps them: like those of the API, with the calls as a JSON text under
//! `toolCalls`; and the reading of both.
//!
//! Each step is a message of its own, followed by its results. Not contained: how a run ended,
//! durations, approvals, discarded texts, actions of sub-agents.

use serde_json::{Value, json};
use transcript::{
    Call, Content, Message, MessageRole, Part, PartKind, RunMessage, RunStatus, SteerState,
    TextRole,
};

use crate::call;
use crate::follow::step_number;
use crate::import::{
    CallResult, Ending, Entry, Holds, List, LogBuilder, Setting, arguments_text, as_text,
    error_info, items, result_of, step_id,
};

use super::incoming::content;

/// Source of the `unrecognized` event that keeps a malformed list of tool calls, which is exported
/// unchanged.
const SOURCE: &str = "toolCalls";

/// Converts a message of the transcript to chat messages of `format=openai-stored`.
pub fn stored(message: &Message) -> Vec<Value> {
    match &message.content {
        Content::User(user) => {
            let role = match user.role {
                MessageRole::User => "user",
                MessageRole::System => "system",
            };
            let at = message.created_at.0;
            vec![json!({ "id": user.id, "role": role, "content": user.text, "timestamp": at })]
        }
        Content::Run(answer) => stored_answer(answer),
        Content::Aside(_) => Vec::new(),
    }
}

fn stored_answer(answer: &RunMessage) -> Vec<Value> {
    let outer: Vec<&Part> = answer.parts.iter().filter(|part| part.parent.is_none()).collect();
    let n_steps = answer.steps.iter().filter(|step| step.parent.is_none()).count();
    let n_steps = n_steps.max(usize::from(!outer.is_empty()));
    let mut messages = Vec::new();
    for number in 1..=n_steps {
        let parts: Vec<&Part> =
            outer.iter().filter(|part| step_number(answer, part) == number).copied().collect();
        messages.extend(stored_step(answer, number, &parts));
        messages.extend(parts.iter().filter_map(|part| match &part.kind {
            PartKind::Call(call) => stored_result(call),
            _ => None,
        }));
        messages.extend(parts.iter().filter_map(|part| match &part.kind {
            // A returned message is sent again later, as a message of its own.
            PartKind::Steered(it) if it.state != SteerState::Returned => {
                let at = part.started_at.0;
                Some(json!({ "id": it.id, "role": "user", "content": it.text, "timestamp": at }))
            }
            _ => None,
        }));
    }
    messages
}

/// Returns the assistant message of a step; `None` if the step has no text, thinking or tool calls.
fn stored_step(answer: &RunMessage, number: usize, parts: &[&Part]) -> Option<Value> {
    let mut outer = answer.steps.iter().filter(|step| step.parent.is_none());
    let at = outer.nth(number - 1).map_or(answer.started_at, |step| step.started_at);
    let texts = parts.iter().filter_map(|part| match &part.kind {
        PartKind::Text(text) if text.role != TextRole::Discarded && !text.leaked => {
            Some(text.text.as_str())
        }
        _ => None,
    });
    let thinking = parts.iter().filter_map(|part| match &part.kind {
        PartKind::Thinking(it) if !it.discarded => Some(it.text.as_str()),
        _ => None,
    });
    let calls = parts.iter().filter_map(|part| match &part.kind {
        PartKind::Call(call) => Some(stored_call(call)),
        _ => None,
    });
    let malformed = parts.iter().find_map(|part| match &part.kind {
        PartKind::Unrecognized { source, raw, .. } if source == SOURCE => Some(raw.clone()),
        _ => None,
    });
    let (texts, thinking) = (joined(texts), joined(thinking));
    let calls: Vec<Value> = calls.collect();
    if texts.is_empty() && thinking.is_empty() && calls.is_empty() && malformed.is_none() {
        return None;
    }
    let mut message = json!({
        "id": step_id(&answer.id, number),
        "role": "assistant",
        "content": texts,
        "timestamp": at.0,
    });
    if !thinking.is_empty() {
        message["thinking"] = json!(thinking);
    }
    if !calls.is_empty() {
        message["toolCalls"] = json!(Value::from(calls).to_string());
    } else if let Some(raw) = malformed {
        message["toolCalls"] = json!(raw);
    }
    Some(message)
}

/// Returns a tool call without the name or arguments that the provider left out.
fn stored_call(call: &Call) -> Value {
    let mut function = json!({});
    if !call.name.is_empty() {
        function["name"] = json!(call.name);
    }
    if !call.arguments.is_empty() {
        function["arguments"] = json!(call::text_of(&call.arguments));
    }
    json!({ "id": call.id, "type": "function", "function": function })
}

fn stored_result(call: &Call) -> Option<Value> {
    let outcome = call.outcome.as_ref()?;
    let content = match (call::error_text(call), call::output(call)) {
        (Some(error), _) => error,
        (None, Value::String(text)) => text,
        (None, Value::Null) => String::new(),
        (None, value) => value.to_string(),
    };
    let mut message = json!({
        "id": format!("tool_{}", call.id),
        "role": "tool",
        "toolCallId": call.id,
        "content": content,
    });
    if let Some(error) = &outcome.error {
        message["error"] = json!(error);
    }
    Some(message)
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.filter(|it| !it.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
}

pub(crate) const MESSAGES: List = List {
    of: "messages",
    tag: "role",
    words: &["user", "assistant", "tool", "system", "developer", "function"],
    fields: &[("content", &[Holds::Text, Holds::List])],
    read: import,
};

/// Imports chat messages of the API or of a database as the log of a new session. Tool calls may be
/// under `tool_calls` or `toolCalls`, as an array or as JSON text.
pub fn import(messages: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let messages = items(messages);
    let mut builder = LogBuilder::new(setting);
    for (idx, message) in messages.iter().enumerate() {
        let role = message["role"].as_str();
        let (text, files) = content(&message["content"]);
        let id = as_text(message, "id");
        match role {
            Some("user") if builder.is_steered(&messages[idx + 1..]) => {
                builder.at(&message["timestamp"]);
                builder.steered(id, &text, SteerState::Seen);
            }
            Some("user" | "system" | "developer") => {
                builder.end(Ending::of(RunStatus::Completed));
                builder.at(&message["timestamp"]);
                let role =
                    if role == Some("user") { MessageRole::User } else { MessageRole::System };
                builder.input_message(id, role, &text, &files);
            }
            Some("assistant") => {
                builder.at(&message["timestamp"]);
                builder.step_of(id);
                assistant(message, &text, &mut builder);
            }
            Some("tool" | "function") => result(message, &text, &mut builder),
            _ => builder.unrecognized("message", &message.to_string()),
        }
    }
    builder.into_entries()
}

fn assistant(message: &Value, text: &str, builder: &mut LogBuilder<'_>) {
    let thinking = ["thinking", "reasoning_content", "reasoning"];
    if let Some(thinking) = thinking.iter().find_map(|it| as_text(message, it)) {
        builder.thinking(None, thinking, false);
    }
    if !text.is_empty() {
        builder.text(text, None, false);
    }
    let mut kept = ["tool_calls", "toolCalls"].iter().map(|it| &message[*it]);
    let Some(kept) = kept.find(|it| !it.is_null()) else { return };
    match calls(kept) {
        Some(calls) => calls.iter().for_each(|call| {
            let function = &call["function"];
            let arguments = match &function["arguments"] {
                Value::String(text) => text.clone(),
                other => arguments_text(other),
            };
            let name = as_text(function, "name").unwrap_or_default();
            builder.call(as_text(call, "id"), name, &arguments);
        }),
        None => {
            let raw = kept.as_str().map_or_else(|| kept.to_string(), str::to_owned);
            builder.unrecognized(SOURCE, &raw);
        }
    }
}

/// Parses the tool calls of a message. Null and empty text are an empty list; `None` for other
/// values that are not a list of objects.
fn calls(kept: &Value) -> Option<Vec<Value>> {
    let calls = match kept {
        Value::Null => Vec::new(),
        Value::String(text) if text.trim().is_empty() => Vec::new(),
        Value::String(text) => serde_json::from_str(text).ok()?,
        Value::Array(calls) => calls.clone(),
        _ => return None,
    };
    calls.iter().all(Value::is_object).then_some(calls)
}

fn result(message: &Value, text: &str, builder: &mut LogBuilder<'_>) {
    let id = as_text(message, "tool_call_id").or_else(|| as_text(message, "toolCallId"));
    let name = as_text(message, "name");
    let came = match message.get("error").filter(|it| !it.is_null()) {
        Some(error) => CallResult::Failed(error_info(error)),
        None => CallResult::Output(result_of(text)),
    };
    match builder.open_call(id, name) {
        Some(call) => builder.result(&call, came),
        None => builder.orphan(id, name.unwrap_or_default(), came),
    }
}
