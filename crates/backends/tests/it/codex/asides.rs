//! Repeated and late lines of Codex, and notifications that are not about items.

use std::sync::Arc;

use backends::codex::{Settings, backend};
use backends::{Launch, RunInput, Verdict};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::open_thread::{THREAD, command, in_turn, stage};
use super::stage::Stage;

fn check(stage: &mut Stage, expected: Expect) {
    expected.assert_eq(&stage.take_outline());
}

#[test]
fn a_reused_item_id_names_a_new_item() {
    let mut stage = in_turn();
    for (printed, texts) in [("one", "First."), ("two", "Second.")] {
        let mut done = command("call_1", "completed");
        (done["aggregatedOutput"], done["exitCode"]) = (json!(printed), json!(0));
        stage.started(command("call_1", "inProgress"));
        stage.completed(done.clone());
        stage.completed(done);
        let text = json!({ "type": "agentMessage", "id": "msg_1", "text": texts });
        stage.started(text.clone());
        stage.completed(text);
    }
    check(
        &mut stage,
        expect![[r#"
        step_start {"index":0}
        tool_call_start {"callId":"r1.1","providerCallId":"call_1","toolName":"shell","executor":"agent"}
        tool_arguments_done {"callId":"r1.1","arguments":"{\"command\":\"ls\",\"cwd\":\"/w\"}","summary":"command: 'ls', cwd: '/w'","validation":"not_required"}
        tool_running {"callId":"r1.1"}
        tool_output_delta {"callId":"r1.1","stream":"stdout","offset":0,"delta":"one"}
        tool_result {"callId":"r1.1","toolName":"shell","ok":true,"result":{"exitCode":0},"durationMs":10}
        step_finish {"index":0,"finishReason":"tool-calls"}
        step_start {"index":1}
        text_start {"partId":"r1.2"}
        text_done {"partId":"r1.2","text":"First."}
        tool_call_start {"callId":"r1.3","providerCallId":"call_1","toolName":"shell","executor":"agent"}
        tool_arguments_done {"callId":"r1.3","arguments":"{\"command\":\"ls\",\"cwd\":\"/w\"}","summary":"command: 'ls', cwd: '/w'","validation":"not_required"}
        tool_running {"callId":"r1.3"}
        tool_output_delta {"callId":"r1.3","stream":"stdout","offset":0,"delta":"two"}
        tool_result {"callId":"r1.3","toolName":"shell","ok":true,"result":{"exitCode":0},"durationMs":10}
        step_finish {"index":1,"finishReason":"tool-calls"}
        step_start {"index":2}
        text_start {"partId":"r1.4"}
        text_done {"partId":"r1.4","text":"Second."}
    "#]],
    );
}

#[test]
fn requests_after_an_end_or_interrupt_are_refused() {
    let method = "item/commandExecution/requestApproval";
    let mut stage = in_turn();
    stage.started(command("c", "inProgress"));
    stage.completed(command("c", "completed"));
    stage.take_outline();
    stage.ask(1, method, json!({ "itemId": "c", "command": "ls" }));
    assert_eq!(stage.last_written()["result"], json!({ "decision": "decline" }));
    stage.give(RunInput::Interrupt);
    stage.take_outline();
    stage.ask(2, method, json!({ "itemId": "d", "command": "ls" }));
    assert_eq!(stage.last_written()["result"], json!({ "decision": "cancel" }));
    stage.ask(3, "mcpServer/elicitation/request", json!({ "serverName": "s", "message": "?" }));
    assert_eq!(stage.last_written()["result"]["action"], "cancel");
    assert!(!stage.take_outline().contains("unrecognized"));
    stage.decide(Verdict::TimedOut);
    assert!(stage.asked.is_empty());
}

/// Only notifications that are known to be irrelevant are ignored, not others with a similar name.
#[test]
fn methods_that_resemble_ignored_ones_are_shown() {
    let mut stage = in_turn();
    for method in ["thread/goal/updated", "account/rateLimits/updated", "hook/started"] {
        stage.notify(method, json!({}));
        assert_eq!(stage.take_outline(), "", "{method}");
        let unknown = format!("{method}/anew");
        stage.notify(&unknown, json!({}));
        assert!(stage.take_outline().starts_with("unrecognized"), "{unknown}");
    }
}

#[test]
fn hooks_and_reviewers_that_intervene_give_notices() {
    let mut stage = in_turn();
    let entries = json!([{ "kind": "feedback", "text": "Not on a Monday." }]);
    for status in ["completed", "failed", "blocked", "stopped"] {
        let run = json!({ "eventName": "preToolUse", "status": status, "entries": entries });
        stage.notify("hook/completed", json!({ "run": run }));
    }
    for (status, rationale) in [("approved", Value::Null), ("denied", json!("Too risky."))] {
        let review = json!({ "status": status, "rationale": rationale });
        stage.notify("item/autoApprovalReview/completed", json!({ "review": review }));
    }
    check(
        &mut stage,
        expect![[r#"
        notice {"level":"error","text":"Codex's preToolUse hook failed: Not on a Monday."}
        notice {"level":"error","text":"Codex's preToolUse hook blocked the action: Not on a Monday."}
        notice {"level":"error","text":"Codex's preToolUse hook stopped the turn: Not on a Monday."}
        notice {"level":"info","text":"Codex's reviewer has allowed it."}
        notice {"level":"info","text":"Codex's reviewer has refused it: Too risky."}
    "#]],
    );
}

#[test]
fn the_version_is_that_of_the_running_codex() {
    for (user_agent, expected) in [
        ("callboard/0.170.1 (Debian 12.0.0; x86_64) dumb", r#""version":"0.170.1""#),
        ("something else", r#""version":"0.166.0""#),
    ] {
        let mut stage = stage(&Launch::default());
        stage.start("go");
        stage.respond("initialize", json!({ "userAgent": user_agent }));
        let thread = json!({ "thread": { "id": THREAD, "cliVersion": "0.166.0" } });
        stage.respond("thread/start", thread);
        let outline = stage.take_outline();
        assert!(outline.contains(expected), "{outline}");
    }
}

#[test]
fn exec_reports_each_state_of_a_plan_and_errors() {
    let settings = Settings { app_server: false, ..Settings::default() };
    let mut stage = Stage::new(backend(Arc::new(settings), &Launch::default()));
    stage.start("go");
    stage.take_outline();
    let plan = |kind: &str, first: bool, second: bool| {
        let item = |text: &str, completed: bool| json!({ "text": text, "completed": completed });
        let items = json!([item("look", first), item("leap", second)]);
        json!({ "type": kind, "item": { "id": "item_1", "type": "todo_list", "items": items } })
    };
    let stumbled = json!({ "type": "error", "message": "the stream was closed" });
    for line in [
        plan("item.started", false, false),
        plan("item.updated", true, false),
        stumbled,
        plan("item.updated", true, true),
        plan("item.completed", true, true),
    ] {
        stage.line(&line.to_string());
    }
    check(
        &mut stage,
        expect![[r#"
            step_start {"index":0}
            tool_call_start {"callId":"r1.1","providerCallId":"r1+0","toolName":"update_plan","executor":"agent"}
            tool_arguments_done {"callId":"r1.1","arguments":"{\"plan\":[{\"step\":\"look\",\"status\":\"pending\"},{\"step… (80 bytes)","summary":"plan: [{step: 'look', status: 'pe...","validation":"not_required"}
            tool_result {"callId":"r1.1","toolName":"update_plan","ok":true}
            tool_call_start {"callId":"r1.2","providerCallId":"r1+1","toolName":"update_plan","executor":"agent"}
            tool_arguments_done {"callId":"r1.2","arguments":"{\"plan\":[{\"step\":\"look\",\"status\":\"completed\"},{\"st… (82 bytes)","summary":"plan: [{step: 'look', status: 'co...","validation":"not_required"}
            tool_result {"callId":"r1.2","toolName":"update_plan","ok":true}
            notice {"level":"error","text":"the stream was closed"}
            tool_call_start {"callId":"r1.3","providerCallId":"r1+2","toolName":"update_plan","executor":"agent"}
            tool_arguments_done {"callId":"r1.3","arguments":"{\"plan\":[{\"step\":\"look\",\"status\":\"completed\"},{\"st… (84 bytes)","summary":"plan: [{step: 'look', status: 'co...","validation":"not_required"}
            tool_result {"callId":"r1.3","toolName":"update_plan","ok":true}
        "#]],
    );
}
