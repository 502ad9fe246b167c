//! Chat messages, exported and imported, and old ones.

use expect_test::expect;
use serde_json::{Value, json};
use transcript::{Millis, Record, Seq, SessionId, Transcript};

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
        a {"type":"tool_call_start","callId":"1","providerCallId":"1","toolName":"search_notes","arguments":"{\"q\":\"x\"}","executor":"agent"}
        a {"type":"tool_arguments_done","callId":"1","arguments":"{\"q\":\"x\"}","summary":"","validation":"not_required"}
        a {"type":"tool_result","callId":"1","toolName":"search_notes","ok":true,"result":3}
        a {"type":"step_finish","index":0,"finishReason":"tool-calls"}
        a {"type":"step_start","index":1}
        a {"type":"text_start","partId":"a.1"}
        a {"type":"text_done","partId":"a.1","text":"Found some.","phase":"commentary"}
        a {"type":"tool_call_start","callId":"2","providerCallId":"2","toolName":"get_note","arguments":"{}","executor":"agent"}
        a {"type":"tool_arguments_done","callId":"2","arguments":"{}","summary":"","validation":"not_required"}
        a {"type":"tool_call_start","callId":"3","providerCallId":"3","toolName":"get_note","executor":"agent"}
        a {"type":"tool_arguments_done","callId":"3","arguments":"","summary":"","validation":"not_required"}
        a {"type":"tool_result","callId":"3","toolName":"get_note","ok":false,"error":{"code":"tool_error","message":"no such note"}}
        a {"type":"step_finish","index":1,"finishReason":"tool-calls"}
        a {"type":"step_start","index":2}
        a {"type":"text_start","partId":"a.2"}
        a {"type":"text_done","partId":"a.2","text":"Here it is. I'll search.","phase":"final"}
        a {"type":"tool_result","callId":"2","toolName":"get_note","ok":false,"error":{"code":"tool_interrupted","message":"The call had no result when the conversation was written down."}}
        a {"type":"step_finish","index":2,"finishReason":"stop"}
        a {"type":"run_finish","status":"completed"}
        b {"type":"run_start","agent":"demo","trigger":"user"}
        b {"type":"step_start","index":0}
        b {"type":"text_start","partId":"b.0"}
        b {"type":"text_done","partId":"b.0","text":"Plain.","phase":"final"}
        b {"type":"step_finish","index":0,"finishReason":"stop"}
        b {"type":"run_finish","status":"completed"}
    "#]].assert_eq(&lines(&import(&old, &setting())));
}

#[test]
fn links_survive_export_and_import() {
    let text = |it: &str| json!({ "type": "text", "text": it });
    let link = json!({ "type": "file", "mediaType": "image/png", "url": "https://example.com/" });
    let data = json!({ "type": "data-mood", "data": "good" });
    let sent = [
        ("", json!({ "parts": [link] })),
        ("a", json!({ "parts": [link, text("a")] })),
        ("a\n\nb", json!({ "parts": [text("a"), data, text("b")] })),
        ("a", json!({ "metadata": { "mood": "good" } })),
    ];
    for (content, sent) in sent {
        let message = json!([{ "id": "u", "role": "user", "content": content, "sent": sent }]);
        let once = exported(&message);
        assert_eq!((&once[0]["content"], &once[0]["sent"]), (&json!(content), &sent));
        assert_eq!(exported(&once), once);
    }
}

fn exported(messages: &Value) -> Value {
    let entries = (1..).zip(import(messages, &setting()));
    let records = entries.map(|(seq, it)| {
        Record::new(Seq(seq), Millis(0), SessionId::new("s"), it.response_id, it.event)
    });
    let mut transcript = Transcript::whole();
    transcript.extend(&records.collect::<Vec<_>>());
    json!(transcript.messages.iter().map(super::message).collect::<Vec<_>>())
}
