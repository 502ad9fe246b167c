//! Terminal output of a run.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use transcript::{CallId, Record, ResponseId};

use super::screen::{Piece, Screen};

fn record(seq: u64, event: &Value) -> Record {
    let mut fields =
        json!({ "seq": seq, "at": "2026-11-15T09:00:00Z", "sessionId": "s", "responseId": "r" });
    fields.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
    serde_json::from_value(fields).unwrap()
}

/// Returns the output for the records, as on one terminal.
fn shown(events: &[Value], colours: bool) -> String {
    let mut screen = Screen::new(&ResponseId::new("r"), colours);
    let mut text = String::new();
    for (seq, event) in (1..).zip(events) {
        text += &on_a_terminal(screen.show(&record(seq, event)));
    }
    text
}

fn on_a_terminal(pieces: Vec<Piece>) -> String {
    let text = |piece| match piece {
        Piece::Stdout(text) | Piece::Stderr(text) => text,
    };
    pieces.into_iter().map(text).collect()
}

#[track_caller]
fn check(events: &[Value], expect: Expect) {
    expect.assert_eq(&shown(events, false));
}

fn call(id: &str, name: &str, summary: &str, arguments: &Value) -> [Value; 2] {
    [
        json!({ "type": "tool_call_start", "callId": id, "toolName": name, "executor": "server" }),
        json!({
            "type": "tool_arguments_done", "callId": id, "arguments": arguments.to_string(),
            "summary": summary, "validation": "not_required",
        }),
    ]
}

fn output(id: &str, stream: &str, offset: usize, delta: &str) -> Value {
    json!({ "type": "tool_output_delta", "callId": id, "stream": stream, "offset": offset, "delta": delta })
}

fn ended(id: &str) -> Value {
    json!({ "type": "tool_result", "callId": id, "toolName": "shell", "ok": true, "durationMs": 7 })
}

fn failed(id: &str, code: &str, message: &str) -> Value {
    json!({
        "type": "tool_result", "callId": id, "toolName": "shell", "ok": false, "durationMs": 7,
        "error": { "code": code, "message": message },
    })
}

fn text(part: &str, delta: &str) -> Value {
    json!({ "type": "text_delta", "partId": part, "delta": delta })
}

#[test]
fn texts_calls_and_output_have_separate_lines() {
    let mut events = vec![
        json!({ "type": "thinking_delta", "partId": "t", "delta": "Let me " }),
        json!({ "type": "thinking_delta", "partId": "t", "delta": "see." }),
        text("p", "I look"),
        text("p", " first."),
    ];
    events.extend(call("a", "shell", "make", &json!({ "command": "make" })));
    events.extend(call("b", "read_file", "a.txt", &json!({ "path": "a.txt" })));
    events.extend([
        output("a", "stdout", 0, "one\ntw"),
        output("a", "stdout", 6, "o\n"),
        output("a", "stderr", 0, "oops"),
        ended("b"),
        output("a", "stdout", 8, "last"),
        failed("a", "tool_error", "The command ended with exit code 3."),
        text("q", "Done.\n"),
        json!({ "type": "run_finish", "status": "completed" }),
    ]);
    check(
        &events,
        expect![[r#"
        Let me see.

        I look first.
        ▸ shell make
        ▸ read_file a.txt
            one
            two
            oops
        ✓ read_file a.txt (7 ms)
            last
        ✗ shell make: The command ended with exit code 3.

        Done.
    "#]],
    );
}

#[test]
fn text_without_deltas_is_shown_once() {
    let done =
        |part: &str, text: &str| json!({ "type": "text_done", "partId": part, "text": text });
    check(
        &[
            done("a", "All at once."),
            text("b", "In pie"),
            text("b", "ces"),
            done("b", "In pieces."),
            json!({ "type": "run_finish", "status": "completed" }),
        ],
        expect![[r#"
            All at once.
            In pieces.
        "#]],
    );
}

#[test]
fn failures_are_shown() {
    let mut events = Vec::new();
    for (id, code) in [("a", "tool_denied"), ("b", "tool_interrupted"), ("c", "tool_timeout")] {
        events.extend(call(id, "shell", "ls", &json!({})));
        events.push(failed(id, code, "Too\nslow."));
    }
    let error = json!({ "code": "provider_error", "message": "It is \u{1b}[2Jdown." });
    events.push(json!({ "type": "run_finish", "status": "failed", "error": error }));
    check(
        &events,
        expect![[r#"
        ▸ shell ls
        ✗ shell ls: not allowed
        ▸ shell ls
        ✗ shell ls: stopped
        ▸ shell ls
        ✗ shell ls: Too slow.
        failed (provider_error): It is \u{1b}[2Jdown.
    "#]],
    );
    check(
        &[text("a", "I was say"), json!({ "type": "run_finish", "status": "cancelled" })],
        expect![[r#"
            I was say
            stopped
        "#]],
    );
}

/// No field of any record can control the terminal; only the command's own colours do.
#[test]
fn no_field_controls_the_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{9b}1A\u{202e}x";
    let mut events = vec![
        text("a", evil),
        json!({ "type": "thinking_delta", "partId": "t", "delta": evil }),
        json!({ "type": "text_done", "partId": "b", "text": evil }),
        json!({ "type": "notice", "level": "info", "text": evil }),
    ];
    events.extend(call("c", evil, evil, &json!({ evil: evil })));
    events.extend([
        output("c", "stdout", 0, evil),
        json!({ "type": "tool_retry", "callId": "c", "attempt": 2, "maxAttempts": 3, "error": { "code": "x", "message": evil } }),
        json!({ "type": "message_steered", "messageId": "m", "text": evil, "state": "seen" }),
        json!({ "type": "agent_message", "exchangeId": "e", "direction": "sent", "agent": evil, "text": evil }),
        failed("c", "tool_error", evil),
        json!({ "type": "run_finish", "status": "failed", "error": { "code": "x", "message": evil } }),
    ]);
    let is_harmless = |it: char| it == '\n' || !(it.is_control() || it == '\u{202e}');
    let text = shown(&events, false);
    assert!(text.chars().all(is_harmless), "{text:?}");

    let mut screen = Screen::new(&ResponseId::new("r"), false);
    for (seq, event) in (1..).zip(&events) {
        screen.show(&record(seq, event));
    }
    let proposed = on_a_terminal(screen.propose(&CallId::new("c")));
    assert!(proposed.chars().all(is_harmless), "{proposed:?}");
    assert_eq!(proposed.matches(r"\u{202e}x").count(), 3, "written out: {proposed}");
    let mut coloured = shown(&events, true);
    for code in ["\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[0m"] {
        coloured = coloured.replace(code, "");
    }
    assert_eq!(coloured, text, "colours are all that differs");
}

#[test]
fn repeated_output_is_shown_once() {
    let mut events = call("a", "shell", "ls", &json!({})).to_vec();
    events.extend([
        output("a", "stdout", 0, "one\n"),
        output("a", "stdout", 0, "one\ntwo\n"),
        output("a", "stdout", 4, "two\n"),
        json!({
            "type": "tool_result", "callId": "a", "toolName": "shell", "ok": true,
            "output": "one\ntwo\nthree", "durationMs": 1,
        }),
    ]);
    check(
        &events,
        expect![[r#"
        ▸ shell ls
            one
            two
            three
        ✓ shell ls (1 ms)
    "#]],
    );
}
