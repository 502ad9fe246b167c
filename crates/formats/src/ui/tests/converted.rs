//! Recorded results of the real `convertToModelMessages` apply to Callboard's messages where these are the same:
//! calls in every state, each with its log.

use serde_json::{Value, json};
use transcript::{Attachment, Transcript};

use crate::tests::logs::read;
use crate::ui::{Profile, message};

/// The messages of a case, and a log of which they are kept.
const CASES: [(&str, &str, &str); 7] = [
    (
        "convert-approval-requested-last",
        "rm",
        r#"a1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"p\":1}","validation":"not_required"}
           a1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":true}}"#,
    ),
    (
        "convert-approval-requested-then-user",
        "rm",
        r#"a1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"p\":1}","validation":"not_required"}
           a1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":true}}
           - {"type":"user_message","messageId":"u2","text":"never mind"}"#,
    ),
    (
        "convert-approval-denied",
        "rm",
        r#"a1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"p\":1}","validation":"not_required"}
           a1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":true}}
           a1 {"type":"tool_approval_resolved","callId":"c1","decision":"rejected","feedback":"no","by":"user"}"#,
    ),
    (
        "convert-tool-input-streaming",
        "w",
        r#"a1 {"type":"tool_arguments_delta","callId":"c1","offset":0,"delta":"{\"c\":\"P\""}"#,
    ),
    (
        "convert-tool-input-available-pending",
        "w",
        r#"a1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"c\":\"P\"}","validation":"not_required"}"#,
    ),
    (
        "convert-tool-error",
        "w",
        r#"a1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"c\":\"P\"}","validation":"not_required"}
           a1 {"type":"tool_result","callId":"c1","toolName":"w","ok":false,"error":{"code":"tool_error","message":"boom"}}"#,
    ),
    (
        "convert-tool-two-steps",
        "",
        r#"a1 {"type":"thinking_start","partId":"t"}
           a1 {"type":"thinking_done","partId":"t","text":"hm"}
           a1 {"type":"text_start","partId":"p"}
           a1 {"type":"text_done","partId":"p","text":"let me see"}
           a1 {"type":"tool_call_start","callId":"c1","toolName":"w","executor":"server"}
           a1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"c\":\"P\"}","validation":"not_required"}
           a1 {"type":"tool_result","callId":"c1","toolName":"w","ok":true,"result":{"t":1}}
           a1 {"type":"step_finish","index":0,"finishReason":"tool_calls"}
           a1 {"type":"step_start","index":1}
           a1 {"type":"text_start","partId":"q"}
           a1 {"type":"text_done","partId":"q","text":"21"}"#,
    ),
];

#[test]
fn calls_are_kept_in_the_states_that_were_seen() {
    for (name, tool, rest) in CASES {
        let case = case(name);
        let seen = case["messages"].as_array().unwrap();
        let text = &seen[0]["parts"][0]["text"];
        let mut log = format!(
            r#"- {{"type":"user_message","messageId":"u1","text":{text}}}
               a1 {{"type":"run_start","agent":"x","trigger":"user"}}
               a1 {{"type":"step_start","index":0}}
            "#
        );
        if !tool.is_empty() {
            log += &format!(
                r#"a1 {{"type":"tool_call_start","callId":"c1","toolName":"{tool}","executor":"server"}}"#
            );
        }
        let records = read(&format!("{log}\n{rest}"));
        let file_url = |_: &Attachment| String::new();
        let transcript = Transcript::replay(&records);
        let kept = transcript.messages.iter().filter_map(|it| message(it, Profile::V7, &file_url));
        let kept: Vec<Value> = kept.map(comparable).collect();
        let seen: Vec<Value> = seen.iter().cloned().map(comparable).collect();
        assert_eq!(json!(kept), json!(seen), "{name}");
    }
}

fn case(name: &str) -> Value {
    let lines = include_str!("../../../fixtures/ui/converted.jsonl").lines();
    let mut cases = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    cases.find(|it| it["name"] == name).unwrap()
}

/// But for what no model hears of: metadata, ids of questions and thoughts, whether a text is whole, and
/// arguments that are not.
fn comparable(mut message: Value) -> Value {
    message.as_object_mut().unwrap().shift_remove("metadata");
    for part in message["parts"].as_array_mut().unwrap() {
        let fields = part.as_object_mut().unwrap();
        fields.shift_remove("providerMetadata");
        if ["text", "reasoning"].iter().any(|it| fields["type"] == *it) {
            fields.shift_remove("state");
            fields.shift_remove("id");
        }
        if fields.get("state").is_some_and(|it| it == "input-streaming") {
            fields.shift_remove("input");
        }
        if let Some(approval) = fields.get_mut("approval") {
            approval.as_object_mut().unwrap().shift_remove("id");
        }
    }
    message
}
