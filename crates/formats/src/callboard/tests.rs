//! Chat messages, exported and imported, and old ones.

use expect_test::expect;
use serde_json::json;

use super::import;
use crate::import::tests::{lines, setting};

#[test]
fn old_messages() {
    let calls = json!([
        { "id": "1", "name": "search_notes", "args": { "q": "x" }, "status": "completed", "result": 3, "commentary": "I'll search." },
        { "id": "2", "name": "get_note", "args": {}, "status": "running", "commentary": "Found some." },
        { "id": "3", "name": "get_note", "status": "error", "error": "no such note" },
    ]);
    let old = json!([
        { "id": "u", "role": "user", "content": "find", "createdAt": "2026-01-01T00:00:00.000Z" },
        { "id": "a", "role": "assistant", "content": "I'll search. Found some.\n\nHere it is. I'll search.", "toolCalls": calls },
        { "id": "b", "role": "assistant", "content": "Plain." },
    ]);
    expect![[r#"
        - {"type":"user_message","messageId":"u","text":"find"}
        a {"type":"run_start","agent":"demo","trigger":"user"}
        a {"type":"step_start","index":0}
        a {"type":"text_start","partId":"a.0"}
        a {"type":"text_done","partId":"a.0","text":"I'll search.","phase":"commentary"}
        a {"type":"tool_call_start","callId":"1","providerCallId":"1","toolName":"search_notes","executor":"agent"}
        a {"type":"tool_arguments_done","callId":"1","arguments":"{\"q\":\"x\"}","summary":"","validation":"not_required"}
        a {"type":"tool_result","callId":"1","toolName":"search_notes","ok":true,"result":3,"durationMs":0}
        a {"type":"step_finish","index":0,"finishReason":"tool-calls"}
        a {"type":"step_start","index":1}
        a {"type":"text_start","partId":"a.1"}
        a {"type":"text_done","partId":"a.1","text":"Found some.","phase":"commentary"}
        a {"type":"tool_call_start","callId":"2","providerCallId":"2","toolName":"get_note","executor":"agent"}
        a {"type":"tool_arguments_done","callId":"2","arguments":"{}","summary":"","validation":"not_required"}
        a {"type":"tool_call_start","callId":"3","providerCallId":"3","toolName":"get_note","executor":"agent"}
        a {"type":"tool_arguments_done","callId":"3","arguments":"","summary":"","validation":"not_required"}
        a {"type":"tool_result","callId":"3","toolName":"get_note","ok":false,"error":{"code":"tool_error","message":"no such note"},"durationMs":0}
        a {"type":"step_finish","index":1,"finishReason":"tool-calls"}
        a {"type":"step_start","index":2}
        a {"type":"text_start","partId":"a.2"}
        a {"type":"text_done","partId":"a.2","text":"Here it is. I'll search.","phase":"final"}
        a {"type":"tool_result","callId":"2","toolName":"get_note","ok":false,"error":{"code":"tool_interrupted","message":"The call had no result when the conversation was written down."},"durationMs":0}
        a {"type":"step_finish","index":2,"finishReason":"stop"}
        a {"type":"run_finish","status":"completed","durationMs":0}
        b {"type":"run_start","agent":"demo","trigger":"user"}
        b {"type":"step_start","index":0}
        b {"type":"text_start","partId":"b.0"}
        b {"type":"text_done","partId":"b.0","text":"Plain.","phase":"final"}
        b {"type":"step_finish","index":0,"finishReason":"stop"}
        b {"type":"run_finish","status":"completed","durationMs":0}
    "#]].assert_eq(&lines(&import(&old, &setting())));
}
