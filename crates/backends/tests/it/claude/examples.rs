//! Cases of which there is no recording.

use backends::{Exit, ProgramEffect, RunEffect, Verdict};
use serde_json::{Value, json};
use transcript::{ErrorCode, Event, PartKind, RunStatus, Scope, SteerState, TextRole};

use super::stage::Stage;

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"c1"}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false}"#;

fn hi() -> Value {
    json!({ "role": "user", "content": "hi" })
}

fn written(effects: &[ProgramEffect]) -> Vec<Value> {
    let line = |it: &ProgramEffect| match it {
        ProgramEffect::Write(line) => Some(serde_json::from_str(line).unwrap()),
        _ => None,
    };
    effects.iter().filter_map(line).collect()
}

fn lifecycle(uuid: &Value, state: &str) -> String {
    json!({ "type": "command_lifecycle", "command_uuid": uuid, "state": state }).to_string()
}

/// Returns the program's response to a request of ours.
fn answer(request: &Value) -> String {
    let response = json!({ "subtype": "success", "request_id": request["request_id"] });
    json!({ "type": "control_response", "response": response }).to_string()
}

fn agents(tasks: &[&str]) -> String {
    let task = |it: &&str| json!({ "task_id": it, "task_type": "local_agent" });
    let tasks: Vec<Value> = tasks.iter().map(task).collect();
    let line = json!({ "type": "system", "subtype": "background_tasks_changed", "tasks": tasks });
    line.to_string()
}

fn call(id: &str, name: &str, input: Value) -> String {
    let block = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
    json!({ "type": "assistant", "message": { "id": "m1", "content": [block] } }).to_string()
}

fn may(request: &str, id: &str, input: Value) -> String {
    let about =
        json!({ "subtype": "can_use_tool", "tool_name": "T", "tool_use_id": id, "input": input });
    json!({ "type": "control_request", "request_id": request, "request": about }).to_string()
}

fn result_of(id: &str, content: Value, is_error: bool, structured: Value) -> String {
    let block = json!({
        "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error,
    });
    let message = json!({ "content": [block] });
    json!({ "type": "user", "message": message, "tool_use_result": structured }).to_string()
}

/// Returns a stage with an open run whose message the program has started to work on.
fn at_work() -> Stage {
    let mut stage = Stage::new();
    let effects = stage.start(&hi());
    let uuid = &written(&effects)[0]["uuid"];
    stage.line(&lifecycle(uuid, "queued"));
    stage.line(&lifecycle(uuid, "started"));
    stage.line(INIT);
    stage
}

fn status(stage: &Stage) -> Option<RunStatus> {
    stage.closed.last().map(|it| it.status)
}

fn steered(effects: &[ProgramEffect]) -> Option<SteerState> {
    effects.iter().find_map(|it| match it {
        ProgramEffect::Run(RunEffect::Emit(Event::MessageSteered { state, .. })) => Some(*state),
        _ => None,
    })
}

#[test]
fn only_the_last_message_is_sent_with_its_pictures() {
    let mut stage = Stage::new();
    let picture = json!({ "url": "data:image/png;base64,AAAA" });
    let content = json!([
        { "type": "text", "text": "look" },
        { "type": "image_url", "image_url": picture },
    ]);
    let effects = stage.start(&json!({ "role": "user", "content": content }));
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "AAAA" });
    let expected =
        json!([{ "type": "text", "text": "look" }, { "type": "image", "source": source }]);
    assert_eq!(written(&effects)[0]["message"]["content"], expected);
}

#[test]
fn a_steered_message_is_read_within_the_turn() {
    let mut stage = at_work();
    let effects = stage.steer(&hi());
    let line = written(&effects).remove(0);
    assert_eq!(line["message"]["content"][0]["text"], "hi");
    assert_eq!(steered(&effects), Some(SteerState::HandedOver));
    assert_eq!(stage.line(&lifecycle(&line["uuid"], "queued")), []);
    assert_eq!(steered(&stage.line(&lifecycle(&line["uuid"], "started"))), Some(SteerState::Seen));
    stage.line(RESULT);
    assert_eq!(status(&stage), Some(RunStatus::Completed));
}

#[test]
fn a_late_steered_message_starts_another_turn_of_the_run() {
    let mut stage = at_work();
    let uuid = written(&stage.steer(&hi())).remove(0)["uuid"].clone();
    stage.line(RESULT);
    assert_eq!(status(&stage), None);
    assert_eq!(steered(&stage.line(&lifecycle(&uuid, "started"))), Some(SteerState::Seen));
    stage.line(INIT);
    stage.line(RESULT);
    assert_eq!(status(&stage), Some(RunStatus::Completed));
}

#[test]
fn a_steered_message_that_is_never_read_is_returned() {
    let mut stage = at_work();
    let uuid = written(&stage.steer(&hi())).remove(0)["uuid"].clone();
    stage.line(RESULT);
    let effects = stage.wake();
    // The message is cancelled, since it will be sent again.
    assert_eq!(written(&effects)[0]["request"]["message_uuid"], uuid);
    assert!(effects.iter().any(|it| matches!(it, ProgramEffect::Run(RunEffect::CannotSteer(_)))));
    assert_eq!(status(&stage), Some(RunStatus::Completed));
}

#[test]
fn steering_is_refused_without_a_run_or_after_an_interrupt() {
    let mut stage = Stage::new();
    assert!(matches!(stage.steer(&hi())[..], [ProgramEffect::Run(RunEffect::CannotSteer(_))]));
    let mut stage = at_work();
    stage.interrupt();
    assert!(matches!(stage.steer(&hi())[..], [ProgramEffect::Run(RunEffect::CannotSteer(_))]));
}

/// A resumed program may finish a turn about earlier work before it reads our message.
#[test]
fn the_end_of_an_unrelated_turn_does_not_end_the_run() {
    let mut stage = Stage::new();
    let uuid = written(&stage.start(&hi())).remove(0)["uuid"].clone();
    stage.line(&lifecycle(&uuid, "queued"));
    stage.line(RESULT);
    assert_eq!(status(&stage), None);
    stage.line(&lifecycle(&uuid, "started"));
    stage.line(INIT);
    stage.line(RESULT);
    assert_eq!(status(&stage), Some(RunStatus::Completed));
}

#[test]
fn an_interrupt_before_the_turn_cancels_the_message() {
    let mut stage = Stage::new();
    let uuid = written(&stage.start(&hi())).remove(0)["uuid"].clone();
    stage.line(&lifecycle(&uuid, "queued"));
    let lines = written(&stage.interrupt());
    assert_eq!(lines[0]["request"]["subtype"], "cancel_async_message");
    assert_eq!(lines[0]["request"]["message_uuid"], uuid);
    assert_eq!(lines[1]["request"]["subtype"], "interrupt");
    stage.line(&lifecycle(&uuid, "cancelled"));
    assert_eq!(status(&stage), None);
    stage.line(&answer(&lines[1]));
    assert_eq!(status(&stage), Some(RunStatus::Cancelled));
    assert!(!stage.has_quit);
}

#[test]
fn an_interrupt_stops_background_agents() {
    let mut stage = at_work();
    stage.line(&agents(&["a1", "a2"]));
    stage.line(RESULT);
    assert_eq!(status(&stage), None);
    let lines = written(&stage.interrupt());
    let asked: Vec<_> =
        lines.iter().map(|it| (&it["request"]["subtype"], &it["request"]["task_id"])).collect();
    let stop = json!("stop_task");
    assert_eq!(asked[..2], [(&stop, &json!("a1")), (&stop, &json!("a2"))]);
    stage.line(&agents(&[]));
    stage.line(&answer(&lines[2]));
    assert_eq!(status(&stage), None, "it may want to tell the model");
    let again = written(&stage.line(INIT));
    assert_eq!(again[0]["request"]["subtype"], "interrupt");
    stage.line(RESULT);
    stage.wake();
    assert_eq!(status(&stage), Some(RunStatus::Cancelled));
    assert!(!stage.has_quit);
}

#[test]
fn a_background_command_does_not_keep_the_run_open() {
    let mut stage = at_work();
    let task = json!({ "task_id": "b1", "task_type": "local_bash" });
    let line = json!({ "type": "system", "subtype": "background_tasks_changed", "tasks": [task] });
    stage.line(&line.to_string());
    stage.line(RESULT);
    assert_eq!(status(&stage), Some(RunStatus::Completed));
}

#[test]
fn agents_that_end_silently_do_not_keep_the_run_open() {
    let mut stage = at_work();
    stage.line(&agents(&["a1"]));
    stage.line(RESULT);
    assert_eq!(stage.wake(), []);
    stage.line(&agents(&[]));
    assert_eq!(status(&stage), None);
    stage.wake();
    assert_eq!(status(&stage), Some(RunStatus::Completed));

    // The same holds for a version that reports each task, but sends no list of them.
    let mut stage = at_work();
    let task = |what: &str| json!({ "type": "system", "subtype": what, "task_id": "a1", "task_type": "local_agent" });
    stage.line(&task("task_started").to_string());
    stage.line(RESULT);
    assert_eq!((stage.wake(), status(&stage)), (vec![], None));
    stage.line(&task("task_notification").to_string());
    stage.wake();
    assert_eq!(status(&stage), Some(RunStatus::Completed));
}

/// Some versions send no list of tasks, and never report the end of some.
#[test]
fn an_unreported_agent_end_does_not_keep_the_run_open() {
    let started = |call: Value| {
        json!({ "type": "system", "subtype": "task_started", "task_id": "a1", "tool_use_id": call,
            "task_type": "local_agent" })
        .to_string()
    };
    let updated = |status: &str| {
        json!({ "type": "system", "subtype": "task_updated", "task_id": "a1",
            "patch": { "status": status } })
        .to_string()
    };
    // A turn does not end before its calls, so the agent of a call has ended, too.
    let mut stage = at_work();
    stage.line(&started(json!("c1")));
    stage.line(RESULT);
    assert_eq!(status(&stage), Some(RunStatus::Completed));

    let mut stage = at_work();
    stage.line(&started(Value::Null));
    stage.line(RESULT);
    stage.line(&updated("running"));
    assert_eq!((stage.wake(), status(&stage)), (vec![], None));
    stage.line(&updated("killed"));
    stage.wake();
    assert_eq!(status(&stage), Some(RunStatus::Completed));

    // An agent that was stopped with its run does not affect the next run.
    let mut stage = at_work();
    stage.line(&started(Value::Null));
    stage.interrupt();
    stage.line(RESULT);
    stage.wake();
    assert_eq!(status(&stage), Some(RunStatus::Cancelled));
    stage.start(&json!({ "role": "user", "content": "go on" }));
    stage.line(RESULT);
    stage.wake();
    assert_eq!(status(&stage), Some(RunStatus::Completed));
}

#[test]
fn claude_may_start_several_runs_by_itself() {
    let mut stage = Stage::new();
    for n in 1..=2 {
        assert_eq!(stage.line(INIT).first(), Some(&ProgramEffect::Begin));
        stage.line(RESULT);
        assert_eq!(stage.closed.len(), n);
    }
    assert_eq!(stage.line(RESULT), []);
}

#[test]
fn a_permission_request_between_runs_is_denied() {
    let mut stage = Stage::new();
    let line = written(&stage.line(&may("q1", "t1", json!({})))).remove(0);
    assert_eq!(line["response"]["response"]["behavior"], "deny");
}

#[test]
fn decisions_reach_the_program_and_the_log() {
    let verdicts = [
        (Verdict::TimedOut, ErrorCode::ApprovalTimeout),
        (Verdict::Denied { feedback: None }, ErrorCode::ToolDenied),
        // Invalid edited arguments deny the call: it must not run with the original ones.
        (
            Verdict::Allowed { arguments: Some("[]".to_owned()), scope: Scope::Once },
            ErrorCode::ToolDenied,
        ),
    ];
    for (verdict, code) in verdicts {
        let mut stage = at_work();
        // The request comes before the call itself.
        let effects = stage.line(&may("q1", "t1", json!({ "a": 1 })));
        let Some(ProgramEffect::Ask { call_id, .. }) = effects.last() else {
            panic!("{effects:?}")
        };
        let line = written(&stage.decide(call_id, verdict)).remove(0);
        assert_eq!(line["response"]["response"]["behavior"], "deny");
        stage.line(&call("t1", "T", json!({ "a": 1 })));
        let block = json!({ "type": "tool_result", "tool_use_id": "t1", "is_error": true });
        let meta = json!([{ "id": "t1", "non_execution_kind": "permission-rule" }]);
        let message = json!({ "content": [block] });
        let line = json!({ "type": "user", "message": message, "tool_result_meta": meta });
        stage.line(&line.to_string());
        stage.line(RESULT);
        let call = stage.closed[0].answer.calls().next().unwrap().clone();
        assert_eq!(call.outcome.unwrap().error.unwrap().code, code);
        assert_eq!(stage.closed[0].answer.calls().count(), 1);
    }
}

#[test]
fn edited_arguments_are_sent_to_the_program() {
    let mut stage = at_work();
    stage.line(&call("t1", "T", json!({ "a": 1 })));
    let effects = stage.line(&may("q1", "t1", json!({ "a": 1 })));
    let Some(ProgramEffect::Ask { call_id, .. }) = effects.last() else { panic!("{effects:?}") };
    let arguments = Some(r#"{"a":2}"#.to_owned());
    let verdict = Verdict::Allowed { arguments, scope: Scope::Session };
    let line = written(&stage.decide(call_id, verdict)).remove(0);
    let allowed = json!({ "behavior": "allow", "updatedInput": { "a": 2 } });
    assert_eq!(line["response"]["response"], allowed);
}

#[test]
fn an_exit_error_names_claude_code_after_its_init_line() {
    let gone = Exit { code: Some(3), stderr: String::new() };
    let [mut silent, mut linked] = [Stage::new(), at_work()];
    silent.start(&hi());
    for (stage, who) in [(&mut silent, "claude"), (&mut linked, "Claude Code")] {
        stage.exit(gone.clone());
        let error = stage.closed[0].answer.finish.as_ref().unwrap().error.as_ref().unwrap();
        assert_eq!(error.code, ErrorCode::AgentExited);
        assert!(error.message.starts_with(&format!("{who} ended in the middle")), "{error:?}");
    }
}

/// Sends a message of one block, without the end of the message.
fn begin_message(stage: &mut Stage, block: &Value, delta: &Value) {
    for event in [
        json!({ "type": "message_start", "message": { "id": "m1" } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
    ] {
        stage.line(&json!({ "type": "stream_event", "event": event }).to_string());
    }
}

#[test]
fn a_cut_off_text_is_discarded_only_if_another_replaces_it() {
    let again = json!({ "id": "m2", "content": [{ "type": "text", "text": "All of it." }] });
    let again = json!({ "type": "assistant", "message": again }).to_string();
    let failed =
        json!({ "type": "result", "subtype": "success", "is_error": true, "result": "No." });
    for (then, expected) in [
        (vec![again, RESULT.to_owned()], vec![("Some of", true), ("All of it.", false)]),
        (vec![failed.to_string()], vec![("Some of", false)]),
    ] {
        let mut stage = at_work();
        let delta = json!({ "type": "text_delta", "text": "Some of" });
        begin_message(&mut stage, &json!({ "type": "text", "text": "" }), &delta);
        let abandoned = json!({ "api_message_id": "m1", "from_block_index": 0 });
        let stop = json!({ "type": "message_stop" });
        let stop = json!({ "type": "stream_event", "event": stop, "abandoned_blocks": abandoned });
        stage.line(&stop.to_string());
        then.iter().for_each(|it| drop(stage.line(it)));
        let texts = stage.closed[0].answer.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Text(it) => Some((it.text.as_str(), it.role == TextRole::Discarded)),
            _ => None,
        });
        assert_eq!(texts.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_message_cut_off_in_a_call_ends_the_call() {
    let mut stage = at_work();
    let block = json!({ "type": "tool_use", "id": "t1", "name": "Write", "input": {} });
    let delta = json!({ "type": "input_json_delta", "partial_json": "{\"a\":" });
    begin_message(&mut stage, &block, &delta);
    stage.line(&json!({ "type": "stream_event", "event": { "type": "message_stop" } }).to_string());
    stage.line(RESULT);
    let call = stage.closed[0].answer.calls().next().unwrap();
    assert!(call.arguments_incomplete);
    assert_eq!(
        call.outcome.as_ref().unwrap().error.as_ref().unwrap().code,
        ErrorCode::ToolInterrupted
    );
}

#[test]
fn a_call_repeated_after_its_result_is_not_a_second_call() {
    let mut stage = at_work();
    for _ in 0..2 {
        stage.line(&call("t1", "T", json!({})));
        stage.line(&result_of("t1", json!("ok"), false, Value::Null));
    }
    stage.line(RESULT);
    assert_eq!(stage.closed[0].answer.calls().count(), 1);
}

#[test]
fn a_tool_result_is_kept_without_redundant_fields() {
    let ok = |structured: Value, content: Value| {
        let mut stage = at_work();
        stage.line(&call("t1", "T", json!({})));
        stage.line(&result_of("t1", content, false, structured));
        let events = stage.run.unwrap().events;
        let Some(Event::ToolResult { result, ok: true, .. }) = events.last() else { panic!() };
        result.clone()
    };
    let patch = json!([{ "oldStart": 1, "lines": ["-a", "+b"] }]);
    let edit = json!({ "filePath": "f", "originalFile": "a long one", "structuredPatch": patch });
    assert_eq!(ok(edit, json!("ok")), Some(json!({ "filePath": "f", "structuredPatch": patch })));
    let command = json!({ "stdout": "x", "stderr": "", "interrupted": false, "isImage": false });
    assert_eq!(ok(command, json!("x")), None);
    let silent = json!({ "stdout": "", "stderr": "", "interrupted": false });
    assert_eq!(ok(silent, json!("(no output)")), Some(json!("(no output)")));
    let texts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    assert_eq!(ok(Value::Null, texts), Some(json!("a\nb")));
    let picture = json!([{ "type": "image", "source": {} }]);
    assert_eq!(ok(Value::Null, picture.clone()), Some(picture));
}

fn within(parent: &str, kind: &str, block: &Value) -> String {
    let message = json!({ "id": "m9", "content": [block] });
    json!({ "type": kind, "message": message, "parent_tool_use_id": parent }).to_string()
}

/// Asserts that the line is kept once, as an unrecognized one.
fn assert_kept(stage: &mut Stage, line: &str) {
    let (source, raw) = ("claude".to_owned(), line.to_owned());
    let kept = Event::Unrecognized { source, raw, lines: 1 };
    assert_eq!(stage.line(line), [ProgramEffect::Run(RunEffect::Emit(kept))], "{line}");
}

#[test]
fn output_of_an_agent_of_an_earlier_run_is_ignored() {
    let text = json!({ "type": "text", "text": "I am still here" });
    let result = json!({ "type": "tool_result", "tool_use_id": "t8", "content": "ok" });
    let mut stage = at_work();
    for (kind, block) in [("assistant", &text), ("user", &result)] {
        assert_kept(&mut stage, &within("t9", kind, block));
    }
    stage.line(&call("t9", "Agent", json!({})));
    stage.line(&within("t9", "assistant", &text));
    stage.line(RESULT);
    stage.start(&hi());
    for (kind, block) in [("assistant", &text), ("user", &result)] {
        assert_eq!(stage.line(&within("t9", kind, block)), []);
    }
}

#[test]
fn unrecognized_lines_are_kept() {
    let mut stage = at_work();
    for line in
        ["nonsense", "{}", "[1]", r#"{"type":"news"}"#, r#"{"type":"system","subtype":"x"}"#]
    {
        assert_kept(&mut stage, line);
    }
    // A result of an unknown call is unrecognized.
    assert_kept(&mut stage, &result_of("t9", json!("ok"), false, Value::Null));
    let picture = json!({ "type": "image", "source": { "type": "base64", "data": "AAAA" } });
    let unknown = json!({ "type": "news", "text": "Hear, hear" });
    for blocks in [vec![&picture], vec![&unknown], vec![&unknown, &picture, &unknown]] {
        let line = json!({ "type": "user", "message": { "role": "user", "content": blocks } });
        assert_kept(&mut stage, &line.to_string());
        let mut echo = line;
        echo["isReplay"] = json!(true);
        assert_eq!(stage.line(&echo.to_string()), [], "what we said comes back");
    }
}

#[test]
fn a_turn_that_fails_while_agents_work_gives_a_notice() {
    let mut stage = at_work();
    stage.line(&agents(&["a1"]));
    let failed =
        json!({ "type": "result", "subtype": "success", "is_error": true, "result": "no" });
    let effects = stage.line(&failed.to_string());
    let is_notice = |it: &ProgramEffect| {
        matches!(it, ProgramEffect::Run(RunEffect::Emit(Event::Notice { .. })))
    };
    assert!(effects.iter().any(is_notice));
    assert_eq!(status(&stage), None);
}
