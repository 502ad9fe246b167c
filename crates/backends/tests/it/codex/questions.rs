//! Approvals and questions of Codex, and the responses to them.

use backends::{RunInput, Verdict};
use expect_test::{Expect, expect};
use serde_json::json;
use transcript::{CallState, Scope};

use super::open_thread::{TURN, command, in_turn};
use super::stage::Stage;

fn denied(feedback: &str) -> Verdict {
    Verdict::Denied { feedback: Some(feedback.to_owned()) }
}

fn allowed(arguments: &str, scope: Scope) -> Verdict {
    Verdict::Allowed { arguments: Some(arguments.to_owned()), scope }
}

#[track_caller]
fn check(mut stage: Stage, expected: Expect) {
    expected.assert_eq(&stage.take_outline());
}

#[test]
fn a_denial_with_a_reason_tells_the_model_why() {
    let mut stage = in_turn();
    stage.started(command("c", "inProgress"));
    stage.ask(0, "item/commandExecution/requestApproval", json!({ "itemId": "c" }));
    stage.decide(denied("use make"));
    stage.completed(command("c", "declined"));
    check(
        stage,
        expect![[r#"
            step_start {"index":0}
            tool_call_start {"callId":"r1.1","providerCallId":"c","toolName":"shell","executor":"agent"}
            tool_arguments_done {"callId":"r1.1","arguments":"{\"command\":\"ls\",\"cwd\":\"/w\"}","summary":"command: 'ls', cwd: '/w'","validation":"not_required"}
            tool_running {"callId":"r1.1"}
            ASK r1.1 null
              -> {"id":4,"method":"turn/steer","params":{"threadId":"thread-1","expectedTurnId":"turn-1","input":[{"type":"text","text":"I declined the call of shell: use make","text_elements":[]}]}}
              -> {"id":0,"result":{"decision":"decline"}}
            tool_result {"callId":"r1.1","toolName":"shell","ok":false,"error":{"code":"tool_denied","message":"It was declined; nothing ran: use make"}}
        "#]],
    );
}

#[test]
fn an_approval_timeout_denies_the_call() {
    let mut stage = in_turn();
    stage.started(command("c", "inProgress"));
    stage.ask(0, "item/commandExecution/requestApproval", json!({ "itemId": "c" }));
    stage.decide(Verdict::TimedOut);
    stage.completed(command("c", "declined"));
    assert!(stage.take_outline().contains("approval_timeout"));
    stage.turn_completed(TURN, "completed");
    assert_eq!(stage.ended[0].calls().next().unwrap().state, CallState::Denied);
}

#[test]
fn requests_that_codex_resolves_are_withdrawn() {
    let mut stage = in_turn();
    stage.started(command("c", "inProgress"));
    stage.ask(0, "item/commandExecution/requestApproval", json!({ "itemId": "c" }));
    stage.ask(1, "item/permissions/requestApproval", json!({ "permissions": {} }));
    stage.notify("serverRequest/resolved", json!({ "requestId": 0 }));
    stage.notify("serverRequest/resolved", json!({ "requestId": 1 }));
    stage.notify("serverRequest/resolved", json!({ "requestId": 2 }));
    check(
        stage,
        expect![[r#"
            step_start {"index":0}
            tool_call_start {"callId":"r1.1","providerCallId":"c","toolName":"shell","executor":"agent"}
            tool_arguments_done {"callId":"r1.1","arguments":"{\"command\":\"ls\",\"cwd\":\"/w\"}","summary":"command: 'ls', cwd: '/w'","validation":"not_required"}
            tool_running {"callId":"r1.1"}
            ASK r1.1 null
            tool_call_start {"callId":"r1.2","providerCallId":"question-1","toolName":"request_permissions","executor":"agent"}
            tool_arguments_done {"callId":"r1.2","arguments":"{\"permissions\":{}}","summary":"permissions: {}","validation":"not_required"}
            ASK r1.2 null
            WITHDRAW r1.1
            WITHDRAW r1.2
            tool_result {"callId":"r1.2","toolName":"request_permissions","ok":false,"error":{"code":"tool_interrupted","message":"Codex withdrew the request."}}
        "#]],
    );
}

#[test]
fn the_end_of_a_call_withdraws_its_approval() {
    let mut stage = in_turn();
    stage.started(command("c", "inProgress"));
    stage.ask(0, "item/commandExecution/requestApproval", json!({ "itemId": "c" }));
    stage.completed(command("c", "declined"));
    assert!(stage.asked.is_empty());
}

#[test]
fn a_second_request_about_a_call_gets_its_own_call() {
    let mut stage = in_turn();
    stage.started(command("c", "inProgress"));
    stage.ask(0, "item/commandExecution/requestApproval", json!({ "itemId": "c" }));
    // A repeated request is ignored.
    stage.ask(0, "item/commandExecution/requestApproval", json!({ "itemId": "c" }));
    let host = json!({ "host": "example.org" });
    let params = json!({ "itemId": "c", "command": "curl", "networkApprovalContext": host });
    stage.ask(1, "item/commandExecution/requestApproval", params);
    stage.allow();
    stage.allow();
    check(
        stage,
        expect![[r#"
            step_start {"index":0}
            tool_call_start {"callId":"r1.1","providerCallId":"c","toolName":"shell","executor":"agent"}
            tool_arguments_done {"callId":"r1.1","arguments":"{\"command\":\"ls\",\"cwd\":\"/w\"}","summary":"command: 'ls', cwd: '/w'","validation":"not_required"}
            tool_running {"callId":"r1.1"}
            ASK r1.1 null
            tool_call_start {"callId":"r1.2","providerCallId":"question-1","toolName":"network_access","executor":"agent"}
            tool_arguments_done {"callId":"r1.2","arguments":"{\"networkApprovalContext\":{\"host\":\"example.org\"},\"command\":\"curl\"}","summary":"networkApprovalContext: {host: 'example.org'}, command: 'curl'","validation":"not_required"}
            ASK r1.2 null
              -> {"id":0,"result":{"decision":"accept"}}
            tool_running {"callId":"r1.1"}
              -> {"id":1,"result":{"decision":"accept"}}
            tool_result {"callId":"r1.2","toolName":"network_access","ok":true,"result":{"decision":"accept"}}
        "#]],
    );
}

#[test]
fn questions_with_a_form() {
    let mut stage = in_turn();
    let question = json!({
        "id": "q1", "header": "Colour", "question": "Which colour?",
        "options": [{ "label": "red", "description": "" }],
    });
    let other = json!({ "id": "q2", "question": "Why?" });
    let params = json!({ "itemId": "u", "questions": [question, other] });
    stage.ask(0, "item/tool/requestUserInput", params);
    let answers = json!({ "answers": { "Which colour?": "red", "q2": ["a", "b"] } });
    stage.decide(allowed(&answers.to_string(), Scope::Once));

    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let params =
        json!({ "serverName": "s", "message": "Who?", "mode": "form", "requestedSchema": schema });
    stage.ask(1, "mcpServer/elicitation/request", params.clone());
    stage.decide(allowed(r#"{"name":"Ann"}"#, Scope::Once));
    stage.ask(2, "mcpServer/elicitation/request", params);
    stage.decide(denied("none of your business"));
    check(
        stage,
        expect![[r#"
            step_start {"index":0}
            tool_call_start {"callId":"r1.1","providerCallId":"question-0","toolName":"request_user_input","executor":"agent"}
            tool_arguments_done {"callId":"r1.1","arguments":"{\"questions\":[{\"id\":\"q1\",\"header\":\"Colour\",\"questi… (147 bytes)","summary":"questions: [{id: 'q1', header: 'Colour...","validation":"not_required"}
            ASK r1.1 {"questions":[{"id":"q1","header":"Colour","question":"Which colour?","options":[{"label":"red","description":""}]},{"id":"q2","question":"Why?"}]}
              -> {"id":0,"result":{"answers":{"q1":{"answers":["red"]},"q2":{"answers":["a","b"]}}}}
            tool_result {"callId":"r1.1","toolName":"request_user_input","ok":true,"result":{"answers":{"q1":{"answers":["red"]},"q2":{"answers":["a","b"]}}}}
            tool_call_start {"callId":"r1.2","providerCallId":"question-1","toolName":"elicitation","executor":"agent"}
            tool_arguments_done {"callId":"r1.2","arguments":"{\"serverName\":\"s\",\"message\":\"Who?\"}","summary":"serverName: 's', message: 'Who?'","validation":"not_required"}
            ASK r1.2 {"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}
              -> {"id":1,"result":{"action":"accept","content":{"name":"Ann"}}}
            tool_result {"callId":"r1.2","toolName":"elicitation","ok":true,"result":{"action":"accept","content":{"name":"Ann"}}}
            tool_call_start {"callId":"r1.3","providerCallId":"question-2","toolName":"elicitation","executor":"agent"}
            tool_arguments_done {"callId":"r1.3","arguments":"{\"serverName\":\"s\",\"message\":\"Who?\"}","summary":"serverName: 's', message: 'Who?'","validation":"not_required"}
            ASK r1.3 {"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}
              -> {"id":4,"method":"turn/steer","params":{"threadId":"thread-1","expectedTurnId":"turn-1","input":[{"type":"text","text":"I declined the call of elicitation: none of your business","text_elements":[]}]}}
              -> {"id":2,"result":{"action":"decline"}}
            tool_result {"callId":"r1.3","toolName":"elicitation","ok":false,"error":{"code":"tool_denied","message":"It was declined; nothing ran: none of your business"}}
        "#]],
    );
}

#[test]
fn permissions_are_granted_for_the_turn_or_the_session() {
    let mut stage = in_turn();
    let params = json!({ "itemId": "p", "reason": "net", "permissions": { "network": {} } });
    for (id, scope) in [(0, Scope::Once), (1, Scope::Session)] {
        stage.ask(id, "item/permissions/requestApproval", params.clone());
        stage.decide(Verdict::Allowed { arguments: None, scope });
        let word = if scope == Scope::Once { "turn" } else { "session" };
        let result = json!({ "permissions": { "network": {} }, "scope": word });
        assert_eq!(stage.last_written(), json!({ "id": id, "result": result }));
    }
    stage.ask(2, "item/permissions/requestApproval", params);
    stage.decide(Verdict::TimedOut);
    assert_eq!(stage.last_written(), json!({ "id": 2, "result": { "permissions": {} } }));
}

#[test]
fn an_mcp_request_belongs_to_the_call_with_its_arguments() {
    let mut stage = in_turn();
    for (id, n) in [("a", 1), ("b", 2)] {
        stage.started(json!({
            "type": "mcpToolCall", "id": id, "server": "s", "tool": "t", "arguments": { "n": n },
        }));
    }
    let meta = json!({
        "codex_approval_kind": "mcp_tool_call", "persist": ["session"], "tool_params": { "n": 2 },
    });
    let params = json!({ "serverName": "s", "message": "Allow?", "_meta": meta });
    stage.ask(0, "mcpServer/elicitation/request", params);
    assert_eq!(stage.asked[0].as_str(), "r1.2");
    stage.decide(Verdict::Allowed { arguments: None, scope: Scope::Always });
    let result = json!({ "action": "accept", "content": {}, "_meta": { "persist": "session" } });
    assert_eq!(stage.last_written(), json!({ "id": 0, "result": result }));
}

/// Codex reports a patch or an MCP call before it requests an approval.
#[test]
fn a_call_does_not_run_while_it_awaits_approval() {
    let patch = json!({ "type": "fileChange", "id": "i", "changes": [] });
    let tool = json!({ "type": "mcpToolCall", "id": "i", "server": "s", "tool": "t" });
    let meta = json!({ "codex_approval_kind": "mcp_tool_call", "tool_params": {} });
    for (item, method, params) in [
        (patch, "item/fileChange/requestApproval", json!({ "itemId": "i" })),
        (tool, "mcpServer/elicitation/request", json!({ "serverName": "s", "_meta": meta })),
    ] {
        let mut stage = in_turn();
        let since = |stage: &Stage| stage.call("r1.1").running_since;
        stage.started(item.clone());
        assert_eq!(since(&stage), Some(stage.now), "nobody is asked yet");
        stage.ask(0, method, params);
        assert_eq!(since(&stage), None, "a person is asked");
        stage.allow();
        assert_eq!(since(&stage), Some(stage.now), "somebody agreed");
        stage.completed(item);
        assert!(!stage.call("r1.1").is_open());
    }
}

#[test]
fn unsupported_requests_are_refused_and_shown() {
    let mut stage = in_turn();
    let call = json!({ "callId": "d", "tool": "x" });
    let foreign = json!({ "threadId": "thread-2", "itemId": "c" });
    for (id, method, params) in [
        (5, "item/tool/call", call),
        (6, "item/commandExecution/requestApproval", foreign),
        (7, "attestation/generate", json!({})),
    ] {
        stage.ask(id, method, params);
        let written = stage.last_written();
        assert_eq!((&written["id"], &written["error"]["code"]), (&json!(id), &json!(-32601)));
        assert!(stage.take_outline().contains("unrecognized"));
    }
    assert!(stage.asked.is_empty());
    // The same holds between runs, where nothing can be shown.
    stage.turn_completed(TURN, "completed");
    stage.ask(8, "attestation/generate", json!({}));
    assert_eq!(stage.last_written()["id"], 8);
}

#[test]
fn an_interrupt_cancels_open_requests() {
    let mut stage = in_turn();
    stage.started(command("c", "inProgress"));
    stage.ask(0, "item/commandExecution/requestApproval", json!({ "itemId": "c" }));
    stage.give(RunInput::Interrupt);
    stage.completed(command("c", "declined"));
    stage.turn_completed(TURN, "interrupted");
    assert_eq!(stage.ended[0].calls().next().unwrap().state, CallState::Interrupted);
    check(
        stage,
        expect![[r#"
            step_start {"index":0}
            tool_call_start {"callId":"r1.1","providerCallId":"c","toolName":"shell","executor":"agent"}
            tool_arguments_done {"callId":"r1.1","arguments":"{\"command\":\"ls\",\"cwd\":\"/w\"}","summary":"command: 'ls', cwd: '/w'","validation":"not_required"}
            tool_running {"callId":"r1.1"}
            ASK r1.1 null
              -> {"id":0,"result":{"decision":"cancel"}}
            WITHDRAW r1.1
            WAKE in 5000 ms
              -> {"id":4,"method":"turn/interrupt","params":{"threadId":"thread-1","turnId":"turn-1"}}
            tool_result {"callId":"r1.1","toolName":"shell","ok":false,"error":{"code":"tool_interrupted","message":"It was interrupted before it could run."}}
            continuation {"shouldContinue":false,"stopReason":"user_requested","resolvedBy":"UserCancel"}
            END {"status":"cancelled"}
        "#]],
    );
}
