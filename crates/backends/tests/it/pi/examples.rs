//! Cases of which there is no recording.

use std::sync::Arc;

use backends::pi::{Settings, program};
use backends::{Exit, Launch, Pi, ProgramBackend, ResumeId, RunInput, ToolServer, Verdict};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use transcript::{Event, Millis, ResponseId, Scope};

use super::recording::Recorded;
use super::snapshots::shown;
use super::stage::{Played, Stage};

/// Returns a stage with an open run whose prompt Pi has accepted. Pi is the old package, unless
/// later lines are those of the new one.
pub(super) fn working() -> Stage {
    let mut stage = prompted();
    stage.emit(json!({ "type": "response", "id": "prompt-2", "success": true }));
    stage.emit(json!({ "type": "agent_start" }));
    stage
}

fn prompted() -> Stage {
    let mut stage = Stage::new(true);
    stage.start("go");
    stage.answer_states();
    stage
}

impl Stage {
    pub(super) fn emit(&mut self, line: Value) {
        self.line(&line.to_string());
    }

    /// Sends a final text of the model.
    fn answer(&mut self, text: &str) {
        self.message("stop", &json!([{ "type": "text", "text": text }]));
    }

    fn message(&mut self, stop_reason: &str, content: &Value) {
        self.emit(json!({ "type": "message_start", "message": { "role": "assistant" } }));
        self.emit(json!({ "type": "message_end", "message": { "role": "assistant",
            "content": content, "stopReason": stop_reason, "errorMessage": "500 no" } }));
    }

    pub(super) fn call(&mut self, name: &str, arguments: &Value) {
        let call = json!({ "type": "toolCall", "id": "c", "name": name, "arguments": arguments });
        self.message("toolUse", &json!([call]));
        self.emit(json!({ "type": "tool_execution_start", "toolCallId": "c", "toolName": name,
            "args": arguments }));
    }

    fn ask(&mut self, method: &str, title: &str, about: &str) {
        self.emit(json!({ "type": "extension_ui_request", "id": "d", "method": method,
            "title": title, "message": about, "placeholder": about }));
    }

    fn ask_about_call(&mut self) {
        self.ask("input", "callboard:tool_call", r#"{"toolCallId":"c"}"#);
    }
}

/// Checks the effects of the last `n` inputs.
#[track_caller]
pub(super) fn check(stage: &Stage, n: usize, expect: Expect) {
    let is_given = |it: &Played| matches!(it, Played::Given(_));
    let given = stage.played.iter().enumerate().filter(|(_, it)| is_given(it));
    let starts: Vec<usize> = given.map(|(idx, _)| idx).collect();
    expect.assert_eq(&shown(&stage.played[starts[starts.len() - n]..]));
}

#[test]
fn command_line_and_environment() {
    let settings = Settings {
        model: Some("anthropic/claude".to_owned()),
        args: vec!["--thinking".to_owned(), "high".to_owned()],
        env: vec![("PI_TELEMETRY".to_owned(), "1".to_owned())],
        ..Settings::default()
    };
    let url = "http://127.0.0.1:4520/mcp".to_owned();
    let launch = Launch {
        workspace: "/workspace".to_owned(),
        resume: ResumeId::parse("0199e09f-40e5-7493-a575-de63127bb063"),
        tools: Some(ToolServer { url, token: "t".to_owned() }),
        shipped: "/shipped/".to_owned(),
        private: Some("/data".to_owned()),
    };
    let program = program(&settings, &launch);
    let env = program.env.iter().map(|(name, value)| format!("{name}={value}\n"));
    let text = format!("{}\n{}", program.command.join(" "), env.collect::<String>());
    expect![[r#"
        pi --mode rpc -e /shipped/callboard-pi.ts --model anthropic/claude --session 0199e09f-40e5-7493-a575-de63127bb063 --thinking high
        PI_SKIP_VERSION_CHECK=1
        PI_TELEMETRY=1
        CALLBOARD_PERMISSION_MODE=ask
        CALLBOARD_TOOLS_URL=http://127.0.0.1:4520/mcp
        CALLBOARD_TOOLS_TOKEN=t
    "#]].assert_eq(&text);
}

#[test]
fn nobody_is_asked_in_auto_mode() {
    let permission_mode = Some("auto".to_owned());
    let settings = Settings { permission_mode, ..Settings::default() };
    let program = program(&settings, &Launch::default());
    let mode = ("CALLBOARD_PERMISSION_MODE".to_owned(), "auto".to_owned());
    assert!(program.env.contains(&mode));
}

#[test]
fn pictures_are_sent_and_a_broken_answer_is_continued() {
    let permission_mode = Some("auto".to_owned());
    let settings = Settings { permission_mode, ..Settings::default() };
    let mut pi = Pi::new(Arc::new(settings), &Launch::default());
    let mut write = |history: Vec<Value>| {
        let response_id = ResponseId::new("r");
        let start = RunInput::Start { response_id, history };
        format!("{:?}\n", pi.on(Millis::default(), start.into()).last())
    };
    let image =
        json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,QQ==" } });
    let text = json!({ "type": "text", "text": "look" });
    let asked = json!({ "role": "user", "content": [text, image] });
    let answered = json!({ "role": "assistant", "content": "I see" });
    expect![[r#"
        Some(Write("{\"id\":\"prompt-2\",\"type\":\"prompt\",\"message\":\"look\",\"images\":[{\"type\":\"image\",\"data\":\"QQ==\",\"mimeType\":\"image/png\"}],\"streamingBehavior\":\"followUp\"}"))
        Some(Write("{\"id\":\"prompt-3\",\"type\":\"prompt\",\"message\":\"Continue.\",\"streamingBehavior\":\"followUp\"}"))
    "#]].assert_eq(&(write(vec![asked.clone()]) + &write(vec![asked, answered])));
}

#[test]
fn a_refused_prompt_fails_the_run() {
    let mut stage = prompted();
    stage
        .emit(json!({ "type": "response", "id": "prompt-2", "command": "prompt", "success": false,
        "error": "No API key found for anthropic.\n\nUse /login to log in." }));
    check(
        &stage,
        1,
        expect![[r#"
            continuation {"shouldContinue":false,"stopReason":"error","resolvedBy":"ErrorPolicy"}
            end Failed upstream_auth: Pi has no valid key for the model service (No API key found for anthropic. Use /login to log in). Run pi in a terminal and use /login, or set the service's key in the agent's env.
        "#]],
    );
}

#[test]
fn a_lost_conversation_fails_the_run() {
    let mut stage = prompted();
    stage.exit(Exit { code: Some(1), stderr: "No session found matching '01a1'\n".to_owned() });
    check(
        &stage,
        1,
        expect![[r#"
        > exited Some(1) "No session found matching '01a1'\n"
        continuation {"shouldContinue":false,"stopReason":"error","resolvedBy":"AgentExited"}
        end Failed agent_exited: Pi no longer has this conversation (No session found matching '01a1'). Start a new session.
    "#]],
    );
}

#[test]
fn an_exit_after_the_answer_completes_the_run() {
    let mut stage = working();
    stage.answer("Done.");
    stage.emit(json!({ "type": "agent_end", "messages": [] }));
    stage.exit(Exit { code: Some(0), stderr: String::new() });
    check(
        &stage,
        1,
        expect![[r#"
        > exited Some(0) ""
        continuation {"shouldContinue":false,"stopReason":"completed","resolvedBy":"Agent"}
        end Completed
    "#]],
    );
}

#[test]
fn a_command_without_an_answer_completes_the_run() {
    let mut new = prompted();
    new.emit(json!({ "type": "response", "id": "prompt-2", "success": true,
        "data": { "disposition": "handled" } }));
    new.answer_states();
    check(
        &new,
        2,
        expect![[r#"
        < {"id":"state-3","type":"get_state"}
        notice {"level":"info","text":"Pi accepted the message and did not answer."}
        continuation {"shouldContinue":false,"stopReason":"completed","resolvedBy":"Agent"}
        end Completed
    "#]],
    );

    let mut old = prompted();
    old.emit(json!({ "type": "response", "id": "prompt-2", "success": true }));
    old.wake();
    old.answer_states();
    check(
        &old,
        3,
        expect![[r#"
        wake_at 5000
        > wake
        < {"id":"state-3","type":"get_state"}
        notice {"level":"info","text":"Pi accepted the message and did not answer."}
        continuation {"shouldContinue":false,"stopReason":"completed","resolvedBy":"Agent"}
        end Completed
    "#]],
    );
}

/// Pi reports to be idle while a person answers a dialog.
#[test]
fn a_command_that_asks_keeps_the_run_open() {
    let mut stage = prompted();
    stage.emit(json!({ "type": "response", "id": "prompt-2", "success": true }));
    stage.ask("confirm", "Really?", "");
    for _ in 0..3 {
        stage.wake();
        stage.answer_states();
    }
    assert!(!stage.is_idle(), "the question is open");
    stage.give(RunInput::Interrupt);
    for _ in 0..3 {
        stage.wake();
        stage.answer_states();
    }
    assert!(stage.is_idle());
}

#[test]
fn pi_may_start_a_run_by_itself() {
    let mut stage = Stage::new(true);
    stage.emit(json!({ "type": "agent_start" }));
    let line =
        json!({ "role": "user", "content": [{ "type": "text", "text": "The build is done" }] });
    stage.emit(json!({ "type": "message_start", "message": line }));
    stage.answer("Good.");
    stage.emit(json!({ "type": "agent_end", "messages": [], "willRetry": false }));
    stage.emit(json!({ "type": "agent_settled", "aborted": false }));
    check(
        &stage,
        6,
        expect![[r#"
            begin
            notice {"level":"info","text":"Pi continues: The build is done"}
            step_start {"index":0}
            text_start {"partId":"self0.1"}
            text_done {"partId":"self0.1","text":"Good."}
            step_finish {"index":0,"finishReason":"stop"}
            wake_at 2000
            continuation {"shouldContinue":false,"stopReason":"completed","resolvedBy":"Agent"}
            end Completed
        "#]],
    );
}

#[test]
fn lines_between_runs_are_ignored() {
    let mut stage = working();
    stage.answer("Done.");
    stage.emit(json!({ "type": "agent_settled", "aborted": false }));
    stage.emit(json!({ "type": "agent_settled", "aborted": false }));
    stage.line("no JSON");
    stage.emit(json!({ "type": "brand_new" }));
    stage.ask("confirm", "Really?", "");
    stage.give(RunInput::Wake);
    stage.exit(Exit { code: Some(0), stderr: String::new() });
    check(
        &stage,
        7,
        expect![[r#"
        continuation {"shouldContinue":false,"stopReason":"completed","resolvedBy":"Agent"}
        end Completed
        > no JSON
        < {"type":"extension_ui_response","id":"d","cancelled":true}
        > wake
        > exited Some(0) ""
    "#]],
    );
}

#[test]
fn the_end_of_the_previous_run_is_ignored() {
    let mut stage = prompted();
    stage.emit(json!({ "type": "agent_settled", "aborted": true }));
    assert!(!stage.is_idle());
    stage.emit(json!({ "type": "agent_start" }));
    stage.answer("Done.");
    stage.emit(json!({ "type": "agent_settled", "aborted": false }));
    check(
        &stage,
        1,
        expect![[r#"
        continuation {"shouldContinue":false,"stopReason":"completed","resolvedBy":"Agent"}
        end Completed
    "#]],
    );
}

#[test]
fn unknown_lines_are_kept() {
    let mut stage = working();
    stage.line("no JSON");
    stage.emit(json!({ "type": "brand_new" }));
    stage.emit(json!({ "type": "message_start", "message": { "role": "oracle" } }));
    stage.emit(
        json!({ "type": "message_update", "assistantMessageEvent": { "type": "video_end" } }),
    );
    stage.emit(json!({ "type": "tool_execution_end", "toolCallId": 5 }));
    check(
        &stage,
        5,
        expect![[r#"
            > no JSON
            unrecognized {"source":"pi","raw":"no JSON"}
            unrecognized {"source":"pi","raw":"{\"type\":\"brand_new\"}"}
            unrecognized {"source":"pi","raw":"{\"type\":\"message_start\",\"message\":{\"role\":\"oracle\"}}"}
            unrecognized {"source":"pi","raw":"{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":\"video_end\"}}"}
            unrecognized {"source":"pi","raw":"{\"type\":\"tool_execution_end\",\"toolCallId\":5}"}
        "#]],
    );
}

#[test]
fn an_old_package_that_compacts_keeps_the_run_open() {
    let mut stage = working();
    stage.answer("Done.");
    stage.emit(json!({ "type": "agent_end", "messages": [] }));
    stage.emit(json!({ "type": "response", "id": "state-3", "success": true,
        "data": { "isStreaming": false, "isCompacting": true } }));
    stage.wake();
    check(
        &stage,
        3,
        expect![[r#"
        < {"id":"state-3","type":"get_state"}
        wake_at 500
        > wake
        < {"id":"state-4","type":"get_state"}
    "#]],
    );
}

#[test]
fn an_interrupt_that_came_too_early_is_repeated() {
    let mut stage = prompted();
    stage.give(RunInput::Interrupt);
    stage.emit(json!({ "type": "agent_start" }));
    check(
        &stage,
        2,
        expect![[r#"
        > interrupt
        < {"id":"abort-3","type":"abort"}
        wake_at 5000
        < {"id":"abort-4","type":"abort"}
    "#]],
    );
}

#[test]
fn an_ignored_interrupt_ends_the_program() {
    let mut stage = working();
    stage.give(RunInput::Interrupt);
    stage.wake();
    check(
        &stage,
        2,
        expect![[r#"
        > interrupt
        < {"id":"abort-3","type":"abort"}
        wake_at 5000
        > wake
        quit
        continuation {"shouldContinue":false,"stopReason":"user_requested","resolvedBy":"UserCancel"}
        end Cancelled
    "#]],
    );
}

#[test]
fn refused_and_late_steering_is_returned() {
    let mut stage = working();
    stage.steer("wait");
    stage.emit(json!({ "type": "response", "id": "steer-3", "success": false, "error": "no" }));
    stage.steer("look");
    stage.answer("Done.");
    stage.emit(json!({ "type": "agent_end", "messages": [], "willRetry": false }));
    stage.steer("and");
    stage.emit(json!({ "type": "agent_settled", "aborted": false }));
    stage.steer("more");
    check(
        &stage,
        9,
        expect![[r#"
            > steer "wait"
            < {"id":"steer-3","type":"steer","message":"wait"}
            cannot_steer m1
            > steer "look"
            < {"id":"steer-4","type":"steer","message":"look"}
            step_start {"index":0}
            agent_linked {"cliSessionId":"s","cwd":"/workspace"}
            text_start {"partId":"r1.1"}
            text_done {"partId":"r1.1","text":"Done."}
            step_finish {"index":0,"finishReason":"stop"}
            wake_at 2000
            > steer "and"
            cannot_steer m3
            continuation {"shouldContinue":false,"stopReason":"completed","resolvedBy":"Agent"}
            cannot_steer m2
            end Completed
            > steer "more"
            cannot_steer m4
        "#]],
    );
}

#[test]
fn unsupported_dialogs_are_declined_with_a_notice() {
    let mut stage = working();
    stage.ask("juggle", "How many balls?", "");
    stage.ask_about_call();
    stage.ask("notify", "", "Saved.");
    stage.ask("setStatus", "", "");
    check(
        &stage,
        4,
        expect![[r#"
            < {"type":"extension_ui_response","id":"d","cancelled":true}
            notice {"level":"info","text":"An extension of Pi asks “How many balls?”. Callboard cannot show this question, and has declined."}
            < {"type":"extension_ui_response","id":"d","cancelled":true}
            notice {"level":"info","text":"An extension of Pi asks “callboard:tool_call”. Callboard cannot show this question, and has declined."}
            notice {"level":"info","text":"Saved."}
        "#]],
    );
}

#[test]
fn invalid_edited_arguments_deny_the_call() {
    let mut stage = working();
    stage.call("bash", &json!({ "command": "rm -r x" }));
    stage.ask_about_call();
    stage.decide(Verdict::Allowed { arguments: Some("[]".to_owned()), scope: Scope::Once });
    stage.emit(json!({ "type": "tool_execution_end", "toolCallId": "c", "toolName": "bash",
        "result": { "content": [{ "type": "text", "text": "no JSON object" }] }, "isError": true }));
    check(
        &stage,
        3,
        expect![[r#"
            ask r1.1 can_edit=true
            > decided r1.1 Allowed { arguments: Some("[]"), scope: Once }
            < {"type":"extension_ui_response","id":"d","value":"{\"allow\":false,\"reason\":\"The arguments, as the user changed them, are no JSON object.\"}"}
            tool_result {"callId":"r1.1","toolName":"bash","ok":false,"error":{"code":"invalid_arguments","message":"no JSON object"}}
        "#]],
    );
}

#[test]
fn the_end_of_a_call_withdraws_its_approval() {
    let mut stage = working();
    stage.call("write", &json!({ "path": "x" }));
    stage.ask_about_call();
    stage.emit(json!({ "type": "tool_execution_end", "toolCallId": "c", "toolName": "write",
        "result": { "content": [{ "type": "text", "text": "gave up" }] }, "isError": true }));
    check(
        &stage,
        2,
        expect![[r#"
            ask r1.1 can_edit=true
            withdraw r1.1
            tool_result {"callId":"r1.1","toolName":"write","ok":false,"error":{"code":"tool_error","message":"gave up"}}
        "#]],
    );
}

/// The clock of a recording sets the times in the log.
#[test]
fn inputs_are_logged_with_the_recorded_times() {
    let mut stage = prompted();
    stage.play_line(Millis(700), &Recorded::Written(r#"{"type":"steer","message":"and"}"#.into()));
    let queued =
        stage.session.records.iter().find(|it| matches!(it.event, Event::MessageQueued { .. }));
    let began = stage.session.records[0].at;
    assert_eq!(queued.unwrap().at.since(began), 700);
}

#[test]
fn the_end_of_a_step_has_tokens_and_cost() {
    let mut stage = working();
    stage.emit(
        json!({ "type": "message_end", "message": { "role": "assistant", "stopReason": "stop",
        "usage": { "input": 5, "output": 7, "reasoning": 3, "cost": { "total": 0.25 } } } }),
    );
    let event = stage.session.records.pop().unwrap().event;
    let Event::StepFinish { usage: Some(usage), cost, .. } = event else { panic!("{event:?}") };
    assert_eq!((usage.total_tokens, usage.reasoning_tokens, cost), (12, Some(3), Some(0.25)));
}

#[test]
fn interleaved_blocks_become_separate_parts() {
    let mut stage = working();
    let update = |kind: &str, block: usize, text: &str| {
        let event = json!({ "type": kind, "contentIndex": block, "delta": text, "content": text });
        json!({ "type": "message_update", "assistantMessageEvent": event })
    };
    stage.emit(json!({ "type": "message_start", "message": { "role": "assistant" } }));
    stage.emit(update("thinking_delta", 0, "Hm. "));
    stage.emit(update("text_delta", 1, "One"));
    stage.emit(update("thinking_delta", 0, "And"));
    stage.emit(update("text_delta", 1, " two"));
    stage.emit(update("thinking_end", 0, "Hm. And"));
    stage.emit(update("text_end", 1, "One two."));
    stage.emit(json!({ "type": "message_end", "message": { "role": "assistant", "content": [
        { "type": "thinking", "thinking": "Hm. And" }, { "type": "text", "text": "One two." }],
        "stopReason": "stop" } }));
    check(
        &stage,
        8,
        expect![[r#"
        step_start {"index":0}
        thinking_start {"partId":"r1.1"}
        thinking_delta {"partId":"r1.1","delta":"Hm. "}
        thinking_done {"partId":"r1.1","text":"Hm. "}
        text_start {"partId":"r1.2"}
        text_delta {"partId":"r1.2","delta":"One"}
        text_done {"partId":"r1.2","text":"One"}
        thinking_start {"partId":"r1.3"}
        thinking_delta {"partId":"r1.3","delta":"And"}
        thinking_done {"partId":"r1.3","text":"And"}
        text_start {"partId":"r1.4"}
        text_delta {"partId":"r1.4","delta":" two"}
        agent_linked {"cliSessionId":"s","cwd":"/workspace"}
        text_done {"partId":"r1.4","text":" two."}
        step_finish {"index":0,"finishReason":"stop"}
    "#]],
    );
}

#[test]
fn calls_of_a_retried_answer_are_interrupted() {
    let mut stage = working();
    let update = |event: Value| json!({ "type": "message_update", "assistantMessageEvent": event });
    stage.emit(json!({ "type": "message_start", "message": { "role": "assistant" } }));
    stage.emit(update(json!({ "type": "toolcall_start", "contentIndex": 0 })));
    stage.emit(update(json!({ "type": "toolcall_delta", "contentIndex": 0, "delta": "{\"co" })));
    stage.emit(update(json!({ "type": "toolcall_delta", "contentIndex": 0, "delta": "mm",
        "partial": { "content": [{ "type": "toolCall", "id": "c", "name": "bash" }] } })));
    stage.emit(json!({ "type": "message_end", "message": { "role": "assistant",
        "content": [{ "type": "toolCall", "id": "c", "name": "bash", "arguments": {} }],
        "stopReason": "error", "errorMessage": "500 no" } }));
    stage.emit(json!({ "type": "agent_end", "messages": [], "willRetry": true }));
    stage.emit(json!({ "type": "auto_retry_start", "attempt": 1, "maxAttempts": 3,
        "delayMs": 2000, "errorMessage": "500 no" }));
    check(
        &stage,
        7,
        expect![[r#"
            step_start {"index":0}
            tool_call_start {"callId":"r1.1","providerCallId":"c","toolName":"bash","executor":"agent"}
            tool_arguments_delta {"callId":"r1.1","delta":"{\"comm"}
            agent_linked {"cliSessionId":"s","cwd":"/workspace"}
            tool_arguments_done {"callId":"r1.1","arguments":"{\"comm","summary":"","incomplete":true,"validation":"not_required"}
            tool_result {"callId":"r1.1","toolName":"bash","ok":false,"error":{"code":"tool_interrupted","message":"The model's answer broke off before this call could run."}}
            step_finish {"index":0,"finishReason":"error"}
            notice {"level":"info","text":"The model service failed (no). Pi tries again in 2 s (attempt 1 of 3)."}
        "#]],
    );
}

#[test]
fn an_exit_during_the_first_answer_gives_a_notice() {
    let mut stage = working();
    stage.emit(json!({ "type": "message_start", "message": { "role": "assistant" } }));
    stage.exit(Exit { code: None, stderr: String::new() });
    check(
        &stage,
        1,
        expect![[r#"
            > exited None ""
            notice {"level":"error","text":"Pi saves a conversation only after its first answer: the next message begins a new one without this one."}
            continuation {"shouldContinue":false,"stopReason":"error","resolvedBy":"AgentExited"}
            end Failed agent_exited: Pi stopped before it had answered (ended by a signal). Send the message again.
        "#]],
    );
}
