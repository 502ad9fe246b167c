//! What the contract's messages say can be read again.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::{Record, Transcript};

use crate::contract::{Message, Statuses, import, messages};
use crate::import::tests::{lines, setting, transcript};
use crate::tests::logs::{corpus, sound_log};
use crate::tests::{any_json, whole};

fn exported(transcript: &Transcript) -> Vec<Message> {
    let ended = transcript.messages.iter().filter(|it| it.answer().is_none_or(|a| !a.is_open()));
    ended.flat_map(|it| messages(it, Statuses::Lasting)).collect()
}

/// Arguments that are no object are not said.
fn but_for_odd_arguments(mut messages: Vec<Message>) -> Value {
    for call in messages.iter_mut().flat_map(|it| &mut it.metadata.tool_calls) {
        call.args.get_or_insert_default();
    }
    serde_json::to_value(messages).unwrap()
}

fn check_law(log: &[Record]) {
    let once = exported(&whole(log));
    let twice = exported(&transcript(import(&json!(once), &setting())));
    assert_eq!(but_for_odd_arguments(twice), but_for_odd_arguments(once));
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
        2 {"type":"tool_result","callId":"c9","toolName":"find","ok":true,"durationMs":0}
        2 {"type":"unrecognized","source":"message","raw":"{\"id\":\"4\",\"role\":\"robot\"}"}
        2 {"type":"tool_result","callId":"2.0","toolName":"list","ok":false,"error":{"code":"tool_interrupted","message":"The call had no result when the conversation was written down."},"durationMs":0}
        2 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
        2 {"type":"run_finish","status":"completed","durationMs":0}
    "#]].assert_eq(&lines(&import(&kept, &setting())));
}
