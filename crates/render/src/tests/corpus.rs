//! Logs that use every feature.

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
        "thinking", "tools", "words",
    ];
    let files = files.into_iter().chain([of_all_kinds]);
    let files = files.map(|(name, text)| (name, read(text)));
    let floods = [("unreadable", unreadable()), ("long words", long_words())];
    files.chain(long_calls()).chain(floods).collect()
}

/// Logs that are compared at every pair of prefixes.
pub(super) fn short_logs() -> impl Iterator<Item = (&'static str, Vec<Record>)> {
    let is_short =
        |(name, records): &(&str, Vec<Record>)| records.len() < 80 && *name != "long words";
    logs().into_iter().filter(is_short)
}

/// Every kind of text, longer than a page shows, while it grows.
pub(super) fn long_words() -> Vec<Record> {
    let line = "**Words** that are `said`, and nothing else.\n";
    let long = |n: usize| line.repeat(n * 1024 / line.len() + 1);
    let unbroken = "ä".repeat(40 * 1024);
    let mut events = vec![
        json!({"type": "user_message", "messageId": "m1", "text": long(70)}),
        json!({"type": "user_message", "messageId": "m2", "text": unbroken, "role": "system"}),
        json!({"type": "user_message", "messageId": "m3", "text": long(80),
            "from": {"sessionId": "other", "agent": "demo", "exchangeId": "x", "isAnswer": true}}),
        json!({"type": "run_start", "agent": "claude", "trigger": "user"}),
        json!({"type": "step_start", "index": 0}),
        json!({"type": "thinking_start", "partId": "p0"}),
    ];
    let grows = |kind: &str, part: &str| {
        let delta = format!("{kind}_delta");
        let delta = move |n| json!({"type": delta, "partId": part, "delta": long(n)});
        [60, 6, 20].map(delta)
    };
    events.extend(grows("thinking", "p0"));
    events.push(json!({"type": "thinking_done", "partId": "p0", "text": long(97)}));
    events.push(json!({"type": "text_start", "partId": "p1"}));
    events.extend(grows("text", "p1"));
    events.push(json!({"type": "text_done", "partId": "p1", "text": "Short after all."}));
    events.push(json!({"type": "text_start", "partId": "p2"}));
    events.push(json!({"type": "text_delta", "partId": "p2", "delta": long(60)}));
    events.push(json!({"type": "text_done", "partId": "p2", "text": long(90)}));
    events.extend([
        json!({"type": "message_steered", "messageId": "m4", "text": long(66), "state": "seen"}),
        json!({"type": "notice", "level": "info", "text": long(66)}),
        json!({"type": "notice", "level": "error", "text": long(67)}),
        json!({"type": "unrecognized", "source": "claude", "raw": unbroken}),
        json!({"type": "agent_message", "exchangeId": "x1", "direction": "sent", "agent": "demo",
            "text": long(68)}),
        json!({"type": "step_finish", "index": 0, "finishReason": "stop"}),
        json!({"type": "run_finish", "status": "completed", "durationMs": 9}),
    ]);
    numbered(events)
}

pub(super) fn numbered(events: impl IntoIterator<Item = Value>) -> Vec<Record> {
    let lines = (1..).zip(events).map(|(seq, mut event)| {
        event["seq"] = json!(seq);
        event["at"] = json!("2026-11-15T18:44:28.123Z");
        event["sessionId"] = json!("s");
        if event["type"] != "user_message" {
            event["responseId"] = json!("r1");
        }
        event.to_string()
    });
    read(&lines.collect::<Vec<_>>().join("\n"))
}

/// A run with many unreadable lines, some of them counted by one record.
fn unreadable() -> Vec<Record> {
    let line = |n: usize| match n {
        60 => json!({"type": "notice", "level": "info", "text": "in between"}),
        70 => json!({"type": "unrecognized", "source": "claude", "raw": "line", "lines": 4000}),
        n => json!({"type": "unrecognized", "source": "claude", "raw": format!("line {n}")}),
    };
    let start = json!({"type": "run_start", "agent": "claude", "trigger": "user"});
    let end = json!({"type": "run_finish", "status": "completed", "durationMs": 9});
    let events = [start].into_iter().chain((0..80).map(line)).chain([end]);
    numbered(events)
}

/// Calls for every view that are too long for a page, some even for a transcript.
pub(super) fn long_calls() -> Vec<(&'static str, Vec<Record>)> {
    [800, 3600].into_iter().flat_map(calls_of).map(|(tool, it)| (tool, call(tool, it))).collect()
}

type ArgumentsAndResult = (Value, Value);

fn calls_of(n: usize) -> [(&'static str, ArgumentsAndResult); 13] {
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

/// All records of a call that needs approval.
pub(super) fn call(tool: &str, (arguments, result): ArgumentsAndResult) -> Vec<Record> {
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
    lines.map(|line| serde_json::from_str(line).expect("every line is a record")).collect()
}
