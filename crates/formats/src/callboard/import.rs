//! Chat messages of the kind that `format=callboard` extends, as events: `content` with the final text,
//! `toolCalls` with their commentary.
//!
//! Older ones have no commentary, or have it within the content as well; calls that were left running
//! are interrupted. Not contained: the step of each text, the output of calls, usage.

use serde_json::Value;
use transcript::{MessageRole, Phase, RunStatus, SentForm};

use crate::import::{
    Beginning, CallResult, Ending, Entry, Holds, List, LogBuilder, Remarks, Setting,
    arguments_text, as_text, error_info, items,
};
use crate::sent;

pub(crate) const MESSAGES: List = List {
    of: "messages",
    tag: "role",
    words: &["user", "assistant", "system"],
    fields: &[
        ("content", &[Holds::Text]),
        ("toolCalls", &[Holds::List]),
        ("parts", &[Holds::List]),
    ],
    read: import,
};

/// Imports a list of chat messages of `format=callboard` as the log of a new session.
pub fn import(messages: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let mut builder = LogBuilder::new(setting);
    for message in items(messages) {
        builder.at(&message["createdAt"]);
        let content = message["content"].as_str().unwrap_or_default();
        match message["role"].as_str() {
            Some("user") => input_message(message, MessageRole::User, &mut builder),
            // Ours has notices of the session as system messages with parts.
            Some("system") if message.get("parts").is_some() => {
                builder.unrecognized("message", &message.to_string());
            }
            Some("system") => input_message(message, MessageRole::System, &mut builder),
            Some("assistant") => answer(message, content, &mut builder),
            _ => builder.unrecognized("message", &message.to_string()),
        }
    }
    builder.into_entries()
}

/// Imports a user or system message. Attached files are not imported; links to files are.
fn input_message(message: &Value, role: MessageRole, builder: &mut LogBuilder<'_>) {
    let content = message["content"].as_str().unwrap_or_default();
    let sent = serde_json::from_value(message["sent"].clone());
    let SentForm { mut parts, metadata } = sent.unwrap_or_default();
    sent::leave_out_lost(&mut parts, std::iter::empty());
    if parts.is_empty() {
        parts = sent::parts_of(content, &[]);
    }
    builder.input_message_in_parts(as_text(message, "id"), role, content, parts, metadata.as_ref());
}

fn answer(message: &Value, content: &str, builder: &mut LogBuilder<'_>) {
    let (agent, model) = (as_text(message, "agent"), as_text(message, "model"));
    builder.begin(&Beginning { id: as_text(message, "id"), agent, model });
    if let Some(reasoning) = as_text(message, "reasoning") {
        builder.thinking(None, reasoning, false);
    }
    let calls = items(&message["toolCalls"]);
    for call in calls {
        if let Some(commentary) = as_text(call, "commentary") {
            builder.step();
            builder.text(commentary, Some(Phase::Commentary), false);
        }
        tool_call(call, builder);
    }
    // Only those from before there were parts have commentary within their content.
    let is_old = message.get("parts").is_none();
    let text = if is_old { without_commentary(content, calls) } else { content };
    if !text.is_empty() {
        builder.step();
        builder.text(text, Some(Phase::Final), false);
    }
    let status = serde_json::from_value(message["status"].clone());
    builder.end(Ending {
        reason: serde_json::from_value(message["cancelReason"].clone()).ok(),
        error: serde_json::from_value(message["error"].clone()).ok(),
        ..Ending::of(status.unwrap_or(RunStatus::Completed))
    });
}

/// Returns a message's content without the commentary of its tool calls, which older exports have
/// at its beginning, in the order of the calls. The same text further on is kept.
fn without_commentary<'a>(content: &'a str, calls: &[Value]) -> &'a str {
    let mut rest = content;
    for commentary in calls.iter().filter_map(|call| as_text(call, "commentary")) {
        rest = rest.trim_start().strip_prefix(commentary).unwrap_or(rest);
    }
    if rest.len() == content.len() { content } else { rest.trim() }
}

fn tool_call(call: &Value, builder: &mut LogBuilder<'_>) {
    let arguments = match as_text(call, "argsText") {
        Some(text) => text.to_owned(),
        None => arguments_text(&call["args"]),
    };
    let name = as_text(call, "name").unwrap_or_default();
    let id = builder.call(as_text(call, "id"), name, &arguments);
    let result = call.get("result").cloned();
    let of_failure = result.clone().filter(|it| !it.is_null());
    let came = match call["status"].as_str() {
        Some("error") => Some(CallResult::Failed(error_info(&call["error"]))),
        Some("completed") => Some(CallResult::Output(result.unwrap_or(Value::Null))),
        _ => result.map(CallResult::Output),
    };
    if let Some(came) = came {
        let summary = as_text(call, "resultSummary").map(str::to_owned);
        let duration_ms = call["durationMs"].as_u64();
        let remarks = Remarks { summary, duration_ms, of_failure };
        builder.result_with(&id, came, remarks);
    }
}
