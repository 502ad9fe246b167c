//! Results of Pi's tools: failed, interrupted, long and with pictures or details.

use backends::RunInput;
use expect_test::expect;
use serde_json::{Value, json};
use transcript::{ErrorCode, Event};

use super::examples::{check, working};

#[test]
fn a_command_that_times_out_keeps_its_output() {
    let mut stage = working();
    stage.call("bash", &json!({ "command": "seq 9" }));
    let text = "8\n9\n\n\n[Showing lines 8-9 of 9. Full output: /tmp/x.log]\n\n\
                Command timed out after 3 seconds";
    stage.emit(json!({ "type": "tool_execution_end", "toolCallId": "c", "toolName": "bash",
        "result": { "content": [{ "type": "text", "text": text }] }, "isError": true }));
    check(
        &stage,
        1,
        expect![[r#"
            tool_result {"callId":"r1.1","toolName":"bash","ok":false,"output":"8\n9\n","error":{"code":"tool_timeout","message":"Command timed out after 3 seconds"}}
        "#]],
    );
}

#[test]
fn a_result_with_a_picture() {
    let mut stage = working();
    stage.call("read", &json!({ "path": "a.png" }));
    let content = json!([{ "type": "text", "text": "Read image file" },
        { "type": "image", "data": "QQ==", "mimeType": "image/png" }]);
    stage.emit(json!({ "type": "tool_execution_end", "toolCallId": "c", "toolName": "read",
        "result": { "content": content } }));
    check(
        &stage,
        1,
        expect![[r#"
            tool_result {"callId":"r1.1","toolName":"read","ok":true,"result":{"content":[{"type":"text","text":"Read image file"},{"type":"image","data":"QQ==","mimeType":"image/png"}]}}
        "#]],
    );
}

#[test]
fn details_of_a_tool_result_are_kept() {
    let end = |is_error: bool, details: Value| {
        let mut stage = working();
        stage.call("edit", &json!({ "path": "a" }));
        stage.emit(json!({ "type": "tool_execution_end", "toolCallId": "c", "toolName": "edit",
            "isError": is_error, "result": { "content": [{ "type": "text", "text": "Said." }],
            "details": details } }));
        let event = stage.session.records.pop().unwrap().event;
        let Event::ToolResult { result, truncated, .. } = event else { panic!("{event:?}") };
        (result, truncated.is_some())
    };
    let details = json!({ "diff": "-1 a\n+1 b", "firstChangedLine": 1 });
    let kept = json!({ "content": "Said.", "details": details });
    assert_eq!(end(false, details.clone()), (Some(kept), false));
    assert_eq!(end(true, details.clone()), (Some(json!({ "details": details })), false));
    for nothing in [json!({}), Value::Null] {
        assert_eq!(end(false, nothing.clone()), (Some(json!("Said.")), false));
        assert_eq!(end(true, nothing), (None, false));
    }
    let cut = json!({ "truncation": { "truncated": true, "totalBytes": 9, "totalLines": 3,
        "outputBytes": 5 } });
    assert_eq!(end(false, cut), (Some(json!("Said.")), true));
}

#[test]
fn the_message_of_an_interrupted_tool_is_kept() {
    let end = |tool: &str, words: &str| {
        let mut stage = working();
        stage.call(tool, &json!({}));
        stage.give(RunInput::Interrupt);
        stage.emit(json!({ "type": "tool_execution_end", "toolCallId": "c", "toolName": tool,
            "isError": true, "result": { "content": [{ "type": "text", "text": words }] } }));
        let results = stage.session.records.iter().filter_map(|it| match &it.event {
            Event::ToolResult { error, .. } => error.clone(),
            _ => None,
        });
        let [error] = &results.collect::<Vec<_>>()[..] else { panic!("one result") };
        assert_eq!(error.code, ErrorCode::ToolInterrupted);
        error.message.clone()
    };
    let plain = "Tool call was interrupted by the user";
    for (tool, words) in
        [("edit", "Operation aborted"), ("bash", "a\n\nCommand aborted"), ("x", "")]
    {
        assert_eq!(end(tool, words), plain);
    }
    for tool in ["edit", "bash"] {
        assert_eq!(
            end(tool, "Half of it is done."),
            format!("{plain}. It said: Half of it is done.")
        );
    }
}
