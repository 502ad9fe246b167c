//! Messages of version 4 and rows, read.

use expect_test::expect;
use serde_json::{Value, json};
use transcript::Transcript;

use crate::import::tests::{lines, setting, transcript};
use crate::ui_v4;

fn exported(transcript: &Transcript) -> Vec<Value> {
    let file_url = |file: &transcript::Attachment| format!("/api/blobs/{}", file.blob);
    transcript.messages.iter().filter_map(|it| ui_v4::message(it, &file_url)).collect()
}

/// The example of the document that the format comes from. Its text shows two assistant messages; its
/// algorithm makes one, and the algorithm is believed.
#[test]
fn the_example_of_a_question_about_the_weather() {
    let rows: Value =
        serde_json::from_str(include_str!("../../../fixtures/ui_v4/weather.json")).unwrap();
    let mut newest_first = exported(&transcript(ui_v4::import_rows(&rows, &setting())));
    newest_first.reverse();
    for message in &mut newest_first {
        message.as_object_mut().unwrap().shift_remove("createdAt");
    }
    let text = serde_json::to_string_pretty(&newest_first).unwrap();
    expect_test::expect_file!["../../../fixtures/ui_v4/weather.newest_first.json"]
        .assert_eq(&(text + "\n"));
}

#[test]
fn content_outside_parts_precedes_them() {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let call = json!({ "type": "tool-invocation", "toolInvocation": {
        "state": "result", "toolCallId": "c1", "toolName": "ls", "args": {}, "result": "a" } });
    let texts = |content: &str, parts: &[Value]| -> Vec<String> {
        let message =
            json!({ "id": "a1", "role": "assistant", "content": content, "parts": parts });
        let read = exported(&transcript(ui_v4::import(&json!([message]), &setting())));
        let parts = read[0]["parts"].as_array().unwrap().clone();
        parts.iter().map(|it| it["text"].as_str().unwrap_or("a call").to_owned()).collect()
    };
    assert_eq!(texts("I'll look.", std::slice::from_ref(&call)), ["I'll look.", "a call"]);
    assert_eq!(texts("", std::slice::from_ref(&call)), ["a call"]);
    // Version 4 joins the texts of all steps, with or without anything between them.
    for content in ["I'll look. There is a.", "I'll look.There is a.", "There is a."] {
        let parts = [text("I'll look."), call.clone(), text("There is a.")];
        assert_eq!(texts(content, &parts), ["I'll look.", "a call", "There is a."], "{content}");
    }
    let parts = [text("One."), call.clone(), text("Two."), text("Three.")];
    assert_eq!(texts("One.\n\nThree.", &parts), ["One.", "a call", "Two.", "Three."]);
    assert_eq!(texts("Other.", &[text("There is a.")]), ["Other.", "There is a."]);
}

#[test]
fn undated_messages_are_read_oldest_first() {
    let read = |roles: &[&str]| -> Vec<Value> {
        let message = |(n, role): (usize, &&str)| json!({ "id": n.to_string(), "role": role, "content": "Words." });
        let messages: Vec<Value> = roles.iter().enumerate().map(message).collect();
        let read = exported(&transcript(ui_v4::import(&json!(messages), &setting())));
        read.iter().map(|it| it["id"].clone()).collect()
    };
    assert_eq!(read(&["assistant", "assistant", "user"]), ["2", "1", "0"]);
    assert_eq!(read(&["user", "assistant", "assistant"]), ["0", "1", "2"]);
    assert_eq!(read(&["user", "assistant", "user"]), ["0", "1", "2"]);
    assert_eq!(read(&["system", "assistant", "user"]), ["0", "1", "2"]);
    assert_eq!(read(&["assistant"]), ["0"]);
}

fn row(id: &str, entity: &str, content: &str, minute: usize) -> Value {
    let date = format!("2024-01-01T00:{minute:02}:00.000Z");
    json!({ "id": id, "entity": entity, "content": content, "creationDate": date })
}

/// An answer has the time of its final text, a placeholder that of what was gathered last.
#[test]
fn messages_have_the_times_of_their_last_rows() {
    let mut calls = row("x1", "AI_TOOL", "Let me look.", 1);
    calls["toolCalls"] = json!([{ "id": "c1", "name": "ls", "arguments": "{}" }]);
    let result = row("t1", "TOOL", r#"{"tool_call_id":"c1","content":"a"}"#, 2);
    let mut rows = vec![row("u1", "USER", "look", 0), calls, result];
    let created = |rows: &[Value]| -> Vec<Value> {
        let messages = exported(&transcript(ui_v4::import_rows(&json!(rows), &setting())));
        messages.iter().map(|it| it["createdAt"].clone()).collect()
    };
    assert_eq!(created(&rows), ["2024-01-01T00:00:00.000Z", "2024-01-01T00:01:00.000Z"]);
    rows.push(row("x2", "AI_MESSAGE", "There is a.", 3));
    assert_eq!(created(&rows), ["2024-01-01T00:00:00.000Z", "2024-01-01T00:03:00.000Z"]);
}

#[test]
fn rows_of_one_moment_may_be_newest_first() {
    let rows = [row("u1", "USER", "look", 0), row("x1", "AI_MESSAGE", "I see.", 0)];
    let rows: Vec<Value> = rows
        .into_iter()
        .chain([row("u2", "USER", "and?", 1), row("x2", "AI_MESSAGE", "No.", 1)])
        .collect();
    let newest_first: Vec<Value> = rows.iter().rev().cloned().collect();
    let read = |rows: &[Value]| exported(&transcript(ui_v4::import_rows(&json!(rows), &setting())));
    assert_eq!(read(&newest_first), read(&rows));
}

#[test]
fn json_as_user_text_stays_text() {
    for text in [r#"{"a":1}"#, "[1]", r#"{"content":7}"#, "{"] {
        let rows = [row("u1", "USER", text, 0), row("x1", "AI_MESSAGE", text, 1)];
        let read = exported(&transcript(ui_v4::import_rows(&json!(rows), &setting())));
        assert_eq!((&read[0]["content"], &read[1]["content"]), (&json!(text), &json!(text)));
    }
    let wrapped = row("u1", "USER", r#"{"content":"hi"}"#, 0);
    let read = exported(&transcript(ui_v4::import_rows(&json!([wrapped]), &setting())));
    assert_eq!(read[0]["content"], "hi");
}

#[test]
fn failure_keeps_the_known_details() {
    let failed = |result: Value| {
        let invocation = json!({ "state": "result", "toolCallId": "c1", "toolName": "ls", "args": {}, "result": result });
        let message = json!({
            "id": "a1", "role": "assistant", "content": "",
            "parts": [{ "type": "tool-invocation", "toolInvocation": invocation }],
            "annotations": [{ "toolCallId": "c1", "toolState": "failed" }],
        });
        let read = exported(&transcript(ui_v4::import(&json!([message]), &setting())));
        read[0]["parts"][0]["toolInvocation"]["result"]["error"]["message"].clone()
    };
    assert_eq!(failed(json!({ "error": { "message": "gone" } })), "gone");
    assert_eq!(failed(json!("gone")), "gone");
    assert_eq!(failed(json!({ "error": null })), "The call failed.");
    assert_eq!(failed(Value::Null), "The call failed.");
}

/// A rejected call has a whole result, one that broke off, or none.
#[test]
fn rejected_call_is_denied_despite_its_result() {
    let mut calls = row("x1", "AI_TOOL", "", 1);
    calls["toolCalls"] =
        json!([{ "id": "c1", "name": "rm", "arguments": "{}", "validated": false }]);
    let result = row("t1", "TOOL", r#"{"tool_call_id":"c1","content":"not today"}"#, 2);
    let mut broken_off = result.clone();
    broken_off["isComplete"] = json!(false);
    for (result, why) in [
        (Some(result), "not today"),
        (Some(broken_off), "not today"),
        (None, "The call was rejected."),
    ] {
        let rows: Vec<Value> =
            [row("u1", "USER", "go", 0), calls.clone()].into_iter().chain(result).collect();
        let read = exported(&transcript(ui_v4::import_rows(&json!(rows), &setting())));
        assert_eq!(read[1]["annotations"][0]["validated"], "rejected");
        assert_eq!(read[1]["annotations"][0]["toolState"], "denied");
        let error = &read[1]["parts"][0]["toolInvocation"]["result"]["error"];
        assert_eq!(error, &json!({ "code": "tool_denied", "message": why }));
    }
}

#[test]
fn rows_that_broke_off() {
    let rows = json!([
        { "id": "t1", "entity": "TOOL", "content": { "toolCallId": "zz", "result": 0 }, "isComplete": true },
        { "id": "u1", "entity": "USER", "content": "and now?" },
        { "id": "x1", "entity": "AI_TOOL", "content": "", "toolCalls": [
            { "id": "c1", "name": "rm", "arguments": "{\"p\":", "validated": false },
            { "id": "c2", "name": "ls", "arguments": "{}" },
        ], "isComplete": false },
        { "id": "t2", "entity": "TOOL", "content": "{\"tool_call_id\":\"c1\",\"content\":\"aborted\"}", "isComplete": false },
        { "id": "q", "entity": "ODD" },
    ]);
    expect![[r#"
        r1 {"type":"run_start","agent":"demo","trigger":"user"}
        r1 {"type":"tool_call_start","callId":"zz","providerCallId":"zz","toolName":"","executor":"agent"}
        r1 {"type":"tool_arguments_done","callId":"zz","arguments":"","summary":"","validation":"not_required"}
        r1 {"type":"tool_result","callId":"zz","toolName":"","ok":true,"result":0}
        r1 {"type":"run_finish","status":"completed"}
        - {"type":"user_message","messageId":"u1","text":"and now?"}
        x1 {"type":"run_start","agent":"demo","trigger":"user"}
        x1 {"type":"step_start","index":0}
        x1 {"type":"tool_call_start","callId":"c1","providerCallId":"c1","toolName":"rm","arguments":"{\"p\":","executor":"agent"}
        x1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"p\":","summary":"","validation":"not_required"}
        x1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":false}}
        x1 {"type":"tool_approval_resolved","callId":"c1","decision":"rejected","by":"import"}
        x1 {"type":"tool_call_start","callId":"c2","providerCallId":"c2","toolName":"ls","arguments":"{}","executor":"agent"}
        x1 {"type":"tool_arguments_done","callId":"c2","arguments":"{}","summary":"","validation":"not_required"}
        x1 {"type":"tool_result","callId":"c1","toolName":"rm","ok":false,"error":{"code":"tool_denied","message":"aborted"}}
        x1 {"type":"unrecognized","source":"entity","raw":"{\"id\":\"q\",\"entity\":\"ODD\"}"}
        x1 {"type":"tool_result","callId":"c2","toolName":"ls","ok":false,"error":{"code":"tool_interrupted","message":"The call had no result when the conversation was written down."}}
        x1 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
        x1 {"type":"output_cancelled","reason":"import"}
        x1 {"type":"run_finish","status":"cancelled"}
    "#]].assert_eq(&lines(&ui_v4::import_rows(&rows, &setting())));
}
