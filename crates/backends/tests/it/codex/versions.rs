//! Lines that other versions of Codex add, leave out or send in another order.

use backends::{Launch, RunInput, Verdict};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use transcript::RunStatus;

use super::open_thread::{THREAD, TURN, command, in_turn, stage};
use super::stage::Stage;

#[track_caller]
fn check(stage: &mut Stage, expected: Expect) {
    expected.assert_eq(&stage.take_outline());
}

#[test]
fn an_empty_completed_item_keeps_the_streamed_text() {
    let mut stage = in_turn();
    let delta = |id: &str| json!({ "itemId": id, "delta": "Hm." });
    stage.notify("item/reasoning/summaryTextDelta", delta("r"));
    stage.completed(json!({ "type": "reasoning", "id": "r", "summary": [] }));
    stage.notify("item/agentMessage/delta", delta("m"));
    stage.completed(json!({ "type": "agentMessage", "id": "m", "text": "" }));
    let sections = json!([{ "type": "summary_text", "text": "One" }, "Two"]);
    stage.completed(json!({ "type": "reasoning", "id": "s", "summary": sections }));
    assert_eq!(stage.texts, ["Hm.", "Hm.", "One\n\nTwo"]);
}

#[test]
fn lines_before_the_turn_id_are_held_until_it_is_known() {
    let mut stage = stage(&Launch::default());
    stage.start("go");
    stage.respond("initialize", json!({}));
    stage.respond("thread/start", json!({ "thread": { "id": THREAD } }));
    stage.take_outline();
    stage.completed(json!({ "type": "agentMessage", "id": "m", "text": "Early." }));
    let item = json!({ "type": "agentMessage", "id": "o", "text": "Of another turn." });
    stage.notify("item/completed", json!({ "turnId": "turn-0", "item": item }));
    stage.started(command("c", "inProgress"));
    stage.ask(
        7,
        "item/commandExecution/requestApproval",
        json!({ "itemId": "c", "command": "ls" }),
    );
    assert_eq!(stage.take_outline(), "");
    stage.respond("turn/start", json!({ "turn": { "id": TURN } }));
    check(
        &mut stage,
        expect![[r#"
            step_start {"index":0}
            text_start {"partId":"r1.1"}
            text_done {"partId":"r1.1","text":"Early."}
            tool_call_start {"callId":"r1.2","providerCallId":"c","toolName":"shell","executor":"agent"}
            tool_arguments_done {"callId":"r1.2","arguments":"{\"command\":\"ls\",\"cwd\":\"/w\"}","summary":"command: 'ls', cwd: '/w'","validation":"not_required"}
            tool_running {"callId":"r1.2"}
            ASK r1.2 null
        "#]],
    );
}

/// An idle thread means that its turn has ended, unless more lines of the turn follow.
#[test]
fn an_idle_thread_that_goes_on_does_not_end_the_run() {
    let mut stage = in_turn();
    stage.notify("thread/status/changed", json!({ "status": { "type": "idle" } }));
    stage.started(command("c", "inProgress"));
    stage.wake();
    assert!(stage.is_running());
}

#[test]
fn a_steered_message_that_was_never_seen_is_returned() {
    let mut stage = in_turn();
    for id in ["m1", "m2"] {
        stage.steer(id, "look");
        stage.respond("turn/steer", json!({ "turnId": TURN }));
    }
    stage.completed(json!({ "type": "userMessage", "id": "u", "clientId": "m1", "content": [] }));
    stage.take_outline();
    stage.turn_completed(TURN, "completed");
    assert!(stage.take_outline().contains("m2"), "it was never seen");
}

#[test]
fn feedback_that_codex_refuses_gives_a_notice() {
    let mut stage = in_turn();
    stage.started(command("c", "inProgress"));
    stage.ask(
        7,
        "item/commandExecution/requestApproval",
        json!({ "itemId": "c", "command": "ls" }),
    );
    stage.decide(Verdict::Denied { feedback: Some("use make".to_owned()) });
    stage.take_outline();
    stage.refuse("turn/steer", "no active turn");
    check(
        &mut stage,
        expect![[r#"
            notice {"level":"error","text":"Codex did not accept your reason for declining she… (123 bytes)"}
        "#]],
    );
}

/// Codex reports a compaction with a notification, an item, or both in either order.
#[test]
fn each_compaction_gives_one_notice() {
    let (note, item) = ("thread/compacted", "item/completed");
    for (texts, times) in [
        (&[note][..], 1),
        (&[item], 1),
        (&[note, item], 1),
        (&[item, note], 1),
        (&[note, note], 2),
        (&[item, item], 2),
        (&[item, note, item, note], 2),
    ] {
        let mut stage = in_turn();
        for (idx, method) in texts.iter().enumerate() {
            let item = json!({ "type": "contextCompaction", "id": format!("k{idx}") });
            stage.notify(method, json!({ "item": item }));
        }
        assert_eq!(stage.take_outline().matches("shortened").count(), times, "{texts:?}");
    }
}

/// Codex leaves commands of its turns and sub-agents running. It is told to end them and gets time
/// to do so.
#[test]
fn a_stopped_run_ends_after_its_commands() {
    let mut stage = with_agent();
    stage.started(command("c", "inProgress"));
    of_agent(&mut stage, "item/started", json!({ "item": command("d", "inProgress") }));
    stage.give(RunInput::Interrupt);
    let turn = json!({ "id": "its-turn", "status": "interrupted" });
    of_agent(&mut stage, "turn/completed", json!({ "turn": turn }));
    stage.turn_completed(TURN, "interrupted");
    let cleaned = stage.written.iter().filter(|it| it.contains("backgroundTerminals/clean"));
    let cleaned: Vec<bool> = cleaned.map(|it| it.contains(THREAD)).collect();
    assert_eq!(cleaned, [false, true]);
    let mut killed = command("c", "failed");
    killed["exitCode"] = json!(143);
    stage.completed(killed);
    assert!(stage.take_outline().contains("tool_interrupted"), "it did not fail: it was stopped");
    assert!(stage.is_running(), "the agent's command has not ended");
    of_agent(&mut stage, "item/completed", json!({ "item": command("d", "failed") }));
    assert_eq!(stage.endings[0].status, RunStatus::Cancelled);
    assert!(!stage.has_quit);

    // A Codex that does not report their end is not waited for, and keeps running.
    let mut stage = in_turn();
    stage.started(command("c", "inProgress"));
    stage.give(RunInput::Interrupt);
    stage.turn_completed(TURN, "interrupted");
    assert!(stage.is_running());
    stage.wake();
    assert_eq!(stage.endings[0].status, RunStatus::Cancelled);
    assert!(!stage.has_quit);
}

fn with_agent() -> Stage {
    let mut stage = in_turn();
    let spawn = json!({
        "type": "collabAgentToolCall", "id": "a", "tool": "spawnAgent", "status": "inProgress",
        "receiverThreadIds": ["agent"],
    });
    stage.started(spawn);
    of_agent(&mut stage, "turn/started", json!({ "turn": { "id": "its-turn" } }));
    stage
}

fn of_agent(stage: &mut Stage, method: &str, mut params: Value) {
    (params["threadId"], params["turnId"]) = (json!("agent"), json!("its-turn"));
    stage.line(&json!({ "method": method, "params": params }).to_string());
}
