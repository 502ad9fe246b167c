//! Cases of the import, some of which have no recording.

use backends::ProgramKind;
use backends::import::{ConversationFile, Imported, SideFile, Tail, detect, read};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use transcript::Event;

use super::laws::{answer, check};
use super::live::conversation_text;

fn import(kind: ProgramKind, lines: &[Value], side_files: &[SideFile]) -> Imported {
    let text: String = lines.iter().map(|it| format!("{it}\n")).collect();
    let imported =
        read(&ConversationFile { kind, text: &text, side_files, agent: "agent" }, Tail::Close);
    let imported = imported.expect("it says which conversation it is");
    check(&imported);
    imported
}

/// Returns the messages, the answers and all other events as text.
fn outline(imported: &Imported) -> String {
    let mut outline = String::new();
    for turn in &imported.turns {
        for entry in turn.entries.iter().filter(|it| it.response_id.is_none()) {
            outline += &match &entry.event {
                Event::UserMessage { text, .. } => format!("> {text}\n"),
                event => format!("{}\n", serde_json::to_value(event).unwrap()),
            };
        }
        outline += &conversation_text(&answer(turn));
        outline += "\n";
    }
    outline
}

fn claude(id: &str, parent: Option<&str>, fields: Value) -> Value {
    let mut line = json!({
        "uuid": id, "parentUuid": parent, "sessionId": "c1", "cwd": "/w", "version": "2",
        "timestamp": "2026-11-15T19:00:00.000Z", "isSidechain": false,
    });
    line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    line
}

fn claude_user(id: &str, parent: Option<&str>, content: impl Into<Value>) -> Value {
    let message = json!({ "role": "user", "content": content.into() });
    claude(id, parent, json!({ "type": "user", "message": message }))
}

fn claude_says(
    id: &str,
    parent: &str,
    stop: impl Into<Option<&'static str>>,
    block: Value,
) -> Value {
    let stop = stop.into();
    let message =
        json!({ "id": format!("msg-{id}"), "content": [block], "stop_reason": stop, "model": "m" });
    claude(id, Some(parent), json!({ "type": "assistant", "message": message }))
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[track_caller]
fn becomes(imported: &Imported, expected: Expect) {
    expected.assert_eq(&outline(imported));
}

#[test]
fn a_branch_in_a_file_becomes_a_rewind() {
    let claude = [
        claude_user("u1", None, "one"),
        claude_says("a1", "u1", "end_turn", text("first")),
        claude_user("u2", Some("a1"), "two"),
        claude_says("a2", "u2", "end_turn", text("second")),
        claude_user("u3", Some("a1"), "two, in other words"),
        claude_says("a3", "u3", "end_turn", text("third")),
    ];
    let expected = expect![[r#"
        > one
        says "first"
        ends Some(Completed) None None

        > two
        says "second"
        ends Some(Completed) None None

        {"type":"history_rewound","beforeMessageId":"u2","reason":"edit"}
        > two, in other words
        says "third"
        ends Some(Completed) None None

    "#]];
    becomes(&import(ProgramKind::Claude, &claude, &[]), expected);

    let entry = |id: &str, parent: Value, message: Value| json!({ "type": "message", "id": id, "parentId": parent, "message": message });
    let user = |text: &str| json!({ "role": "user", "content": text });
    let says =
        |it: &str| json!({ "role": "assistant", "content": [text(it)], "stopReason": "stop" });
    let pi = [
        json!({ "type": "session", "id": "p1", "cwd": "/w" }),
        entry("1", Value::Null, user("one")),
        entry("2", json!("1"), says("first")),
        entry("3", Value::Null, user("one, in other words")),
        entry("4", json!("3"), says("second")),
    ];
    let expected = expect![[r#"
        > one
        says "first"
        ends Some(Completed) None None

        {"type":"history_rewound","beforeMessageId":"p1-1","reason":"edit"}
        > one, in other words
        says "second"
        ends Some(Completed) None None

    "#]];
    becomes(&import(ProgramKind::Pi, &pi, &[]), expected);
}

#[test]
fn a_large_output_is_read_from_its_side_file() {
    let call =
        json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "x" } });
    let result = json!([{
        "type": "tool_result", "tool_use_id": "t1", "content": "<persisted-output>…",
    }]);
    let mut printed = claude_user("u2", Some("a1"), result);
    printed["toolUseResult"] = json!({
        "stdout": "the be", "stderr": "", "interrupted": false,
        "persistedOutputPath": "/home/user/.claude/projects/-w/c1/tool-results/b1.txt",
    });
    let lines = [
        claude_user("u1", None, "go"),
        claude_says("a1", "u1", "tool_use", call),
        printed,
        claude_says("a2", "u2", "end_turn", text("done")),
    ];
    let beside =
        SideFile { name: "tool-results/b1.txt".to_owned(), text: "the beginning and more".into() };
    let expected = expect![[r#"
        > go
        calls Bash {"command":"x"} -> {"persistedOutputPath":"/home/user/.claude/projects/-w/c1/tool-results/b1.txt"} None Some("the beginning and more") Some("")
        says "done"
        ends Some(Completed) None None

    "#]];
    becomes(&import(ProgramKind::Claude, &lines, &[beside]), expected);
}

#[test]
fn sub_agent_lines_are_matched_to_calls_by_their_prompt() {
    let input = json!({ "prompt": "look around", "description": "Look" });
    let call = json!({ "type": "tool_use", "id": "t1", "name": "Task", "input": input });
    let inside = |mut line: Value| {
        line["isSidechain"] = json!(true);
        line
    };
    let result = json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "nothing" }]);
    let lines = [
        claude_user("u1", None, "go"),
        claude_says("a1", "u1", "tool_use", call),
        inside(claude_user("s1", None, "look around")),
        inside(claude_says("s2", "s1", "end_turn", text("nothing here"))),
        claude_user("u2", Some("a1"), result),
        claude_says("a2", "u2", "end_turn", text("done")),
    ];
    let expected = expect![[r#"
        > go
        calls Task {"prompt":"look around","description":"Look"} -> "nothing" None Some("") Some("")
        says "done"
        inside: says "nothing here"
        ends Some(Completed) None None

    "#]];
    becomes(&import(ProgramKind::Claude, &lines, &[]), expected);
}

#[test]
fn a_message_queued_during_a_turn_is_part_of_the_turn() {
    let call =
        json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "x" } });
    let result = json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "printed" }]);
    let queued = json!({ "type": "queued_command", "prompt": "be quick", "commandMode": "prompt" });
    let lines = [
        claude_user("u1", None, "go"),
        claude_says("a1", "u1", "tool_use", call),
        claude_user("u2", Some("a1"), result),
        claude("q1", Some("u2"), json!({ "type": "attachment", "attachment": queued })),
        claude_says("a2", "q1", "end_turn", text("done")),
    ];
    let expected = expect![[r#"
        > go
        calls Bash {"command":"x"} -> null None Some("printed") Some("")
        is told "be quick"
        says "done"
        ends Some(Completed) None None

    "#]];
    becomes(&import(ProgramKind::Claude, &lines, &[]), expected);
}

#[test]
fn claude_code_files_without_stop_reasons_are_read() {
    let call =
        json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "x" } });
    let result = json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "printed" }]);
    let lines = [
        claude_user("u1", None, "go"),
        claude_says("a1", "u1", None, text("I will look.")),
        claude_says("a2", "a1", None, call),
        claude_user("u2", Some("a2"), result),
        claude_says("a3", "u2", None, text("done")),
        claude_user("u3", Some("a3"), "again"),
        claude_says("a4", "u3", None, text("no")),
    ];
    let expected = expect![[r#"
        > go
        says "I will look."
        calls Bash {"command":"x"} -> null None Some("printed") Some("")
        says "done"
        ends Some(Completed) None None

        > again
        says "no"
        ends Some(Completed) None None

    "#]];
    becomes(&import(ProgramKind::Claude, &lines, &[]), expected);
}

/// Old versions of Codex wrote no items, and no start and end of a turn.
#[test]
fn old_codex_files_with_response_items_are_read() {
    let line = |kind: &str, payload: Value| json!({ "timestamp": "2026-11-15T19:00:00.000Z", "type": kind, "payload": payload });
    let item = |payload: Value| line("response_item", payload);
    let event = |payload: Value| line("event_msg", payload);
    let output = json!({ "output": "a.txt\n", "metadata": { "exit_code": 0 } }).to_string();
    let lines = [
        line("session_meta", json!({ "id": "x1", "cwd": "/w", "cli_version": "0.30.0" })),
        event(json!({ "type": "user_message", "message": "list" })),
        item(json!({
            "type": "reasoning", "summary": [{ "type": "summary_text", "text": "Hm." }],
        })),
        item(json!({
            "type": "function_call", "name": "shell", "call_id": "c1",
            "arguments": r#"{"command":["bash","-lc","ls 'a b'"]}"#,
        })),
        item(json!({ "type": "function_call_output", "call_id": "c1", "output": output })),
        item(json!({
            "type": "message", "role": "assistant",
            "content": [{ "type": "output_text", "text": "One file." }],
        })),
        event(json!({ "type": "agent_message", "message": "One file." })),
        event(json!({ "type": "user_message", "message": "thanks" })),
        item(json!({
            "type": "message", "role": "assistant",
            "content": [{ "type": "output_text", "text": "Welcome." }],
        })),
    ];
    let expected = expect![[r#"
        > list
        thinks "Hm."
        calls shell {"command":"ls 'a b'"} -> {"exitCode":0} None Some("a.txt\n") Some("")
        says "One file."
        ends Some(Completed) None None

        > thanks
        says "Welcome."
        ends Some(Completed) None None

    "#]];
    becomes(&import(ProgramKind::Codex, &lines, &[]), expected);
}

#[test]
fn web_searches_in_old_codex_files_are_read() {
    let line = |kind: &str, payload: Value| json!({ "timestamp": "2026-11-15T19:00:00.000Z", "type": kind, "payload": payload });
    let action = json!({ "type": "search", "query": "rain" });
    let search =
        json!({ "type": "web_search_call", "id": "w", "status": "completed", "action": action });
    let answer = json!({ "type": "message", "role": "assistant", "id": "m",
        "content": [{ "type": "output_text", "text": "It rains." }] });
    let imported = import(
        ProgramKind::Codex,
        &[
            line("session_meta", json!({ "id": "t", "cwd": "/w" })),
            line("event_msg", json!({ "type": "user_message", "message": "Rain?" })),
            line("response_item", search),
            line("response_item", answer),
        ],
        &[],
    );
    becomes(
        &imported,
        expect![[r#"
        > Rain?
        calls web_search {"query":"rain"} -> {"type":"search","query":"rain"} None Some("") Some("")
        says "It rains."
        ends Some(Completed) None None

    "#]],
    );
}

#[test]
fn an_unreadable_line_is_kept_in_its_place() {
    let output = claude_user("u1", None, "go");
    let answer = claude_says("a1", "u1", "end_turn", text("done"));
    let kept = format!("{output}\nthis is nothing\n{answer}\n");
    let kept = ConversationFile {
        kind: ProgramKind::Claude,
        text: &kept,
        side_files: &[],
        agent: "agent",
    };
    let imported = read(&kept, Tail::LeaveOut).unwrap();
    let unrecognized = imported.turns[0].entries.iter().find_map(|it| match &it.event {
        Event::Unrecognized { source, raw, .. } => Some((source.as_str(), raw.as_str())),
        _ => None,
    });
    assert_eq!(unrecognized, Some(("claude", "this is nothing")));
}

/// Only kinds that are listed as irrelevant are left out; all other unknown lines are kept.
#[test]
fn unknown_lines_are_kept() {
    let system = |subtype: &str| {
        claude(
            subtype,
            Some("u"),
            json!({ "type": "system", "subtype": subtype, "content": "Hm." }),
        )
    };
    let of_claude = [
        claude_user("u", None, "Hello."),
        claude("x", Some("u"), json!({ "type": "premonition", "of": "rain" })),
        claude("m", Some("u"), json!({ "type": "file-history-snapshot" })),
        system("premonition"),
        system("turn_duration"),
        system("informational"),
        claude_says("a", "u", "end_turn", text("Hi.")),
    ];
    let codex = |kind: &str, payload: Value| json!({ "timestamp": "2026-11-15T19:00:00.000Z", "type": kind, "payload": payload });
    let of_codex = [
        codex("session_meta", json!({ "id": "t", "cwd": "/w" })),
        codex("event_msg", json!({ "type": "user_message", "message": "Hello." })),
        codex("premonition", json!({ "of": "rain" })),
        codex("world_state", json!({})),
        codex("event_msg", json!({ "type": "premonition" })),
        codex("event_msg", json!({ "type": "item_completed", "item": { "id": "i" } })),
        codex("event_msg", json!({ "type": "agent_message", "message": "Hi." })),
        codex("response_item", json!({ "type": "premonition" })),
        codex("response_item", json!({ "type": "ghost_snapshot" })),
    ];
    let pi = |kind: &str, message: Value| json!({ "timestamp": "2026-11-15T19:00:00.000Z", "type": kind, "id": "s", "message": message });
    let of_pi = [
        pi("session", json!({})),
        pi("premonition", json!({})),
        pi("label", json!({})),
        pi("message", json!({ "role": "oracle", "content": "Rain." })),
        pi("message", json!({ "role": "system", "content": "Be kind." })),
    ];
    for (kind, lines, expected) in [
        (ProgramKind::Claude, &of_claude[..], (2, 1)),
        (ProgramKind::Codex, &of_codex, (4, 0)),
        (ProgramKind::Pi, &of_pi, (2, 0)),
    ] {
        let imported = import(kind, lines, &[]);
        let entries = imported.turns.iter().flat_map(|it| &it.entries).chain(&imported.rest);
        let events: Vec<&Event> = entries.map(|it| &it.event).collect();
        let n_unknown = events.iter().filter(|it| matches!(it, Event::Unrecognized { .. })).count();
        let n_notices = events.iter().filter(|it| matches!(it, Event::Notice { .. })).count();
        assert_eq!((n_unknown, n_notices), expected, "{kind:?}");
    }
}

#[test]
fn other_files_are_not_detected_as_conversations() {
    let own =
        r#"{"seq":1,"at":"2026-11-15T19:00:00.000Z","sessionId":"s","type":"session_created"}"#;
    for (name, head) in [("a.jsonl", own), ("a.jsonl", "{}"), ("a.jsonl", ""), ("a", "text\n")] {
        assert_eq!(detect(name, head), None, "{head}");
    }
    let line = claude_user("u1", None, "go").to_string();
    assert_eq!(detect("c1.jsonl", &line), Some(ProgramKind::Claude));
    assert_eq!(detect("c1/subagents/agent-a1.jsonl", &line), None);
}
