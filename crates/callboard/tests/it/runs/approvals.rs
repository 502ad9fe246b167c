//! Calls that need an approval: one decision wins, and the log records the outcome.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::{
    Call, CallId, CallState, Decision, ErrorCode, Event, GrantScope, Message, RunMessage,
    RunStatus, Transcript,
};

use crate::support::log::check_log;
use crate::support::model::Model;
use crate::support::program::{Home, Server};
use crate::support::watcher::{Watcher, is_quiet, watch_until};

/// Waits until an approval is requested. Returns the path to decide about the last call.
async fn asked(server: &Server, session: &str) -> String {
    let is_asked = |it: &Transcript| !it.summary.open_approvals.is_empty();
    let transcript = watch_until(server, session, is_asked).await;
    let call = transcript.summary.open_approvals.last().unwrap();
    format!("/api/sessions/{session}/calls/{call}/approval")
}

async fn decide(server: &Server, path: &str, decision: Value) {
    let (status, body) = server.post(path, decision).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{body}");
}

/// Waits until nothing runs and returns the last answer.
async fn last_answer(server: &Server, session: &str) -> RunMessage {
    let transcript = watch_until(server, session, is_quiet).await;
    check_log(&server.log(session).await, |_| false);
    transcript.messages.last().and_then(Message::run).unwrap().clone()
}

fn only_call(answer: &RunMessage) -> &Call {
    let calls: Vec<&Call> = answer.calls().collect();
    assert_eq!(calls.len(), 1);
    calls[0]
}

fn error_code(call: &Call) -> &ErrorCode {
    &call.outcome.as_ref().unwrap().error.as_ref().unwrap().code
}

fn has_file(home: &Home, name: &str) -> bool {
    home.workspace().join(name).exists()
}

/// Returns the calls that a grant covers, for the demo agent in this workspace.
fn covered(home: &Home, covers: Option<String>) -> Value {
    let covers = GrantScope::parse(&covers.unwrap()).unwrap();
    let workspace = home.workspace().canonicalize().unwrap();
    assert_eq!((&*covers.agent, &*covers.workspace), ("demo", workspace.to_str().unwrap()));
    serde_json::to_value(covers.calls).unwrap()
}

#[tokio::test]
async fn a_request_records_the_replaced_file_and_its_coverage() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let question = async |words: &str| {
        server.send(&session, words).await;
        let path = asked(&server, &session).await;
        let log = server.log(&session).await;
        let options = log.into_iter().rev().find_map(|it| match it.event {
            Event::ToolApprovalRequested { options, .. } => Some(options),
            _ => None,
        });
        decide(&server, &path, json!({ "decision": "accepted" })).await;
        watch_until(&server, &session, is_quiet).await;
        options.unwrap()
    };
    let file = home.workspace().join("notes.txt");
    let new = question("write \"some words\" to notes.txt").await;
    let target = new.target.unwrap();
    assert_eq!((target.path.as_str(), target.size), (file.to_str().unwrap(), None));
    assert_eq!(covered(&home, new.covers), json!({ "folder": "." }));

    let written = std::fs::read_to_string(&file).unwrap();
    let again = question("write \"other words\" to notes.txt").await.target.unwrap();
    assert_eq!((again.size, again.text), (Some(written.len() as u64), Some(written)));

    std::fs::write(&file, "long\n".repeat(100_000)).unwrap();
    let long = question("write \"no more\" to notes.txt").await.target.unwrap();
    assert_eq!((long.size, long.text), (Some(500_000), None), "only named");
    let command = json!({ "command": { "text": "touch made" } });
    assert_eq!(covered(&home, question("run touch made").await.covers), command);
}

#[tokio::test]
async fn allowed_calls_run_and_denied_calls_do_not() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;

    server.send(&session, "run touch made").await;
    let path = asked(&server, &session).await;
    assert_eq!(server.get(&format!("/api/sessions/{session}")).await["state"], "waiting");
    assert!(!has_file(&home, "made"), "nothing runs before");
    decide(&server, &path, json!({ "decision": "accepted" })).await;
    let answer = last_answer(&server, &session).await;
    assert_eq!(only_call(&answer).state, CallState::Succeeded);
    assert!(has_file(&home, "made"));
    let (status, body) = server.post(&path, json!({ "decision": "rejected" })).await;
    assert_eq!((status, &body["error"]["by"]), (StatusCode::CONFLICT, &json!("user")));
    assert!(body["error"]["at"].is_string(), "{body}");

    server.send(&session, "write \"some words\" to notes.txt").await;
    let path = asked(&server, &session).await;
    decide(&server, &path, json!({ "decision": "rejected", "feedback": "not there" })).await;
    let answer = last_answer(&server, &session).await;
    let call = only_call(&answer);
    assert_eq!((call.state, error_code(call)), (CallState::Denied, &ErrorCode::ToolDenied));
    assert!(!has_file(&home, "notes.txt"));
    assert!(answer.content().contains("not there"), "{}", answer.content());

    let other = server.create_session().await;
    server.send(&other, "run ls").await;
    assert_eq!(only_call(&last_answer(&server, &other).await).state, CallState::Succeeded);
    for unknown in ["none", "none.1"] {
        let path = format!("/api/sessions/{other}/calls/{unknown}/approval");
        let (status, body) = server.post(&path, json!({ "decision": "accepted" })).await;
        assert_eq!(
            (status, &body["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("call_not_found"))
        );
    }
}

#[tokio::test]
async fn one_of_many_concurrent_decisions_wins() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "run echo x >> made").await;
    let path = asked(&server, &session).await;
    let decisions = (0..20).map(|n| {
        let decision = if n % 2 == 0 { "accepted" } else { "rejected" };
        server.post(&path, json!({ "decision": decision }))
    });
    let answers = futures_util::future::join_all(decisions).await;
    let won: Vec<_> = answers.iter().filter(|it| it.0 == StatusCode::NO_CONTENT).collect();
    assert_eq!(won.len(), 1);
    for (status, body) in answers.iter().filter(|it| it.0 != StatusCode::NO_CONTENT) {
        assert_eq!(
            (*status, &body["error"]["code"]),
            (StatusCode::CONFLICT, &json!("already_decided"))
        );
        assert_eq!(body["error"]["message"], "the call was decided already, by you");
    }
    let answer = last_answer(&server, &session).await;
    let resolved = only_call(&answer).approval.as_ref().unwrap().resolved.as_ref().unwrap();
    let made = std::fs::read_to_string(home.workspace().join("made")).unwrap_or_default();
    let expected = if resolved.decision == Decision::Accepted { "x\n" } else { "" };
    assert_eq!(made, expected, "it ran once or not at all");
}

#[tokio::test]
async fn edited_arguments_replace_the_proposed_ones() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "run touch proposed").await;
    let path = asked(&server, &session).await;
    for wrong in [json!("no json"), json!({}), json!({ "command": 5 }), json!({ "cmd": "ls" })] {
        let (status, body) =
            server.post(&path, json!({ "decision": "accepted", "arguments": wrong })).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    }
    let edited = json!({ "decision": "accepted", "arguments": { "command": "touch edited" } });
    decide(&server, &path, edited).await;
    let answer = last_answer(&server, &session).await;
    let call = only_call(&answer);
    assert!(has_file(&home, "edited") && !has_file(&home, "proposed"));
    assert!(call.arguments.whole().unwrap().contains("proposed"));
    let resolved = call.approval.as_ref().unwrap().resolved.as_ref().unwrap();
    assert_eq!(resolved.arguments.as_deref(), Some(r#"{"command":"touch edited"}"#));
}

#[tokio::test]
async fn grants_for_a_session_or_always_are_not_asked_again() {
    let home = Home::instant();
    let server = home.start();
    let (one, two) = (server.create_session().await, server.create_session().await);
    server.send(&one, "run touch a").await;
    let path = asked(&server, &one).await;
    decide(&server, &path, json!({ "decision": "accepted", "scope": "session" })).await;
    last_answer(&server, &one).await;
    let server = {
        server.stop();
        home.start()
    };
    server.send(&one, "run touch a").await;
    let answer = last_answer(&server, &one).await;
    assert!(
        only_call(&answer).approval.is_none(),
        "allowed for this session, also after a restart"
    );
    server.send(&one, "run touch a b").await;
    asked(&server, &one).await;
    server.post(&format!("/api/sessions/{one}/cancel"), json!({})).await;
    server.send(&two, "run touch a").await;
    let path = asked(&server, &two).await;
    decide(&server, &path, json!({ "decision": "accepted", "scope": "always" })).await;
    last_answer(&server, &two).await;

    let three = server.create_session().await;
    server.send(&three, "run touch a").await;
    assert!(only_call(&last_answer(&server, &three).await).approval.is_none(), "allowed for good");
    let grants = server.get("/api/grants").await;
    let grant = &grants["grants"][0];
    let calls = json!({ "command": { "text": "touch a" } });
    assert_eq!(covered(&home, grant["covers"].as_str().map(str::to_owned)), calls);
    assert_eq!((&grant["tool"], &grant["agent"]), (&json!("shell"), &json!("demo")));
    assert_eq!(
        (&grant["text"], &grant["inactive"]),
        (&json!("exactly this command"), &json!(false))
    );
    let path = format!("/api/grants/{}", grants["grants"][0]["id"].as_str().unwrap());
    let (status, _) = server.request(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, _) = server.request(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    server.send(&three, "run touch a").await;
    asked(&server, &three).await;
}

#[tokio::test]
async fn a_conditional_cancel_keeps_a_run_with_an_approval() {
    let home = Home::natural();
    let server = home.start();
    let session = server.create_session().await;
    let path = format!("/api/sessions/{session}/cancel?unlessAsking=true");
    server.send(&session, "run touch made").await;
    asked(&server, &session).await;
    let (status, body) = server.post(&path, json!({})).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (StatusCode::CONFLICT, &json!("awaiting_decision"))
    );
    let mut watcher = Watcher::connect(&server).await;
    let frame = json!({ "type": "cancel_output", "sessionId": session, "unlessAsking": true });
    watcher.send(frame).await;
    assert_eq!(watcher.until("error").await["code"], "awaiting_decision");
    let call = asked(&server, &session).await;
    decide(&server, &call, json!({ "decision": "rejected" })).await;
    last_answer(&server, &session).await;

    server.send(&session, "tell me a story").await;
    let (status, body) = server.post(&path, json!({})).await;
    assert_eq!((status, &body["cancelled"]), (StatusCode::OK, &json!(true)));
}

#[tokio::test]
async fn a_run_that_awaits_an_approval_can_be_stopped() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "run touch made").await;
    let path = asked(&server, &session).await;
    server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await;
    let answer = last_answer(&server, &session).await;
    let call = only_call(&answer);
    let resolved = call.approval.as_ref().unwrap().resolved.as_ref().unwrap();
    assert_eq!((call.state, resolved.decision), (CallState::Interrupted, Decision::Withdrawn));
    assert_eq!(answer.finish.unwrap().status, RunStatus::Cancelled);
    let (status, _) = server.post(&path, json!({ "decision": "accepted" })).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(!has_file(&home, "made"));
}

#[tokio::test]
async fn an_approval_times_out() {
    let home = Home::new("[demo]\npace = \"instant\"\n[approvals]\ntimeout_seconds = 1\n");
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "run touch made").await;
    let answer = last_answer(&server, &session).await;
    let call = only_call(&answer);
    let resolved = call.approval.as_ref().unwrap().resolved.as_ref().unwrap();
    assert_eq!(resolved.decision, Decision::TimedOut);
    assert_eq!((call.state, error_code(call)), (CallState::Denied, &ErrorCode::ApprovalTimeout));
    assert!(!has_file(&home, "made"));
}

#[tokio::test]
async fn configured_rules_decide_first() {
    let home = Home::new(
        "[demo]\npace = \"instant\"\n[approvals]\nwrite_file = \"deny\"\n\
         shell = { allow = [\"touch *\"], deny = [\"*secret*\"] }\n",
    );
    let server = home.start();
    let session = server.create_session().await;
    for (text, state) in [
        ("run touch made", CallState::Succeeded),
        ("run touch secret", CallState::Denied),
        ("run ls; touch secret", CallState::Denied),
        ("write x to a.md", CallState::Denied),
    ] {
        server.send(&session, text).await;
        let answer = last_answer(&server, &session).await;
        let call = only_call(&answer);
        assert_eq!((call.state, call.approval.is_none()), (state, true), "{text}");
    }
    assert!(has_file(&home, "made") && !has_file(&home, "secret"));
}

/// Creates a home whose only agent uses this model.
fn with_model(model: &Model, more: &str) -> Home {
    let base_url = &model.base_url;
    Home::new(&format!(
        "demo = false\n[[agents]]\nid = \"m\"\nkind = \"openai\"\nbase_url = \"{base_url}\"\n\
         model = \"small\"\n{more}"
    ))
}

async fn create_session(server: &Server) -> String {
    let (_, session) = server.post("/api/sessions", json!({})).await;
    session["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_denial_reaches_the_model_with_its_reason() {
    let mut model = Model::start().await;
    let home = with_model(&model, "");
    let server = home.start();
    let session = create_session(&server).await;
    server.send(&session, "tidy up").await;
    model.asked().await.call("shell", &json!({ "command": "rm a.txt" })).await;
    let path = asked(&server, &session).await;
    let mut watcher = Watcher::connect(&server).await;
    let call = path.split('/').nth(5).unwrap();
    watcher
        .send(json!({
            "type": "approve_tool", "sessionId": session, "callId": call, "decision": "rejected",
            "feedback": "I need that file",
        }))
        .await;
    let request = model.asked().await;
    let result = request.messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(result.contains("tool_denied") && result.contains("I need that file"), "{result}");
    request.answer("I leave it.").await;
    assert_eq!(last_answer(&server, &session).await.content(), "I leave it.");
    assert!(has_file(&home, "a.txt"));
}

#[tokio::test]
async fn the_output_of_a_command_reaches_the_model() {
    let mut model = Model::start().await;
    let home = with_model(&model, "[approvals]\nshell = \"allow\"\n");
    let server = home.start();
    let session = create_session(&server).await;
    server.send(&session, "look").await;
    let command = "cat a.txt; echo oops >&2; head -c 100000 /dev/zero | tr '\\0' x; exit 4";
    model.asked().await.call("shell", &json!({ "command": command })).await;
    let request = model.asked().await;
    let result = request.messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!((&result["exitCode"], &result["stderr"]), (&json!(4), &json!("oops\n")));
    let stdout = result["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("alpha\nbeta\nxxx") && stdout.len() < 20_000);
    request.answer("Seen.").await;
    let answer = last_answer(&server, &session).await;
    let call = only_call(&answer);
    let truncated = call.outcome.as_ref().unwrap().truncated.unwrap();
    assert_eq!(truncated.total_bytes, 100_000 + 11 + 5);
    let path = format!("/api/sessions/{session}/calls/{}/output", call.id);
    assert_eq!(server.get(&path).await.as_str().unwrap().len(), 100_000 + 11, "all of it is kept");
}

/// A decision after the restart counts, whether the server was killed or stopped.
#[tokio::test]
async fn a_call_that_awaits_approval_survives_a_restart() {
    for kills in [false, true] {
        let mut model = Model::start().await;
        let home = with_model(&model, "");
        let mut server = home.start();
        let session = create_session(&server).await;
        server.send(&session, "make it").await;
        model.asked().await.call("shell", &json!({ "command": "touch made" })).await;
        let path = asked(&server, &session).await;
        if kills {
            server.kill()
        } else {
            drop(server.stop())
        }
        server = home.start();
        assert_eq!(asked(&server, &session).await, path, "it waits as before");
        decide(&server, &path, json!({ "decision": "accepted" })).await;
        let request = model.asked().await;
        let roles: Vec<&str> =
            request.messages().iter().map(|it| it["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "tool"]);
        request.answer("Made.").await;
        let answer = last_answer(&server, &session).await;
        assert_eq!((answer.content(), answer.steps.len()), ("Made.".to_owned(), 2));
        assert_eq!(answer.finish.unwrap().status, RunStatus::Completed);
        assert!(has_file(&home, "made"));
    }
}

#[tokio::test]
async fn the_demo_agent_continues_after_a_restart() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "run touch made").await;
    let path = asked(&server, &session).await;
    server.kill();
    let server = home.start();
    decide(&server, &path, json!({ "decision": "accepted" })).await;
    let answer = last_answer(&server, &session).await;
    assert_eq!(only_call(&answer).state, CallState::Succeeded);
    assert!(answer.content().contains("went well"), "{}", answer.content());
}

/// Sends a text to the demo agent and accepts every call. With `restarts`, the server is killed
/// before each decision.
async fn allowed_throughout(text: &str, restarts: bool) -> RunMessage {
    let home = Home::new("[demo]\npace = \"instant\"\n[approvals]\n\"*\" = \"ask\"\n");
    let mut server = home.start();
    let session = server.create_session().await;
    server.send(&session, text).await;
    loop {
        let is_settled = |it: &Transcript| is_quiet(it) || !it.summary.open_approvals.is_empty();
        let transcript = watch_until(&server, &session, is_settled).await;
        if is_quiet(&transcript) {
            return last_answer(&server, &session).await;
        }
        if restarts {
            server.kill();
            server = home.start();
        }
        let path = asked(&server, &session).await;
        decide(&server, &path, json!({ "decision": "accepted" })).await;
    }
}

#[tokio::test]
async fn restarts_during_approvals_do_not_change_the_answer() {
    for text in [
        "write one to a.md",
        "read a.txt and read b.md",
        "list the files, then read a.txt and search for alpha",
        "think about tea, then list the files",
        "read missing.txt, then read a.txt",
    ] {
        let (whole, resumed) =
            (allowed_throughout(text, false).await, allowed_throughout(text, true).await);
        assert_eq!(resumed.content(), whole.content(), "{text}");
        let calls = |answer: &RunMessage| -> Vec<(String, CallState)> {
            answer.calls().map(|it| (it.name.clone(), it.state)).collect()
        };
        assert_eq!(calls(&resumed), calls(&whole), "{text}");
        assert!(resumed.calls().all(|it| it.approval.is_some()), "{text}: it asked");
        assert_eq!(resumed.steps.len(), whole.steps.len(), "{text}");
    }
}

#[tokio::test]
async fn limits_include_usage_before_a_restart() {
    let mut model = Model::start().await;
    let home = with_model(&model, "max_tool_calls = 1\nmax_tokens = 1000\n");
    let server = home.start();
    let session = create_session(&server).await;
    server.send(&session, "make it").await;
    model.asked().await.call("shell", &json!({ "command": "touch one" })).await;
    let path = asked(&server, &session).await;
    server.kill();
    let server = home.start();
    decide(&server, &path, json!({ "decision": "accepted" })).await;
    model.asked().await.call("shell", &json!({ "command": "touch two" })).await;
    let answer = last_answer(&server, &session).await;
    let calls: Vec<&Call> = answer.calls().collect();
    assert_eq!(calls[0].state, CallState::Succeeded);
    assert_eq!(error_code(calls[1]), &ErrorCode::ToolIterationLimit);
    let continuation = answer.continuation().unwrap();
    assert_eq!(
        (continuation.should_continue, continuation.stop_reason.as_str()),
        (false, "tool_limit")
    );
    let reasons: Vec<&str> = continuation.evaluations.iter().map(|it| it.reason.as_str()).collect();
    assert!(
        reasons.contains(&"20 of 1000 tokens") && reasons.contains(&"1 of 1 tool calls"),
        "{reasons:?}"
    );
    assert!(has_file(&home, "one") && !has_file(&home, "two"));
    assert!(model.took_no_request());
}

#[tokio::test]
async fn an_always_grant_covers_the_files_of_one_folder() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "write one to notes/a.md").await;
    let path = asked(&server, &session).await;
    decide(&server, &path, json!({ "decision": "accepted", "scope": "always" })).await;
    last_answer(&server, &session).await;
    let grants = server.get("/api/grants").await;
    let covers = grants["grants"][0]["covers"].as_str().map(str::to_owned);
    assert_eq!(covered(&home, covers), json!({ "folder": "notes" }));

    server.send(&session, "write two to notes/b.md").await;
    let answer = last_answer(&server, &session).await;
    assert!(only_call(&answer).approval.is_none() && has_file(&home, "notes/b.md"));
    for elsewhere in ["c.md", "notes/deep/c.md", "notes/../c.md"] {
        server.send(&session, &format!("write three to {elsewhere}")).await;
        let path = asked(&server, &session).await;
        decide(&server, &path, json!({ "decision": "rejected" })).await;
        last_answer(&server, &session).await;
        assert!(!has_file(&home, elsewhere), "{elsewhere}");
    }
}

#[tokio::test]
async fn a_grant_also_answers_open_approvals_that_it_covers() {
    for scope in ["session", "always"] {
        let mut model = Model::start().await;
        let home = with_model(&model, "");
        let server = home.start();
        let session = create_session(&server).await;
        server.send(&session, "write them").await;
        let mut request = model.asked().await;
        request.begin().await;
        for (index, path) in ["a.md", "b.md", "deep/c.md"].into_iter().enumerate() {
            let arguments = json!({ "path": path, "text": "new" }).to_string();
            let function = json!({ "name": "write_file", "arguments": arguments });
            let call = json!({ "index": index, "id": format!("c{index}"), "function": function });
            request.send_delta(json!({ "tool_calls": [call] })).await;
        }
        request.finish("tool_calls").await;
        let all_asked = |it: &Transcript| it.summary.open_approvals.len() == 3;
        let waiting = watch_until(&server, &session, all_asked).await.summary.open_approvals;
        let path = |call: &CallId| format!("/api/sessions/{session}/calls/{call}/approval");
        let calls: Vec<&CallId> = waiting.iter().collect();
        decide(&server, &path(calls[0]), json!({ "decision": "accepted", "scope": scope })).await;
        let one_left = |it: &Transcript| it.summary.open_approvals.len() == 1;
        let left = watch_until(&server, &session, one_left).await.summary.open_approvals;
        assert!(left.contains(calls[2]), "the other folder is another question");
        decide(&server, &path(calls[2]), json!({ "decision": "rejected" })).await;
        model.asked().await.answer("Done.").await;
        let answer = last_answer(&server, &session).await;
        let rules: Vec<bool> = answer.calls().map(|it| it.granted.is_some()).collect();
        assert_eq!(rules, [false, true, false], "the second was answered by the rule");
        let page = server.get_bytes(&format!("/s/{session}")).await.1;
        let page = String::from_utf8(page).unwrap();
        assert_eq!(page.matches("You allowed this").count(), 1);
        assert_eq!(page.matches("Allowed by your rule: ").count(), 1);
        assert!(
            has_file(&home, "a.md") && has_file(&home, "b.md") && !has_file(&home, "deep/c.md")
        );
    }
}

#[tokio::test]
async fn the_rate_limit_of_tool_calls_is_reported() {
    let home = Home::new("[demo]\npace = \"instant\"\n[tools]\nper_minute = 2\n");
    let server = home.start();
    let session = server.create_session().await;
    for n in 0..3 {
        server.send(&session, "list the files").await;
        let answer = last_answer(&server, &session).await;
        let call = only_call(&answer);
        match n {
            2 => assert_eq!(error_code(call), &ErrorCode::RateLimitTools),
            _ => assert_eq!(call.state, CallState::Succeeded),
        }
    }
}
