//! Reads the question from the chat history, and the finished calls of an earlier run that broke off.
//!
//! The history may have any shape: unreadable entries are skipped.

use serde_json::Value;
use transcript::{ErrorCode, ErrorInfo};

use crate::ToolOutcome;

#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) question: String,
    /// Whether an earlier run has begun to answer the question.
    pub(super) goes_on: bool,
    pub(super) done: Vec<Done>,
    pub(super) words: u64,
}

/// A tool call of an earlier run that has a result.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) tool_name: String,
    pub(super) arguments: Value,
    pub(super) outcome: ToolOutcome,
}

pub(super) fn read(messages: &[Value]) -> History {
    let words = messages.iter().map(|it| count_words(&content(it))).sum();
    let Some(asked) = messages.iter().rposition(|it| it["role"] == "user") else {
        return History { words, ..History::default() };
    };
    let later = &messages[asked + 1..];
    History {
        question: content(&messages[asked]),
        goes_on: later.iter().any(|it| it["role"] == "assistant"),
        done: done(later),
        words,
    }
}

pub(super) fn count_words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

fn done(messages: &[Value]) -> Vec<Done> {
    let calls = messages.iter().filter_map(|it| it["tool_calls"].as_array()).flatten();
    calls.filter_map(|call| done_call(call, messages)).collect()
}

/// Returns a tool call with its result from the chat history. `None` for a call without a result or
/// that was interrupted, which is made again.
fn done_call(call: &Value, messages: &[Value]) -> Option<Done> {
    let id = call["id"].as_str()?;
    let answer = messages.iter().find(|it| it["tool_call_id"] == id)?;
    let outcome = outcome(&content(answer));
    let is_interrupted =
        outcome.error.as_ref().is_some_and(|it| it.code == ErrorCode::ToolInterrupted);
    let function = &call["function"];
    (!is_interrupted).then_some(Done {
        tool_name: function["name"].as_str()?.to_owned(),
        arguments: function["arguments"].as_str().and_then(|it| serde_json::from_str(it).ok())?,
        outcome,
    })
}

/// Parses the content of a tool message. A failure has the form `{"ok": false, "error": {...}}`.
fn outcome(content: &str) -> ToolOutcome {
    let result = serde_json::from_str(content).unwrap_or_else(|_| Value::from(content));
    if result["ok"] == false && !result["error"].is_null() {
        let error = Some(error_info(&result["error"]));
        return ToolOutcome { ok: false, result: Value::Null, error };
    }
    ToolOutcome { ok: true, result, error: None }
}

fn error_info(error: &Value) -> ErrorInfo {
    let message = error["message"].as_str().or_else(|| error.as_str());
    let code = serde_json::from_value(error["code"].clone()).unwrap_or(ErrorCode::ToolError);
    ErrorInfo::new(code, message.map_or_else(|| error.to_string(), str::to_owned))
}

/// Returns the text of a chat message, whose content is a string or a list of parts.
fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|it| it["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
