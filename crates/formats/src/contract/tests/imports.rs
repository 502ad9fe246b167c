//! Messages of the contract can be imported again.

use expect_test::expect;
use serde_json::{Value, json};

use crate::contract::{Message, Role, StatusType, Statuses, import, messages};
use crate::import::tests::{lines, setting, transcript};

#[test]
fn messages_of_other_programs_are_imported() {
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

/// Other programs may send the error before the reason of the stop.
#[test]
fn an_error_and_a_stop_are_of_one_run_in_either_order() {
    let continuation =
        json!({ "should_continue": false, "stop_reason": "error", "resolved_by": "Errors" });
    let error = json!({ "id": "e1", "role": "status", "content": "No service.", "metadata": { "status_type": "error" } });
    let stop = json!({ "id": "status_cont_001", "role": "status", "content": "Agent stopped: error",
        "metadata": { "status_type": "continuation", "continuation": continuation } });
    let read = |statuses: [&Value; 2]| -> Vec<String> {
        let kept = json!([
            { "id": "1", "role": "user", "content": "look" },
            { "id": "2", "role": "assistant", "content": "I will look." },
            statuses[0],
            statuses[1],
            { "id": "3", "role": "assistant", "content": "Again." },
        ]);
        let events = lines(&import(&kept, &setting()));
        let mut events: Vec<String> = events
            .lines()
            .filter(|it| ["run_", "continuation"].iter().any(|word| it.contains(word)))
            .map(|it| it.trim().to_owned())
            .collect();
        events.sort();
        events
    };
    let events = read([&error, &stop]);
    assert_eq!(events, read([&stop, &error]));
    expect![[r#"
        2 {"type":"continuation","shouldContinue":false,"stopReason":"error","resolvedBy":"Errors"}
        2 {"type":"run_finish","status":"failed","error":{"code":"internal_error","message":"No service."}}
        2 {"type":"run_start","agent":"demo","trigger":"user"}
        3 {"type":"run_finish","status":"completed"}
        3 {"type":"run_start","agent":"demo","trigger":"user"}"#]].assert_eq(&events.join("\n"));
}

#[test]
fn an_error_outside_of_runs_is_a_notice() {
    let error = json!({ "id": "e1", "role": "status", "content": "No service.", "metadata": { "status_type": "error" } });
    let kept = json!([error, { "id": "1", "role": "user", "content": "look" }, { "id": "2", "role": "assistant", "content": "Yes." }]);
    let events = lines(&import(&kept, &setting()));
    assert!(
        events.contains(r#"{"type":"notice","level":"error","text":"No service."}"#),
        "{events}"
    );
    assert!(events.contains(r#"{"type":"run_finish","status":"completed"}"#), "{events}");
}

#[test]
fn a_thinking_status_is_thinking_of_the_answer_that_follows() {
    let thought = json!({ "id": "t1", "role": "status", "content": "Where is it?", "metadata": { "status_type": "thinking" } });
    let kept = json!([
        { "id": "1", "role": "user", "content": "look" },
        thought,
        { "id": "2", "role": "assistant", "content": "There." },
    ]);
    let received = transcript(import(&kept, &setting()));
    let out: Vec<Message> =
        received.messages.iter().flat_map(|it| messages(it, Statuses::All)).collect();
    let roles: Vec<_> =
        out.iter().map(|it| (it.role, it.metadata.status_type, it.content.as_str())).collect();
    let thinking = (Role::Status, Some(StatusType::Thinking), "Where is it?");
    assert_eq!(roles, [(Role::User, None, "look"), thinking, (Role::Assistant, None, "There.")]);
}
