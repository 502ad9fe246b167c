//! What is kept of a conversation can be read again.

use expect_test::expect;
use serde_json::json;

use crate::import::tests::{lines, setting};
use crate::ui::{self};

#[test]
fn what_others_have_kept() {
    let messages = json!([
        { "id": "u1", "role": "user", "parts": [{ "type": "text", "text": "hi" }, { "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA==" }] },
        { "id": "a1", "role": "assistant", "parts": [
            { "type": "step-start" },
            { "type": "source-url", "sourceId": "s1", "url": "https://e.com" },
            { "type": "dynamic-tool", "toolName": "mcp_x", "toolCallId": "c1", "state": "input-available", "input": { "k": 1 } },
        ] },
    ]);
    expect![[r#"
        - {"type":"user_message","messageId":"u1","text":"hi","sent":{"parts":[{"type":"text","text":"hi"}]}}
        - {"type":"notice","level":"info","text":"Files that did not come along: 1"}
        a1 {"type":"run_start","agent":"demo","trigger":"user"}
        a1 {"type":"step_start","index":0}
        a1 {"type":"unrecognized","source":"part","raw":"{\"type\":\"source-url\",\"sourceId\":\"s1\",\"url\":\"https://e.com\"}"}
        a1 {"type":"tool_call_start","callId":"c1","providerCallId":"c1","toolName":"mcp_x","executor":"agent"}
        a1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"k\":1}","summary":"","validation":"not_required"}
        a1 {"type":"tool_result","callId":"c1","toolName":"mcp_x","ok":false,"error":{"code":"tool_interrupted","message":"The call had no result when the conversation was written down."},"durationMs":0}
        a1 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
        a1 {"type":"run_finish","status":"completed","durationMs":0}
    "#]].assert_eq(&lines(&ui::import(&messages, &setting())));
}
