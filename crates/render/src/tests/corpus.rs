//! Logs that use everything there is.

use serde_json::{Value, json};
use transcript::Record;

macro_rules! logs {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../fixtures/", $name, ".jsonl")))),*]
    };
}

pub(super) fn logs() -> Vec<(&'static str, Vec<Record>)> {
    let of_all_kinds = ("every event", include_str!("../../../transcript/fixtures/v1.jsonl"));
    let files = logs![
        "approval", "decided", "exchange", "failed", "long", "odd", "queue", "stopped", "subagent",
        "thinking", "tools",
    ];
    let files = files.into_iter().chain([of_all_kinds]);
    files.map(|(name, text)| (name, read(text))).chain(long_calls()).collect()
}

/// Every view there is, of calls that are too long for a page, and of some that are too long for a transcript.
pub(super) fn long_calls() -> Vec<(&'static str, Vec<Record>)> {
    [800, 3600].into_iter().flat_map(calls_of).map(|(tool, it)| (tool, call(tool, it))).collect()
}

type AskedAndTold = (Value, Value);

fn calls_of(n: usize) -> [(&'static str, AskedAndTold); 13] {
    let text =
        |word: &str| -> String { (0..n).map(|it| format!("{word} numbered {it}\n")).collect() };
    let (old, new) = (text("an old line"), text("a line"));
    let hunk = json!({"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": n,
        "lines": new.lines().map(|it| format!("+{it}")).collect::<Vec<_>>()});
    let each = |of: fn(usize) -> Value| (0..n).map(of).collect::<Value>();
    let edit =
        |old: &str, new: &str| json!({"path": "a.txt", "old_string": old, "new_string": new});
    let long_address = format!("https://a.example/{}", "a".repeat(n * 25));
    [
        ("shell", (json!({"command": new}), json!("\u{1b}[31mred\u{1b}[0m\n".repeat(n * 2)))),
        ("Write", (json!({"file_path": "a.txt", "content": new}), json!("written"))),
        ("Edit", (edit(&old, &new), json!("done"))),
        ("Edit", (edit("x", "y"), json!({"originalFile": old, "structuredPatch": [hunk]}))),
        (
            "MultiEdit",
            (json!({"path": "a", "edits": [edit("x", &new), edit(&old, "y")]}), json!(null)),
        ),
        (
            "TodoWrite",
            (
                json!({"todos": each(|it| json!({"content": it.to_string(), "status": "completed"}))}),
                json!("ok"),
            ),
        ),
        ("Task", (json!({"description": "look", "prompt": new}), json!({"content": new}))),
        ("WebFetch", (json!({"url": long_address}), json!(new))),
        ("Read", (json!({"file_path": "a.txt"}), json!({"content": new}))),
        (
            "search_files",
            (
                json!({"query": "x"}),
                json!({"matches": each(|it| json!({"path": format!("src/{}", it / 9), "line": it, "text": "it fits"}))}),
            ),
        ),
        (
            "list_files",
            (
                json!({}),
                json!({"entries": each(|it| json!({"name": it.to_string(), "kind": "file", "size": it}))}),
            ),
        ),
        (
            "agents_list",
            (
                json!({}),
                json!({"agents": each(|it| json!({"id": it.to_string(), "state": "idle"}))}),
            ),
        ),
        ("somebody_elses", (json!({"query": new}), json!({"rows": new}))),
    ]
}

/// The life of a call, with a person who is asked.
pub(super) fn call(tool: &str, (arguments, result): AskedAndTold) -> Vec<Record> {
    let target = json!({"path": "/w/a.txt", "size": 12, "text": "an old file\n"});
    let target = if tool == "Write" { target } else { json!(null) };
    let options = json!({"scopes": ["once"], "canEdit": true, "target": target});
    let events = [
        json!({"type": "run_start", "agent": "claude", "trigger": "user"}),
        json!({"type": "tool_call_start", "toolName": tool, "executor": "agent"}),
        json!({"type": "tool_arguments_done", "arguments": arguments.to_string(), "validation": "pending"}),
        json!({"type": "tool_approval_requested", "options": options}),
        json!({"type": "tool_approval_resolved", "decision": "accepted", "by": "you"}),
        json!({"type": "tool_result", "toolName": tool, "ok": true, "result": result}),
    ];
    let record = |(seq, event): (u64, Value)| {
        let mut record = json!({"seq": seq, "at": "2026-11-15T09:00:00Z", "sessionId": "s",
            "responseId": "r", "callId": "r.1"});
        record.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
        serde_json::from_value(record).expect("a record")
    };
    (1..).zip(events).map(record).collect()
}

fn read(text: &str) -> Vec<Record> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).expect("a record a line")).collect()
}
