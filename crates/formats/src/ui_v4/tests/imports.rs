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
