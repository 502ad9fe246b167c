//! Chat messages, exported and imported, and old ones.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::{Content, Record, Transcript};

use super::{import, message};
use crate::import::tests::{lines, setting, transcript};
use crate::tests::logs::{corpus, sound_log};
use crate::tests::{any_json, whole};

/// What such a message says, without what is ours alone.
fn exported(transcript: &Transcript) -> Value {
    let ended = transcript.messages.iter().filter(|it| it.answer().is_none_or(|a| !a.is_open()));
    let told = ended.filter(|it| !matches!(it.content, Content::Aside(_)));
    told.map(|it| serde_json::to_value(message(it)).unwrap()).collect()
}

fn but_for_ours(mut messages: Value) -> Value {
    let only = |value: &mut Value, fields: &[&str]| {
        value.as_object_mut().unwrap().retain(|name, _| fields.contains(&name.as_str()));
    };
    for message in messages.as_array_mut().unwrap() {
        only(message, &["id", "role", "content", "createdAt", "toolCalls"]);
        for call in
            message.get_mut("toolCalls").into_iter().flat_map(|it| it.as_array_mut().unwrap())
        {
            only(call, &["id", "name", "args", "result", "status", "error", "commentary"]);
        }
    }
    messages
}

fn check_law(log: &[Record]) {
    let once = exported(&whole(log));
    let twice = exported(&transcript(import(&once, &setting())));
    assert_eq!(but_for_ours(twice), but_for_ours(once));
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
        transcript(import(&json!([messages.clone(), messages]), &setting()));
    }
}

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
