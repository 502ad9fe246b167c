//! Sub-agents of Codex without recordings: approvals, interrupts, nested and unannounced agents.

use backends::{RunInput, Verdict};
use expect_test::expect;
use serde_json::{Value, json};
use transcript::RunStatus;

use super::open_thread::{TURN, command, in_turn};
use super::stage::Stage;

const AGENT: &str = "thread-2";
const ITS_TURN: &str = "turn-2";

fn spawn(id: &str, agent: Option<&str>) -> Value {
    json!({
        "type": "collabAgentToolCall", "id": id, "tool": "spawnAgent", "prompt": "look",
        "status": if agent.is_some() { "completed" } else { "inProgress" },
        "receiverThreadIds": agent.into_iter().collect::<Vec<_>>(),
    })
}

/// Returns a stage with an open run and a sub-agent at work.
fn with_agent() -> Stage {
    let mut stage = in_turn();
    stage.started(spawn("c", None));
    stage.completed(spawn("c", Some(AGENT)));
    turn(&mut stage, AGENT, "turn/started", json!({ "id": ITS_TURN, "rootTurnId": TURN }));
    stage
}

fn turn(stage: &mut Stage, thread: &str, method: &str, turn: Value) {
    stage.notify(method, json!({ "threadId": thread, "turn": turn }));
}

fn by_agent(stage: &mut Stage, method: &str, item: Value) {
    let params = json!({ "threadId": AGENT, "turnId": ITS_TURN, "item": item });
    stage.notify(method, params);
}

fn status(stage: &Stage) -> Option<RunStatus> {
    stage.endings.last().map(|it| it.status)
}

#[test]
fn a_sub_agents_request_is_asked_and_feedback_is_sent() {
    let mut stage = with_agent();
    by_agent(&mut stage, "item/started", command("x", "inProgress"));
    let params = json!({ "threadId": AGENT, "turnId": ITS_TURN, "itemId": "x", "command": "ls" });
    stage.ask(7, "item/commandExecution/requestApproval", params);
    assert_eq!(stage.asked.len(), 1);
    stage.decide(Verdict::Denied { feedback: Some("keep it".to_owned()) });
    let answers: Vec<Value> =
        stage.written.iter().rev().take(2).map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(answers[0], json!({ "id": 7, "result": { "decision": "decline" } }));
    let steer = &answers[1]["params"];
    assert_eq!((&steer["threadId"], &steer["expectedTurnId"]), (&json!(AGENT), &json!(ITS_TURN)));
}

#[test]
fn the_run_ends_after_its_sub_agent() {
    let mut stage = with_agent();
    stage.turn_completed(TURN, "completed");
    assert_eq!(status(&stage), None, "an agent is at work");
    by_agent(
        &mut stage,
        "item/completed",
        json!({ "type": "agentMessage", "id": "m", "text": "Seen." }),
    );
    turn(&mut stage, AGENT, "turn/completed", json!({ "id": ITS_TURN, "status": "completed" }));
    assert_eq!(status(&stage), Some(RunStatus::Completed));
}

#[test]
fn an_interrupt_stops_the_sub_agent_too() {
    let mut stage = with_agent();
    stage.give(RunInput::Interrupt);
    let interrupt = stage.last_written();
    assert_eq!(interrupt["params"], json!({ "threadId": AGENT, "turnId": ITS_TURN }));
    stage.turn_completed(TURN, "interrupted");
    assert_eq!(status(&stage), None, "an agent is at work");
    turn(&mut stage, AGENT, "turn/completed", json!({ "id": ITS_TURN, "status": "interrupted" }));
    assert_eq!(status(&stage), Some(RunStatus::Cancelled));
}

/// A sub-agent lives in Codex's process, so it ends with it.
#[test]
fn a_sub_agent_that_ignores_a_stop_ends_with_the_program() {
    let mut stage = with_agent();
    stage.give(RunInput::Interrupt);
    stage.turn_completed(TURN, "interrupted");
    stage.wake();
    assert_eq!(status(&stage), Some(RunStatus::Cancelled));
    assert!(stage.has_quit);
}

/// Codex reports a call and the turn of its sub-agent in no fixed order.
#[test]
fn texts_of_a_sub_agent_belong_to_its_call_in_any_order() {
    let mut stage = in_turn();
    stage.started(spawn("c", None));
    turn(&mut stage, AGENT, "turn/started", json!({ "id": ITS_TURN, "rootTurnId": TURN }));
    by_agent(
        &mut stage,
        "item/completed",
        json!({ "type": "agentMessage", "id": "m", "text": "Seen." }),
    );
    stage.completed(spawn("c", Some(AGENT)));
    assert_eq!(stage.outline.matches("tool_call_start").count(), 1, "{}", stage.outline);
    assert!(!stage.outline.contains("tool_result"), "it runs for as long as its agent");
    turn(&mut stage, AGENT, "turn/completed", json!({ "id": ITS_TURN, "status": "completed" }));
    assert!(stage.outline.contains(r#""toolName":"spawn_agent","ok":true"#), "{}", stage.outline);
    assert!(stage.outline.contains("parentCallId"), "{}", stage.outline);
}

#[test]
fn a_stopped_sub_agent_does_not_succeed() {
    let rests = |stage: &mut Stage| {
        let ended = json!({ "id": ITS_TURN, "status": "interrupted" });
        turn(stage, AGENT, "turn/completed", ended);
    };
    let is_done = |stage: &mut Stage| stage.completed(spawn("c", Some(AGENT)));
    let ends = |stage: &mut Stage| stage.turn_completed(TURN, "interrupted");
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut stage = in_turn();
        stage.started(spawn("c", None));
        turn(&mut stage, AGENT, "turn/started", json!({ "id": ITS_TURN, "rootTurnId": TURN }));
        stage.give(RunInput::Interrupt);
        for what in order {
            match what {
                0 => rests(&mut stage),
                1 => is_done(&mut stage),
                _ => ends(&mut stage),
            }
        }
        assert!(!stage.outline.contains(r#""ok":true"#), "{order:?}: {}", stage.outline);
        assert_eq!(status(&stage), Some(RunStatus::Cancelled), "{order:?}");
    }
}

#[test]
fn a_failure_of_a_sub_agent_fails_only_its_call() {
    let mut stage = with_agent();
    let error = json!({ "message": "out of luck" });
    turn(
        &mut stage,
        AGENT,
        "turn/completed",
        json!({ "id": ITS_TURN, "status": "failed", "error": error }),
    );
    assert!(stage.outline.contains(r#""toolName":"spawn_agent","ok":false"#), "{}", stage.outline);
    assert!(stage.is_running());
}

#[test]
fn unannounced_sub_agents_get_calls_and_strangers_do_not() {
    let mut stage = in_turn();
    turn(&mut stage, "stranger", "turn/started", json!({ "id": "t", "rootTurnId": "t" }));
    turn(&mut stage, AGENT, "turn/started", json!({ "id": ITS_TURN, "rootTurnId": TURN }));
    let texts = |text: &str| json!({ "type": "agentMessage", "id": text, "text": text });
    stage.notify(
        "item/completed",
        json!({ "threadId": "stranger", "turnId": "t", "item": texts("No.") }),
    );
    by_agent(&mut stage, "item/completed", texts("Yes."));
    by_agent(&mut stage, "item/completed", spawn("d", Some("thread-3")));
    turn(&mut stage, AGENT, "turn/completed", json!({ "id": ITS_TURN, "status": "completed" }));
    expect![[r#"
        step_start {"index":0}
        tool_call_start {"callId":"r1.1","providerCallId":"agent-thread-2","toolName":"spawn_agent","executor":"agent"}
        tool_arguments_done {"callId":"r1.1","arguments":"{}","summary":"","validation":"not_required"}
        tool_running {"callId":"r1.1"}
        step_start {"index":0,"parentCallId":"r1.1"}
        text_start {"partId":"r1.2","parentCallId":"r1.1"}
        text_done {"partId":"r1.2","parentCallId":"r1.1","text":"Yes."}
        tool_call_start {"callId":"r1.3","providerCallId":"d","toolName":"spawn_agent","parentCallId":"r1.1","executor":"agent"}
        tool_arguments_done {"callId":"r1.3","arguments":"{\"prompt\":\"look\"}","summary":"prompt: 'look'","validation":"not_required"}
        tool_running {"callId":"r1.3"}
        tool_result {"callId":"r1.3","toolName":"spawn_agent","ok":true,"durationMs":0}
        step_finish {"index":0,"finishReason":"tool-calls","parentCallId":"r1.1"}
        tool_result {"callId":"r1.1","toolName":"spawn_agent","ok":true,"durationMs":40}
    "#]]
    .assert_eq(&stage.take_outline());
}
