//! What the contract's messages say can be read again.

use expect_test::expect;
use serde_json::json;

use crate::contract::import;
use crate::import::tests::{lines, setting};

#[test]
fn what_others_have_kept() {
    let kept = json!([
        { "id": "1", "role": "user", "content": "look" },
        { "id": "2", "role": "assistant", "content": "", "metadata": { "tool_calls": [{ "name": "list" }] } },
        { "id": "3", "role": "tool", "content": "x", "metadata": { "tool_call_id": "c9", "tool_name": "find", "tool_result": null } },
        { "id": "4", "role": "robot" },
    ]);
    expect![[r#"
        - {"type":"user_message","messageId":"1","text":"look"}
        2 {"type":"run_start","agent":"demo","trigger":"user"}
        2 {"type":"step_start","index":0}
        2 {"type":"tool_call_start","callId":"2.0","toolName":"list","executor":"agent"}
        2 {"type":"tool_arguments_done","callId":"2.0","arguments":"","summary":"","validation":"not_required"}
        2 {"type":"tool_call_start","callId":"c9","providerCallId":"c9","toolName":"find","executor":"agent"}
        2 {"type":"tool_arguments_done","callId":"c9","arguments":"","summary":"","validation":"not_required"}
        2 {"type":"tool_result","callId":"c9","toolName":"find","ok":true,"summary":"x"}
        2 {"type":"unrecognized","source":"message","raw":"{\"id\":\"4\",\"role\":\"robot\"}"}
        2 {"type":"tool_result","callId":"2.0","toolName":"list","ok":false,"error":{"code":"tool_interrupted","message":"The call had no result when the conversation was written down."}}
        2 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
        2 {"type":"run_finish","status":"completed"}
    "#]].assert_eq(&lines(&import(&kept, &setting())));
}
