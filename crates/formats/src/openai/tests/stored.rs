//! Conversations from a database.

use std::collections::HashSet;

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::{Record, Transcript};

use crate::import::tests::{lines, setting, transcript};
use crate::openai::{import, stored};
use crate::tests::logs::{corpus, read, sound_log};
use crate::tests::whole;

fn exported(transcript: &Transcript) -> Value {
    let ended = transcript.messages.iter().filter(|it| it.run().is_none_or(|a| !a.is_open()));
    ended.flat_map(stored).collect()
}

#[test]
fn invalid_call_list_stays_unchanged() {
    for raw in ["[{\"id\":", "{\"id\":1}", "7", "[7]", "search(weather)"] {
        let kept = json!([{ "id": "a.step1", "role": "assistant", "content": "", "timestamp": 5, "toolCalls": raw }]);
        let again = transcript(import(&kept, &setting()));
        assert_eq!(exported(&again), kept, "{raw}");
        let events = lines(&import(&kept, &setting()));
        assert!(events.contains(r#""type":"unrecognized","source":"toolCalls""#), "{events}");
    }
    for nothing in [json!(null), json!(""), json!("[]"), json!([])] {
        let kept = json!([{ "id": "a.step1", "role": "assistant", "content": "x", "timestamp": 5, "toolCalls": nothing }]);
        let again = exported(&transcript(import(&kept, &setting())));
        assert_eq!(again[0].get("toolCalls"), None);
    }
}

#[test]
fn calls_as_text_and_as_array_with_all_and_with_missing_fields() {
    let text = r#"[{"id":"call_123","type":"function","function":{"name":"search","arguments":"{\"query\":\"weather\"}"}},{"function":{}},{}]"#;
    let kept = |calls: Value| json!([{ "role": "assistant", "content": null, "toolCalls": calls }, { "role": "tool", "tool_call_id": "call_123", "content": "sunny" }]);
    let from_text = import(&kept(json!(text)), &setting());
    let array: Value = serde_json::from_str(text).unwrap();
    assert_eq!(from_text, import(&kept(array), &setting()));
    expect![[r#"
        r1 {"type":"run_start","agent":"demo","trigger":"user"}
        r1 {"type":"step_start","index":0}
        r1 {"type":"tool_call_start","callId":"call_123","providerCallId":"call_123","toolName":"search","arguments":"{\"query\":\"weather\"}","executor":"agent"}
        r1 {"type":"tool_arguments_done","callId":"call_123","arguments":"{\"query\":\"weather\"}","summary":"","validation":"not_required"}
        r1 {"type":"tool_call_start","callId":"r1.0","toolName":"","executor":"agent"}
        r1 {"type":"tool_arguments_done","callId":"r1.0","arguments":"","summary":"","validation":"not_required"}
        r1 {"type":"tool_call_start","callId":"r1.1","toolName":"","executor":"agent"}
        r1 {"type":"tool_arguments_done","callId":"r1.1","arguments":"","summary":"","validation":"not_required"}
        r1 {"type":"tool_result","callId":"call_123","toolName":"search","ok":true,"result":"sunny"}
        r1 {"type":"tool_result","callId":"r1.0","toolName":"","ok":false,"error":{"code":"tool_interrupted","message":"The call had no result when the conversation was written down."}}
        r1 {"type":"tool_result","callId":"r1.1","toolName":"","ok":false,"error":{"code":"tool_interrupted","message":"The call had no result when the conversation was written down."}}
        r1 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
        r1 {"type":"run_finish","status":"completed"}
    "#]].assert_eq(&lines(&from_text));
}

#[test]
fn empty_step_has_no_message() {
    let log = read(
        r#"
        - {"type":"user_message","messageId":"m1","text":"look"}
        r1 {"type":"run_start","agent":"demo","trigger":"user"}
        r1 {"type":"step_start","index":0}
        r1 {"type":"step_finish","index":0,"finishReason":"stop"}
        r1 {"type":"step_start","index":1}
        r1 {"type":"text_done","partId":"p1","text":"I see."}
        r1 {"type":"run_finish","status":"completed"}
        r2 {"type":"run_start","agent":"demo","trigger":"user"}
        r2 {"type":"step_start","index":0}
        r2 {"type":"run_finish","status":"failed"}
    "#,
    );
    let messages = exported(&whole(&log));
    let ids: Vec<&Value> = messages.as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["m1", "r1.step2"]);
}

fn check_ids(log: &[Record]) {
    let messages = exported(&whole(log));
    let mut ids = HashSet::new();
    for message in messages.as_array().unwrap() {
        assert!(ids.insert(message["id"].as_str().unwrap()), "{} is there twice", message["id"]);
    }
}

#[test]
fn no_two_stored_messages_have_one_id() {
    for (_, log) in corpus() {
        check_ids(&log);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_two_stored_messages_of_a_random_log_have_one_id(log in sound_log(60)) {
        check_ids(&log);
    }
}

#[test]
fn calls_are_found_under_either_name() {
    let calls = json!([{ "id": "c1", "function": { "name": "ls", "arguments": "{}" } }]);
    for (api, stored) in [(Value::Null, json!(calls.to_string())), (calls.clone(), Value::Null)] {
        let message =
            json!({ "role": "assistant", "content": "", "tool_calls": api, "toolCalls": stored });
        let read = import(&json!([message]), &setting());
        let is_call = |it: &&crate::import::Entry| matches!(&it.event, transcript::Event::ToolCallStart { tool_name, .. } if tool_name == "ls");
        assert_eq!(read.iter().filter(is_call).count(), 1);
    }
}
