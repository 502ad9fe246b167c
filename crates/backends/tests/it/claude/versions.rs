//! Lines of other versions of Claude Code: missing fields, and notices that are not part of the
//! conversation.

use backends::{ProgramEffect, RunEffect};
use serde_json::{Value, json};
use transcript::{ErrorCode, Event};

use super::stage::Stage;

fn at_work() -> Stage {
    let mut stage = Stage::new();
    stage.start(&json!({ "role": "user", "content": "hi" }));
    stage.line(r#"{"type":"system","subtype":"init","session_id":"c1"}"#);
    stage
}

fn call(stage: &mut Stage, id: &str, input: Value) {
    let block = json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input });
    let line = json!({ "type": "assistant", "message": { "id": "m1", "content": [block] } });
    stage.line(&line.to_string());
}

/// Sends a permission request, and returns the provider's id of the call and the reason.
fn asked(stage: &mut Stage, about: Value) -> (Option<String>, Option<String>) {
    let mut request = json!({ "subtype": "can_use_tool", "tool_name": "Bash" });
    request.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
    let line =
        json!({ "type": "control_request", "request_id": about.to_string(), "request": request });
    let effects = stage.line(&line.to_string());
    let Some(ProgramEffect::Ask { call_id, reason, .. }) = effects.last() else {
        panic!("{effects:?}")
    };
    let events = &stage.run.as_ref().unwrap().events;
    let provider_id = events.iter().find_map(|it| match it {
        Event::ToolCallStart { call_id: id, provider_call_id, .. } if id == call_id => {
            provider_call_id.clone()
        }
        _ => None,
    });
    (provider_id, reason.clone())
}

#[test]
fn a_request_without_an_id_is_about_the_newest_equal_call() {
    let mut stage = at_work();
    let (ls, rm) = (json!({ "command": "ls" }), json!({ "command": "rm x" }));
    call(&mut stage, "t1", ls.clone());
    call(&mut stage, "t2", rm.clone());
    call(&mut stage, "t3", rm.clone());
    for (input, n, expected) in [(&rm, 1, "t3"), (&rm, 2, "t2"), (&ls, 3, "t1")] {
        let (id, _) = asked(&mut stage, json!({ "input": input, "n": n }));
        assert_eq!(id.as_deref(), Some(expected));
    }
    // A request that matches no known call.
    let (id, _) = asked(&mut stage, json!({ "input": { "command": "cat" } }));
    assert!(id.is_some_and(|it| !["t1", "t2", "t3"].contains(&it.as_str())));
}

#[test]
fn an_approval_states_the_reason_of_the_request() {
    for (about, expected) in [
        (json!({ "tool_use_id": "t" }), None),
        (json!({ "tool_use_id": "t", "decision_reason": "Because." }), Some("Because.")),
        (
            json!({ "tool_use_id": "t", "blocked_path": "/etc/x" }),
            Some("Outside what Claude may do by itself: `/etc/x`"),
        ),
        (
            json!({ "tool_use_id": "t", "blocked_path": "/w/x", "input": { "file_path": "/w/x" } }),
            None,
        ),
        (
            json!({ "tool_use_id": "t", "decision_reason": "Outside.", "blocked_path": "/etc/x" }),
            Some("Outside. (`/etc/x`)"),
        ),
    ] {
        assert_eq!(asked(&mut at_work(), about).1.as_deref(), expected);
    }
}

#[test]
fn a_denial_by_rule_is_recognized_by_its_text() {
    for (text, code) in [
        ("Permission to use Bash has been denied because of a rule.", ErrorCode::ToolDenied),
        (
            "Claude requested permissions to use Bash, but you haven't granted it yet.",
            ErrorCode::ToolDenied,
        ),
        ("Exit code 1\nPermission to use it has been denied", ErrorCode::ToolError),
    ] {
        let mut stage = at_work();
        call(&mut stage, "t1", json!({ "command": "ls" }));
        let block = json!({
            "type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": true,
        });
        stage.line(&json!({ "type": "user", "message": { "content": [block] } }).to_string());
        stage.line(r#"{"type":"result","subtype":"success","is_error":false}"#);
        let call = stage.closed[0].answer.calls().next().unwrap().clone();
        assert_eq!(call.outcome.unwrap().error.unwrap().code, code, "{text}");
    }
}

#[test]
fn notices_report_limits_failed_hooks_logins_and_modes() {
    let limit = |status: &str| json!({ "type": "rate_limit_event", "rate_limit_info": { "status": status, "resetsAt": 600 } });
    let hook = |outcome: &str| {
        json!({ "type": "system", "subtype": "hook_response", "hook_name": "Stop", "outcome": outcome,
                "stderr": "no" })
    };
    let login = |error: Value| json!({ "type": "auth_status", "output": [], "error": error });
    let mode = json!({ "type": "system", "subtype": "status", "permissionMode": "plan" });
    for (line, expected) in [
        (limit("allowed"), None),
        (
            limit("allowed_warning"),
            Some("The account's usage limit is nearly reached. It resets in 9 minutes."),
        ),
        (limit("rejected"), Some("The account's usage limit is reached. It resets in 9 minutes.")),
        (hook("success"), None),
        (hook("error"), Some("Claude Code's hook Stop failed: no")),
        (login(Value::Null), None),
        (login(json!("expired")), Some("Claude Code could not log in: expired")),
        (mode, Some("Claude Code's permission mode is plan now.")),
    ] {
        let effects = at_work().line(&line.to_string());
        let told = effects.iter().find_map(|it| match it {
            ProgramEffect::Run(RunEffect::Emit(Event::Notice { text, .. })) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(told, expected, "{line}");
        assert_eq!(effects.len(), usize::from(expected.is_some()));
    }
}
