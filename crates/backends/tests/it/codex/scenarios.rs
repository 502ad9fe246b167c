//! Scenarios of Codex of which there is no recording, one per test.

use std::sync::Arc;

use backends::codex::{Settings, backend};
use backends::{Exit, Launch, ProgramInput, ResumeId, RunInput};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use transcript::{ErrorCode, RunStatus};

use super::open_thread::{EARLIER, THREAD, TURN, command, in_turn, stage};
use super::stage::Stage;

#[track_caller]
fn check(stage: &mut Stage, expected: Expect) {
    expected.assert_eq(&stage.take_outline());
}

#[test]
fn the_completed_item_is_authoritative() {
    let mut stage = in_turn();
    stage.started(json!({ "type": "agentMessage", "id": "m", "text": "" }));
    stage.notify("item/agentMessage/delta", json!({ "itemId": "m", "delta": "Helo" }));
    stage.completed(json!({ "type": "agentMessage", "id": "m", "text": "Hello" }));
    // A repeated item changes nothing.
    stage.completed(json!({ "type": "agentMessage", "id": "m", "text": "Hello" }));
    stage.notify("item/agentMessage/delta", json!({ "itemId": "m", "delta": "late" }));
    // Empty reasoning is left out.
    stage.started(json!({ "type": "reasoning", "id": "r" }));
    stage.completed(json!({ "type": "reasoning", "id": "r", "summary": [], "content": [] }));
    // Sections are separated by an empty line.
    for (index, delta) in [(0, "One"), (0, " and"), (1, "Two")] {
        let params = json!({ "itemId": "s", "summaryIndex": index, "delta": delta });
        stage.notify("item/reasoning/summaryTextDelta", params);
    }
    stage.completed(json!({ "type": "reasoning", "id": "s", "summary": ["One and", "Two"] }));
    assert_eq!(stage.corrected, ["Hello"]);
    check(
        &mut stage,
        expect![[r#"
            step_start {"index":0}
            text_start {"partId":"r1.1"}
            text_delta {"partId":"r1.1","delta":"Helo"}
            text_done {"partId":"r1.1","text":"Hello"}
            thinking_start {"partId":"r1.2"}
            thinking_delta {"partId":"r1.2","delta":"One"}
            thinking_delta {"partId":"r1.2","delta":" and"}
            thinking_delta {"partId":"r1.2","delta":"\n\nTwo"}
            thinking_done {"partId":"r1.2","text":"One and\n\nTwo"}
        "#]],
    );
}

#[test]
fn tools_of_all_kinds() {
    let mut stage = in_turn();
    let plan = json!([{ "step": "look", "status": "completed" }]);
    stage.notify("turn/plan/updated", json!({ "explanation": null, "plan": plan }));
    stage.started(json!({ "type": "webSearch", "id": "w", "query": "" }));
    stage.completed(json!({ "type": "webSearch", "id": "w", "query": "rust" }));
    let spawn = |status: &str| {
        json!({
            "type": "collabAgentToolCall", "id": "c", "tool": "spawnAgent", "status": status,
            "prompt": "look", "agentsStates": { "t2": { "status": "running" } },
        })
    };
    stage.started(spawn("inProgress"));
    stage.completed(spawn("completed"));
    let call = json!({ "type": "mcpToolCall", "id": "p", "server": "s", "tool": "t" });
    stage.started(call.clone());
    stage.notify("item/mcpToolCall/progress", json!({ "itemId": "p", "message": "half" }));
    let mut failed = call;
    failed["error"] = json!({ "message": "no such thing" });
    stage.completed(failed);
    stage.completed(json!({ "type": "contextCompaction", "id": "x" }));
    check(
        &mut stage,
        expect![[r#"
            step_start {"index":0}
            tool_call_start {"callId":"r1.1","providerCallId":"r1+0","toolName":"update_plan","executor":"agent"}
            tool_arguments_done {"callId":"r1.1","arguments":"{\"plan\":[{\"step\":\"look\",\"status\":\"completed\"}]}","summary":"plan: [{step: 'look', status: 'co...","validation":"not_required"}
            tool_result {"callId":"r1.1","toolName":"update_plan","ok":true}
            tool_call_start {"callId":"r1.2","providerCallId":"w","toolName":"web_search","executor":"agent"}
            tool_running {"callId":"r1.2"}
            tool_arguments_done {"callId":"r1.2","arguments":"{\"query\":\"rust\"}","summary":"query: 'rust'","validation":"not_required"}
            tool_result {"callId":"r1.2","toolName":"web_search","ok":true,"durationMs":10}
            tool_call_start {"callId":"r1.3","providerCallId":"c","toolName":"spawn_agent","executor":"agent"}
            tool_arguments_done {"callId":"r1.3","arguments":"{\"prompt\":\"look\"}","summary":"prompt: 'look'","validation":"not_required"}
            tool_running {"callId":"r1.3"}
            tool_result {"callId":"r1.3","toolName":"spawn_agent","ok":true,"result":{"t2":{"status":"running"}},"durationMs":10}
            tool_call_start {"callId":"r1.4","providerCallId":"p","toolName":"s__t","executor":"agent"}
            tool_arguments_done {"callId":"r1.4","arguments":"{}","summary":"","validation":"not_required"}
            tool_running {"callId":"r1.4"}
            tool_output_delta {"callId":"r1.4","stream":"stdout","offset":0,"delta":"half\n"}
            tool_result {"callId":"r1.4","toolName":"s__t","ok":false,"error":{"code":"tool_error","message":"no such thing"},"durationMs":20}
            notice {"level":"info","text":"Codex has shortened the conversation to make room."}
        "#]],
    );
}

#[test]
fn unknown_lines_are_shown() {
    let mut stage = in_turn();
    stage.line("not json");
    stage.line("");
    stage.line(r#"{"id":77,"result":{}}"#);
    stage.line("[1]");
    stage.notify("item/telepathy/delta", json!({ "delta": "x" }));
    stage.started(json!({ "type": "telepathy", "id": "t" }));
    stage.completed(json!({ "type": "telepathy", "id": "t" }));
    stage.notify("account/updated", json!({}));
    let n_unknown = stage.take_outline().matches("unrecognized").count();
    assert_eq!(n_unknown, 5);
}

#[test]
fn items_of_other_threads_and_turns_are_ignored() {
    let mut stage = in_turn();
    for params in [json!({ "threadId": "thread-2" }), json!({ "turnId": "turn-0" })] {
        let mut params = params;
        params["item"] = json!({ "type": "agentMessage", "id": "m", "text": "psst" });
        stage.notify("item/completed", params.clone());
        params["turn"] = json!({ "id": "turn-0", "status": "completed" });
        stage.notify("turn/completed", params);
    }
    assert_eq!(stage.take_outline(), "");
    // Between runs nothing is logged, and open items have ended with their run.
    stage.started(command("c", "inProgress"));
    stage.turn_completed(TURN, "completed");
    stage.take_outline();
    stage.completed(command("c", "failed"));
    stage.line("not json");
    assert_eq!(stage.take_outline(), "");
    stage.start("again");
    stage.take_outline();
    stage.completed(command("c", "failed"));
    assert_eq!(stage.take_outline(), "");
}

#[test]
fn a_turn_may_end_before_its_response_arrives() {
    let mut stage = stage(&Launch::default());
    stage.start("go");
    stage.respond("initialize", json!({}));
    stage.respond("thread/start", json!({ "thread": { "id": THREAD } }));
    stage.turn_completed(TURN, "completed");
    assert_eq!(stage.endings[0].status, RunStatus::Completed);
    stage.respond("turn/start", json!({ "turn": { "id": TURN } }));
    // The late response does not name the turn of the next run.
    stage.start("again");
    stage.turn_completed(TURN, "completed");
    assert!(stage.is_running());
    stage.turn_completed("turn-2", "completed");
    assert!(!stage.is_running());
}

#[test]
fn a_lost_turn_end_is_inferred_from_an_idle_thread() {
    let idle = json!({ "status": { "type": "idle" } });
    let mut lost = in_turn();
    lost.notify("thread/status/changed", idle.clone());
    lost.wake();
    assert_eq!(lost.endings[0].status, RunStatus::Completed);

    let mut failed = in_turn();
    let error = json!({ "message": "broken", "codexErrorInfo": "other" });
    failed.notify("error", json!({ "error": error, "willRetry": false }));
    failed.notify("thread/status/changed", idle.clone());
    failed.wake();
    assert_eq!(failed.endings[0].status, RunStatus::Failed);

    let mut goes_on = in_turn();
    goes_on.notify("thread/status/changed", idle);
    goes_on.notify("thread/status/changed", json!({ "status": { "type": "active" } }));
    goes_on.wake();
    assert!(goes_on.is_running());
}

#[test]
fn a_turn_that_codex_starts_is_a_run() {
    let mut stage = in_turn();
    stage.turn_completed(TURN, "completed");
    stage.take_outline();
    stage.notify("turn/started", json!({ "turn": { "id": TURN } }));
    assert!(!stage.is_running(), "that one is over");
    stage.notify("turn/started", json!({ "turn": { "id": "turn-2" } }));
    let item = json!({ "type": "agentMessage", "id": "m", "text": "By the way" });
    stage.notify("item/completed", json!({ "turnId": "turn-2", "item": item }));
    stage.turn_completed("turn-2", "completed");
    check(
        &mut stage,
        expect![[r#"
            BEGIN
            step_start {"index":0}
            text_start {"partId":"self1.1"}
            text_done {"partId":"self1.1","text":"By the way"}
            step_finish {"index":0,"finishReason":"stop"}
            continuation {"shouldContinue":false,"stopReason":"completed","resolvedBy":"Codex"}
            END {"status":"completed"}
        "#]],
    );
}

#[test]
fn an_interrupt_before_the_turn_cancels_the_run() {
    let mut early = stage(&Launch::default());
    early.start("go");
    early.give(RunInput::Interrupt);
    assert_eq!(early.endings[0].status, RunStatus::Cancelled);
    // The handshake continues, and the next run uses the thread.
    early.respond("initialize", json!({}));
    early.start("again");
    early.respond("thread/start", json!({ "thread": { "id": THREAD } }));
    assert_eq!(early.request("turn/start")["params"]["input"][0]["text"], "again");

    early.give(RunInput::Interrupt);
    assert!(early.is_running(), "Codex may have begun");
    early.respond("turn/start", json!({ "turn": { "id": TURN } }));
    assert_eq!(early.request("turn/interrupt")["params"]["turnId"], TURN);
    early.turn_completed(TURN, "interrupted");
    assert_eq!(early.endings[1].status, RunStatus::Cancelled);
    assert!(!early.has_quit);
}

#[test]
fn a_codex_that_ignores_interrupts_is_ended() {
    let mut stage = in_turn();
    stage.give(RunInput::Interrupt);
    stage.give(RunInput::Interrupt);
    stage.give(RunInput::Wake);
    assert!(stage.is_running(), "it has time");
    stage.wake();
    assert!(stage.has_quit && !stage.is_running());
    stage.line("anything");
    stage.start("too early");
    assert_eq!(stage.endings[1].status, RunStatus::Failed);
}

#[test]
fn steered_messages_are_seen_refused_or_left_over() {
    let mut stage = in_turn();
    stage.steer("m1", "also this");
    stage.respond("turn/steer", json!({ "turnId": TURN }));
    stage.completed(json!({ "type": "userMessage", "id": "u", "clientId": "m1" }));
    stage.steer("m2", "and that");
    stage.refuse("turn/steer", "no active turn");
    stage.steer("m3", "never answered");
    stage.turn_completed(TURN, "completed");
    check(
        &mut stage,
        expect![[r#"
              -> {"id":4,"method":"turn/steer","params":{"threadId":"thread-1","expectedTurnId":"turn-1","input":[{"type":"text","text":"also this","text_elements":[]}],"clientUserMessageId":"m1"}}
            message_steered {"messageId":"m1","text":"also this","state":"handed_over"}
            message_steered {"messageId":"m1","text":"also this","state":"seen"}
              -> {"id":5,"method":"turn/steer","params":{"threadId":"thread-1","expectedTurnId":"turn-1","input":[{"type":"text","text":"and that","text_elements":[]}],"clientUserMessageId":"m2"}}
            CANNOT STEER m2
              -> {"id":6,"method":"turn/steer","params":{"threadId":"thread-1","expectedTurnId":"turn-1","input":[{"type":"text","text":"never answered","text_elements":[]}],"clientUserMessageId":"m3"}}
            CANNOT STEER m3
            continuation {"shouldContinue":false,"stopReason":"completed","resolvedBy":"Codex"}
            END {"status":"completed"}
        "#]],
    );
    stage.steer("m4", "nothing runs");
    assert_eq!(stage.take_outline(), "CANNOT STEER m4\n");
}

#[test]
fn a_lost_conversation_is_replaced_by_a_new_thread() {
    let resume = ResumeId::parse(EARLIER);
    let mut stage = stage(&Launch { resume, ..Launch::default() });
    stage.start("go");
    stage.respond("initialize", json!({}));
    stage.take_outline();
    stage.refuse("thread/resume", "no rollout found");
    stage.respond("thread/start", json!({ "thread": { "id": THREAD, "cliVersion": "1" } }));
    check(
        &mut stage,
        expect![[r#"
            notice {"level":"error","text":"Codex could not resume its conversation and starts… (131 bytes)"}
              -> {"id":3,"method":"thread/start","params":{"cwd":"","approvalPolicy":"on-request","sandbox":"workspace-write"}}
            agent_linked {"cliSessionId":"thread-1","version":"1"}
              -> {"id":4,"method":"turn/start","params":{"threadId":"thread-1","input":[{"type":"text","text":"go","text_elements":[]}],"summary":"auto"}}
        "#]],
    );
}

/// A thread that is open in a terminal or another Callboard still exists: do not start another.
#[test]
fn the_next_run_retries_a_thread_that_was_open_elsewhere() {
    let resume = ResumeId::parse(EARLIER);
    let mut stage = stage(&Launch { resume, ..Launch::default() });
    stage.start("go");
    stage.respond("initialize", json!({}));
    stage.take_outline();
    stage.refuse("thread/resume", "thread old-thread already has an active writer");
    check(
        &mut stage,
        expect![[r#"
        continuation {"shouldContinue":false,"stopReason":"error","resolvedBy":"ErrorPolicy"}
        END {"status":"failed","error":{"code":"agent_busy","message":"This conversation is open in another Codex (thread… (124 bytes)"}}
    "#]],
    );
    stage.start("go on");
    stage.respond("thread/resume", json!({ "thread": { "id": EARLIER } }));
    check(
        &mut stage,
        expect![[r#"
          -> {"id":3,"method":"thread/resume","params":{"cwd":"","approvalPolicy":"on-request","sandbox":"workspace-write","threadId":"0199e09f-40e5-7493-a575-de63127bb063","excludeTurns":true}}
        agent_linked {"cliSessionId":"0199e09f-40e5-7493-a575-de63127bb063"}
          -> {"id":4,"method":"turn/start","params":{"threadId":"0199e09f-40e5-7493-a575-de63127bb063","input":[{"type":"text","text":"go on","text_elements":[]}],"summary":"auto"}}
    "#]],
    );
}

#[test]
fn notices_may_come_before_the_response_with_the_thread() {
    let mut stage = stage(&Launch::default());
    stage.start("go");
    stage.respond("initialize", json!({}));
    stage.take_outline();
    let server = json!({ "name": "db", "status": "failed", "error": "no such file" });
    stage.notify("mcpServer/startupStatus/updated", server);
    stage.notify("warning", json!({ "message": "careful" }));
    check(
        &mut stage,
        expect![[r#"
            notice {"level":"error","text":"Codex could not start its MCP server db: no such file"}
            notice {"level":"info","text":"careful"}
        "#]],
    );
    stage.respond("thread/start", json!({ "thread": { "id": THREAD } }));
    stage.take_outline();
    stage.notify("warning", json!({ "threadId": "thread-2", "message": "not ours" }));
    assert_eq!(stage.take_outline(), "");
}

/// `codex exec` writes an error, and may exit before it reports that the turn has failed.
#[test]
fn exec_reports_an_error_that_ends_its_process() {
    let settings = Settings { app_server: false, ..Settings::default() };
    let end = |lines: &[Value]| {
        let mut stage = Stage::new(backend(Arc::new(settings.clone()), &Launch::default()));
        stage.start("go");
        lines.iter().for_each(|it| stage.line(&it.to_string()));
        stage.give(ProgramInput::Exited(Exit { code: Some(1), stderr: String::new() }));
        stage.endings.pop().unwrap().error.unwrap()
    };
    let trouble = json!({ "type": "error", "message": "unexpected status 401 Unauthorized" });
    let trying = json!({ "type": "error", "message": "Reconnecting... 1/2" });
    let more = json!({ "type": "turn.started" });
    let error = end(std::slice::from_ref(&trouble));
    assert_eq!(error.code, ErrorCode::UpstreamAuth);
    assert!(error.message.contains("401 Unauthorized"));
    assert_eq!(end(&[trying]).code, ErrorCode::AgentExited, "that is told while it tries");
    assert_eq!(end(&[trouble, more]).code, ErrorCode::AgentExited, "it went on");
}

#[test]
fn exec_reads_a_line_with_an_unpaired_surrogate() {
    let settings = Settings { app_server: false, ..Settings::default() };
    let mut stage = Stage::new(backend(Arc::new(settings), &Launch::default()));
    stage.start("go");
    stage.take_outline();
    stage.line(
        r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"a\ud83d b"}}"#,
    );
    check(
        &mut stage,
        expect![[r#"
            step_start {"index":0}
            text_start {"partId":"r1.1"}
            text_done {"partId":"r1.1","text":"a� b"}
        "#]],
    );
}

#[test]
fn exec_names_calls_of_agents_differently() {
    let settings = Settings { app_server: false, ..Settings::default() };
    let mut stage = Stage::new(backend(Arc::new(settings), &Launch::default()));
    stage.start("go");
    stage.take_outline();
    stage.line(
        r#"{"type":"item.completed","item":{"id":"i","type":"collab_tool_call","tool":"spawn_agent","prompt":"look","agents_states":{"t2":{"status":"running"}},"status":"completed"}}"#,
    );
    let outline = stage.take_outline();
    assert!(
        outline.contains(r#""toolName":"spawn_agent""#) && !outline.contains("unrecognized"),
        "{outline}"
    );
}

#[test]
fn refused_requests_fail_the_run_or_flag_an_old_codex() {
    let mut old = stage(&Launch::default());
    old.start("go");
    old.refuse("initialize", "too old");
    assert!(old.has_quit && !old.is_running());

    // A Codex that does not know the method is outdated.
    let mut ancient = stage(&Launch::default());
    ancient.start("go");
    ancient.respond("initialize", json!({}));
    ancient
        .refuse("thread/start", "Invalid request: unknown variant `thread/start`, expected one of");
    assert!(ancient.is_outdated && ancient.endings.is_empty());

    // A run that was stopped in the meantime is not retried with another protocol.
    let mut stopped = stage(&Launch::default());
    stopped.start("go");
    stopped.respond("initialize", json!({}));
    stopped.respond("thread/start", json!({ "thread": { "id": THREAD } }));
    stopped.give(RunInput::Interrupt);
    stopped.refuse("turn/start", "Invalid request: unknown variant `turn/start`, expected one of");
    assert!(!stopped.is_outdated && !stopped.is_running());

    let mut picky = stage(&Launch::default());
    picky.start("go");
    picky.respond("initialize", json!({}));
    picky.refuse("thread/start", "unknown variant `sometimes`");
    assert_eq!(picky.endings[0].status, RunStatus::Failed);
    // The next run retries.
    picky.start("again");
    picky.respond("thread/start", json!({ "thread": {} }));
    picky.start("and again");
    picky.respond("thread/start", json!({ "thread": { "id": THREAD } }));
    picky.refuse("turn/start", "unknown model");
    assert_eq!(picky.endings.len(), 3);
}

#[test]
fn failed_servers_and_rerouted_models_give_notices() {
    let mut stage = in_turn();
    let status = |status: &str| json!({ "name": "db", "status": status, "error": "no such file" });
    stage.notify("mcpServer/startupStatus/updated", status("starting"));
    stage.notify("mcpServer/startupStatus/updated", status("failed"));
    stage.notify("model/rerouted", json!({ "fromModel": "a", "toModel": "b" }));
    stage.notify("warning", json!({ "message": "careful" }));
    check(
        &mut stage,
        expect![[r#"
            notice {"level":"error","text":"Codex could not start its MCP server db: no such file"}
            notice {"level":"info","text":"The service answers with b instead of a."}
            notice {"level":"info","text":"careful"}
        "#]],
    );
}
