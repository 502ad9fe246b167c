//! Helpers of the tests of all formats: logs, and the runs in them.

pub(crate) mod logs;

use proptest::prelude::*;
use serde_json::Value;
use transcript::{Message, Record, ResponseId, RunMessage, Transcript};

/// The runs of a log with the answers that its whole transcript has for them, those that have ended.
pub(crate) fn finished_runs(log: &[Record]) -> Vec<(ResponseId, RunMessage)> {
    let transcript = whole(log);
    let answers = transcript.messages.iter().filter_map(Message::run);
    answers.filter(|it| !it.is_open()).map(|it| (it.id.clone(), it.clone())).collect()
}

pub(crate) fn whole(log: &[Record]) -> Transcript {
    let mut transcript = Transcript::whole();
    transcript.extend(log);
    transcript
}

/// JSON in which the names and words of requests meet.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "user",
        "assistant",
        "tool",
        "text",
        "file",
        "tool-x",
        "output-available",
        "result",
        "approval_c1",
        "resolved",
        "[]",
        "{",
    ];
    let names = [
        "messages",
        "message",
        "id",
        "role",
        "parts",
        "type",
        "text",
        "state",
        "approval",
        "toolCallId",
        "content",
        "resume",
        "interruptId",
        "status",
        "threadId",
        "runId",
        "tool_calls",
        "toolCalls",
        "function",
        "arguments",
        "entity",
        "metadata",
        "toolInvocation",
        "events",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        let name = prop::sample::select(names.to_vec());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..5).prop_map(|fields| {
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}
