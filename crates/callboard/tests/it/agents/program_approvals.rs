//! Approvals that program agents request: decided once by the policy or a person, and reported to
//! the program.

use reqwest::StatusCode;
use serde_json::{Value, json};
use transcript::{Call, CallState, Decision, RunMessage, RunStatus, Transcript};

use crate::support::program::{Home, Server};
use crate::support::stand_in::{last_answer, left, playing, session};
use crate::support::watcher::watch_until;

/// A scene with one tool call that asks for approval and succeeds if it is allowed.
fn asking(tool: &str, input: &str) -> String {
    format!(
        r#"hear_user; use t1 {tool} '{input}'; ask t1 {tool} '{input}'; hear control_response
        case "$line" in *'"behavior":"allow"'*) used t1 done false ;; *) used t1 refused true ;; esac
        text Seen; result; hear_user"#
    )
}

async fn asked(server: &Server, session: &str) -> (String, Value) {
    let is_asked = |it: &Transcript| !it.summary.open_approvals.is_empty();
    let transcript = watch_until(server, session, is_asked).await;
    let call = transcript.summary.open_approvals.last().unwrap();
    let answer = crate::support::stand_in::answer_in(&transcript);
    let approval = answer.call(call).unwrap().approval.clone().unwrap();
    let path = format!("/api/sessions/{session}/calls/{call}/approval");
    (path, serde_json::to_value(approval.options.unwrap()).unwrap())
}

fn only_call(answer: &RunMessage) -> &Call {
    let calls: Vec<&Call> = answer.calls().collect();
    assert_eq!(calls.len(), 1);
    calls[0]
}

fn decision(answer: &RunMessage) -> Decision {
    only_call(answer).approval.as_ref().unwrap().resolved.as_ref().unwrap().decision
}

async fn start(home: &Home) -> (Server, String) {
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "do it").await;
    (server, session)
}

#[tokio::test]
async fn a_person_allows_denies_or_edits_a_call() {
    let answers = [
        (json!({ "decision": "accepted" }), CallState::Succeeded, r#""command":"make""#),
        (
            json!({ "decision": "accepted", "arguments": { "command": "make test" } }),
            CallState::Succeeded,
            r#""command":"make test""#,
        ),
        (json!({ "decision": "rejected", "feedback": "not now" }), CallState::Denied, "not now"),
    ];
    for (answer, state, reply) in answers {
        let home = playing(&asking("Bash", r#"{"command":"make"}"#), "");
        let (server, session) = start(&home).await;
        let (path, options) = asked(&server, &session).await;
        assert_eq!(options["canEdit"], true);
        assert_eq!(options["scopes"], json!(["once", "session", "always"]));
        let (status, body) = server.post(&path, answer).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{body}");
        let answer = last_answer(&server, &session).await;
        assert_eq!((only_call(&answer).state, answer.content()), (state, "Seen".into()));
        assert!(left(&home, "heard").contains(reply), "{}", left(&home, "heard"));
        let (status, _) = server.post(&path, json!({ "decision": "accepted" })).await;
        assert_eq!(status, StatusCode::CONFLICT, "decided once");
    }
}

#[tokio::test]
async fn an_invalid_decision_leaves_the_approval_open() {
    let home = playing(&asking("Write", r#"{"file_path":"a"}"#), "");
    let (server, session) = start(&home).await;
    let (path, _) = asked(&server, &session).await;
    let answer = json!({ "decision": "accepted", "arguments": "no object" });
    assert_eq!(server.post(&path, answer).await.0, StatusCode::BAD_REQUEST);
    let (_, options) = asked(&server, &session).await;
    assert_eq!(options["canEdit"], true);
}

/// Covers a rule for the program's own tool, the rule for `shell`, and the default.
#[tokio::test]
async fn the_policy_decides_first() {
    let make = r#"{"command":"make"}"#;
    let cases = [
        ("Bash", make, "[approvals.shell]\nallow = [\"make\"]\n", "allow"),
        ("Bash", make, "[approvals]\nshell = \"deny\"\n", "deny"),
        ("Bash", make, "[approvals]\nshell = \"deny\"\nBash = \"allow\"\n", "allow"),
        ("Bash", r#"{"command":"ls"}"#, "[approvals.shell]\nallow = [\"ls*\"]\n", "allow"),
        ("Write", r#"{"file_path":"a"}"#, "[approvals]\nWrite = \"deny\"\n", "deny"),
        ("Write", r#"{"file_path":"a"}"#, "[approvals]\n\"*\" = \"allow\"\n", "allow"),
    ];
    for (tool, input, policy, behavior) in cases {
        let home = playing(&asking(tool, input), policy);
        let (server, session) = start(&home).await;
        let answer = last_answer(&server, &session).await;
        assert!(only_call(&answer).approval.is_none(), "nobody was asked: {policy}");
        let received = left(&home, "heard");
        assert!(received.contains(&format!(r#""behavior":"{behavior}""#)), "{policy}: {received}");
    }
}

/// Claude Code allows read-only commands itself. If it asks, its shell may be in another folder.
#[tokio::test]
async fn a_read_only_command_needs_approval_if_a_program_asks() {
    let home = playing(&asking("Bash", r#"{"command":"cat secret.txt"}"#), "");
    let (server, session) = start(&home).await;
    let (path, options) = asked(&server, &session).await;
    let covers: Value = serde_json::from_str(options["covers"].as_str().unwrap()).unwrap();
    assert_eq!(covers["calls"], json!({ "command": { "text": "cat secret.txt" } }));
    server.post(&path, json!({ "decision": "rejected" })).await;
    assert_eq!(only_call(&last_answer(&server, &session).await).state, CallState::Denied);
}

#[tokio::test]
async fn a_session_grant_is_not_asked_again() {
    let scene = asking("Bash", r#"{"command":"make"}"#);
    let scene = format!("while :; do {}; done", scene.trim_end_matches("; hear_user"));
    let home = playing(&scene, "");
    let (server, session) = start(&home).await;
    let (path, _) = asked(&server, &session).await;
    server.post(&path, json!({ "decision": "accepted", "scope": "session" })).await;
    last_answer(&server, &session).await;
    server.send(&session, "again").await;
    let answer = last_answer(&server, &session).await;
    assert_eq!(only_call(&answer).state, CallState::Succeeded);
    assert!(only_call(&answer).approval.is_none());
}

#[tokio::test]
async fn a_form_always_goes_to_a_person() {
    let input = r#"{"questions":[{"question":"Which?","header":"H","options":[{"label":"One","description":"d"}],"multiSelect":false}]}"#;
    let home = playing(&asking("AskUserQuestion", input), "[approvals]\n\"*\" = \"allow\"\n");
    let (server, session) = start(&home).await;
    let (path, options) = asked(&server, &session).await;
    assert!(options["form"].is_object() || options["form"].is_array(), "{options}");
    assert_eq!(options["scopes"], json!(["once"]));
    let arguments = json!({ "answers": { "Which?": "One" } });
    let answer = json!({ "decision": "accepted", "arguments": arguments });
    assert_eq!(server.post(&path, answer).await.0, StatusCode::NO_CONTENT);
    last_answer(&server, &session).await;
    let received = left(&home, "heard");
    let input = input.strip_suffix('}').unwrap();
    let answered = format!(r#""updatedInput":{input},"answers":{{"Which?":"One"}}}}"#);
    assert!(received.contains(&answered), "{received}");
}

#[tokio::test]
async fn an_approval_of_a_program_times_out() {
    let home =
        playing(&asking("Bash", r#"{"command":"make"}"#), "[approvals]\ntimeout_seconds = 1\n");
    let (server, session) = start(&home).await;
    let answer = last_answer(&server, &session).await;
    assert_eq!(decision(&answer), Decision::TimedOut);
    assert_eq!((only_call(&answer).state, answer.content()), (CallState::Denied, "Seen".into()));
    assert!(left(&home, "heard").contains(r#""behavior":"deny""#));
}

/// The program withdraws its request, or exits before the decision.
#[tokio::test]
async fn an_approval_can_be_withdrawn() {
    let call = r#"hear_user; use t1 Bash '{"command":"make"}'; ask t1 Bash '{"command":"make"}'"#;
    let withdraw = r#"say '{"type":"control_cancel_request","request_id":"ask-t1"}'"#;
    let scenes = [
        (
            format!("{call}; wait_for go; {withdraw}; used t1 no true; result; hear_user"),
            RunStatus::Completed,
        ),
        (format!("{call}; wait_for go; exit 1"), RunStatus::Failed),
    ];
    for (scene, status) in scenes {
        let home = playing(&scene, "");
        let (server, session) = start(&home).await;
        let (path, _) = asked(&server, &session).await;
        crate::support::stand_in::open_gate(&home, "go").await;
        let answer = last_answer(&server, &session).await;
        assert_eq!(decision(&answer), Decision::Withdrawn);
        assert_eq!(only_call(&answer).state, CallState::Interrupted);
        assert_eq!(answer.finish.as_ref().unwrap().status, status);
        let (status, _) = server.post(&path, json!({ "decision": "accepted" })).await;
        assert_eq!(status, StatusCode::CONFLICT);
    }
}

/// The request ends with the program: its run is closed, not resumed.
#[tokio::test]
async fn an_approval_of_a_program_ends_with_the_server() {
    for kills in [false, true] {
        let home = playing(&asking("Bash", r#"{"command":"make"}"#), "");
        let (server, session) = start(&home).await;
        let (path, _) = asked(&server, &session).await;
        if kills {
            server.kill();
        } else {
            server.stop();
        }
        let server = home.start();
        let answer = last_answer(&server, &session).await;
        assert_eq!(decision(&answer), Decision::Withdrawn);
        assert_eq!(answer.cancelled, Some(transcript::CancelReason::Restart));
        let (status, _) = server.post(&path, json!({ "decision": "accepted" })).await;
        assert_eq!(status, StatusCode::CONFLICT);
    }
}
