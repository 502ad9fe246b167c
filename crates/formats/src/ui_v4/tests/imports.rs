//! Messages of version 4 and rows, read.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::{Answer, Message, Record, Transcript};

use crate::import::tests::{lines, setting, transcript};
use crate::tests::logs::{corpus, sound_log};
use crate::tests::{any_json, whole};
use crate::ui_v4;

fn exported(transcript: &Transcript) -> Vec<Value> {
    let file_url = |file: &transcript::Attachment| format!("/api/blobs/{}", file.blob);
    let ended = transcript.messages.iter().filter(|it| it.answer().is_none_or(|a| !a.is_open()));
    let told = ended.filter(|it| it.answer().is_none_or(|a| !leaks_of_a_sub_agent(a)));
    told.filter_map(|it: &Message| ui_v4::message(it, &file_url)).collect()
}

/// That a text is the arguments of a call cannot be told without the call.
fn leaks_of_a_sub_agent(answer: &Answer) -> bool {
    answer.texts().any(|(_, text)| text.leaked) && answer.parts.iter().any(|it| it.parent.is_some())
}

/// Which of an answer's annotations stands first is not said, nor is the number of an aside.
fn but_for_places(mut messages: Vec<Value>) -> Value {
    for annotations in messages.iter_mut().filter_map(|it| it.get_mut("annotations")) {
        let annotations = annotations.as_array_mut().unwrap();
        for data in annotations.iter_mut().filter(|it| it["type"].is_string()) {
            if data["type"] == "data-notice" || data["type"] == "data-unrecognized" {
                data["id"] = Value::Null;
            }
        }
        annotations.sort_by_key(Value::to_string);
    }
    Value::from(messages)
}

fn check_law(log: &[Record]) {
    let once = exported(&whole(log));
    let twice = exported(&transcript(ui_v4::import(&json!(once), &setting())));
    assert_eq!(but_for_places(twice), but_for_places(once));
}

#[test]
fn a_conversation_exported_and_imported_is_the_same() {
    for (_, log) in corpus() {
        check_law(&log);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_random_conversation_exported_and_imported_is_the_same(log in sound_log(60)) {
        check_law(&log);
    }

    #[test]
    fn nothing_is_too_odd_to_be_imported(messages in any_json()) {
        let messages = json!([messages.clone(), messages]);
        transcript(ui_v4::import(&messages, &setting()));
        transcript(ui_v4::import_rows(&messages, &setting()));
    }
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
        r1 {"type":"tool_result","callId":"zz","toolName":"","ok":true,"result":0,"durationMs":0}
        r1 {"type":"run_finish","status":"completed","durationMs":0}
        - {"type":"user_message","messageId":"u1","text":"and now?"}
        x1 {"type":"run_start","agent":"demo","trigger":"user"}
        x1 {"type":"step_start","index":0}
        x1 {"type":"tool_call_start","callId":"c1","providerCallId":"c1","toolName":"rm","executor":"agent"}
        x1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"p\":","summary":"","validation":"not_required"}
        x1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":false}}
        x1 {"type":"tool_approval_resolved","callId":"c1","decision":"rejected","by":"import"}
        x1 {"type":"tool_call_start","callId":"c2","providerCallId":"c2","toolName":"ls","executor":"agent"}
        x1 {"type":"tool_arguments_done","callId":"c2","arguments":"{}","summary":"","validation":"not_required"}
        x1 {"type":"tool_result","callId":"c1","toolName":"rm","ok":false,"error":{"code":"tool_interrupted","message":"aborted"},"durationMs":0}
        x1 {"type":"unrecognized","source":"entity","raw":"{\"id\":\"q\",\"entity\":\"ODD\"}"}
        x1 {"type":"tool_result","callId":"c2","toolName":"ls","ok":false,"error":{"code":"tool_interrupted","message":"The call had no result when the conversation was written down."},"durationMs":0}
        x1 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
        x1 {"type":"run_finish","status":"completed","durationMs":0}
    "#]].assert_eq(&lines(&ui_v4::import_rows(&rows, &setting())));
}
