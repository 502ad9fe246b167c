//! Grants: what they cover, where they are shown, and how they are revoked.

use std::os::unix::fs::PermissionsExt;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use store::{Grant, Store};
use transcript::{
    AppliedGrant, CallState, Event, Message, Millis, Record, RunMessage, Scope, Seq, Transcript,
};

use crate::support::log::check_log;
use crate::support::program::{Home, Server};
use crate::support::stand_in::{left, playing};
use crate::support::watcher::{Watcher, is_quiet, watch_until};

/// Waits until an approval is requested and returns the call.
async fn asked(server: &Server, session: &str) -> String {
    let is_asked = |it: &Transcript| !it.summary.open_approvals.is_empty();
    let transcript = watch_until(server, session, is_asked).await;
    transcript.summary.open_approvals.last().unwrap().to_string()
}

async fn decide(server: &Server, session: &str, decision: Value) -> String {
    let call = asked(server, session).await;
    let path = format!("/api/sessions/{session}/calls/{call}/approval");
    let (status, body) = server.post(&path, decision).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{body}");
    call
}

fn accepted(scope: &str) -> Value {
    json!({ "decision": "accepted", "scope": scope })
}

async fn last_answer(server: &Server, session: &str) -> RunMessage {
    let transcript = watch_until(server, session, is_quiet).await;
    check_log(&server.log(session).await, |_| false);
    transcript.messages.last().and_then(Message::run).unwrap().clone()
}

async fn session_in(server: &Server, agent: &str, workspace: &std::path::Path) -> String {
    let body = json!({ "agent": agent, "workspace": workspace });
    let (status, session) = server.post("/api/sessions", body).await;
    assert_eq!(status, StatusCode::CREATED, "{session}");
    session["id"].as_str().unwrap().to_owned()
}

/// The shell runs the file `cat<blank>x/evil`, which is not `cat`.
#[tokio::test]
async fn other_blanks_do_not_make_a_command_read_only() {
    let home = Home::instant();
    let server = home.start();
    for blank in ["\u{a0}", "\u{c}", "\u{b}", "\u{2003}", "\u{3000}"] {
        let folder = home.workspace().join(format!("cat{blank}x"));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("evil");
        std::fs::write(&file, "#!/bin/sh\ntouch proof\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let session = server.create_session().await;
        server.send(&session, &format!("run cat{blank}x/evil")).await;
        decide(&server, &session, json!({ "decision": "rejected" })).await;
        last_answer(&server, &session).await;
        assert!(!home.workspace().join("proof").exists(), "{blank:?}");
    }
}

#[tokio::test]
async fn always_is_bound_to_agent_and_workspace() {
    let home = Home::new(
        "[demo]\npace = \"instant\"\n[[agents]]\nid = \"demo\"\nkind = \"demo\"\n\
         [[agents]]\nid = \"other\"\nkind = \"demo\"\n",
    );
    let server = home.start();
    let (elsewhere, link) = (home.workspace().join("sub"), home.workspace().join("link"));
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(home.workspace(), &link).unwrap();
    let first = session_in(&server, "demo", &home.workspace()).await;
    server.send(&first, "run touch made").await;
    let call = decide(&server, &first, accepted("always")).await;
    let grants = server.get("/api/grants").await;
    let real = home.workspace().canonicalize().unwrap();
    assert_eq!(grants["grants"][0]["workspace"], json!(real));
    last_answer(&server, &first).await;

    let same = session_in(&server, "demo", &link).await;
    server.send(&same, "run touch made").await;
    let answer = last_answer(&server, &same).await;
    let granted = answer.calls().next().unwrap().granted.clone().unwrap();
    assert_eq!(granted.scope, Scope::Always);
    assert_eq!(json!(granted.covers), grants["grants"][0]["covers"]);
    let page = String::from_utf8(server.get_bytes(&format!("/s/{same}")).await.1).unwrap();
    assert!(page.contains("Allowed by your rule: always, exactly this command"));

    for (agent, workspace) in [("other", &home.workspace()), ("demo", &elsewhere)] {
        let session = session_in(&server, agent, workspace).await;
        server.send(&session, "run touch made").await;
        decide(&server, &session, json!({ "decision": "rejected" })).await;
    }

    let undo = format!("/api/sessions/{first}/calls/{call}/approval/undo");
    let (status, body) = server.request(Method::POST, &undo, None).await;
    assert_eq!((status, body), (StatusCode::OK, json!({ "stopped": false })));
    assert_eq!(server.get("/api/grants").await["grants"], json!([]));
    let (status, body) = server.request(Method::POST, &undo, None).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::CONFLICT, &json!("nothing_to_undo")));
    server.send(&same, "run touch made").await;
    asked(&server, &same).await;
}

#[tokio::test]
async fn undo_fails_if_the_grant_cannot_be_removed() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "run touch a").await;
    let call = decide(&server, &session, accepted("always")).await;
    last_answer(&server, &session).await;
    let db = rusqlite::Connection::open(home.data().join("callboard.db")).unwrap();
    db.execute_batch(
        "CREATE TRIGGER kept BEFORE DELETE ON grants BEGIN SELECT RAISE(ABORT, 'kept'); END",
    )
    .unwrap();
    let undo = format!("/api/sessions/{session}/calls/{call}/approval/undo");
    let (status, body) = server.request(Method::POST, &undo, None).await;
    assert_eq!((status.as_u16(), &body["error"]["code"]), (507, &json!("storage")), "{body}");
    assert_eq!(server.get("/api/grants").await["grants"].as_array().unwrap().len(), 1);
    db.execute_batch("DROP TRIGGER kept").unwrap();
    assert_eq!(server.request(Method::POST, &undo, None).await.0, StatusCode::OK);
    assert_eq!(server.get("/api/grants").await["grants"], json!([]));
}

#[tokio::test]
async fn session_grants_are_listed_and_revoked() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let path = format!("/api/sessions/{session}/grants");
    for command in ["touch a", "touch b"] {
        server.send(&session, &format!("run {command}")).await;
        decide(&server, &session, accepted("session")).await;
        last_answer(&server, &session).await;
    }
    server.send(&session, "run touch a").await;
    let answer = last_answer(&server, &session).await;
    let granted = answer.calls().next().unwrap().granted.clone();
    assert!(matches!(granted, Some(AppliedGrant { scope: Scope::Session, .. })), "{granted:?}");
    let grants = server.get(&path).await;
    let list = grants["grants"].as_array().unwrap();
    assert_eq!(list.len(), 2);
    assert!(list[0]["covers"].as_str().unwrap().contains("touch a"), "{grants}");
    let fragment = server.get_bytes(&format!("/?part=grants&session={session}")).await.1;
    let fragment = String::from_utf8(fragment).unwrap();
    assert!(fragment.contains("Allowed in this session") && fragment.contains("touch b"));

    let one = format!("{path}/{}", list[0]["id"].as_str().unwrap());
    assert_eq!(server.request(Method::DELETE, &one, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(server.request(Method::DELETE, &one, None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(server.get(&path).await["grants"], json!([list[1]]));
    let log = server.log(&session).await;
    let is_revoked = |it: &Record| matches!(&it.event, Event::GrantRevoked { covers, .. } if covers.contains("touch a"));
    assert!(log.iter().any(is_revoked));
    let server = {
        server.stop();
        home.start()
    };
    server.send(&session, "run touch b").await;
    assert_eq!(
        last_answer(&server, &session).await.calls().next().unwrap().state,
        CallState::Succeeded
    );
    server.send(&session, "run touch a").await;
    asked(&server, &session).await;
}

#[tokio::test]
async fn grants_can_be_revoked_over_the_websocket() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let mut watcher = Watcher::connect(&server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    server.send(&session, "run touch a").await;
    let call = decide(&server, &session, accepted("session")).await;
    last_answer(&server, &session).await;
    watcher.send(json!({ "type": "undo_approval", "sessionId": session, "callId": call })).await;
    let revoked = watcher.until("grant_revoked").await;
    assert_eq!((&revoked["scope"], &revoked["by"]), (&json!("session"), &json!("user")));
    assert_eq!(server.get(&format!("/api/sessions/{session}/grants")).await["grants"], json!([]));
}

/// Grants of earlier versions have neither agent nor workspace.
#[tokio::test]
async fn grants_of_earlier_versions_are_inactive() {
    let home = Home::instant();
    {
        let store = Store::open(&home.data(), store::Options::default()).unwrap();
        let grant =
            |id: &str, covers: &str| Grant { id: id.into(), covers: covers.into(), at: Millis(1) };
        store.add_grant(grant("old", "shell: touch a")).await.unwrap();
        store.add_grant(grant("tool", "shell")).await.unwrap();
        store.close().await;
    }
    let server = home.start();
    let grants = server.get("/api/grants").await;
    for grant in grants["grants"].as_array().unwrap() {
        assert_eq!(
            (&grant["inactive"], &grant["tool"]),
            (&json!(true), &json!("shell")),
            "{grant}"
        );
        assert!(grant.get("agent").is_none() && grant.get("workspace").is_none());
    }
    let session = server.create_session().await;
    server.send(&session, "run touch a").await;
    asked(&server, &session).await;
}

/// A page contains no grants; the fetched list has the latest, and the number of all others.
#[tokio::test]
async fn grants_in_the_page_are_bounded() {
    let home = Home::instant();
    {
        let store = Store::open(&home.data(), store::Options::default()).unwrap();
        for n in 0..1000 {
            let covers = format!("shell: touch {n:04}");
            store.add_grant(Grant { id: format!("g{n}"), covers, at: Millis(n) }).await.unwrap();
        }
        store.close().await;
    }
    let server = home.start();
    let text = async |path: &str| String::from_utf8(server.get_bytes(path).await.1).unwrap();
    assert!(!text("/").await.contains("touch 0"));
    let list = text("/?part=grants").await;
    assert_eq!(list.matches("data-grant").count(), 200);
    assert!(list.contains("touch 0999") && list.contains("800 older ones not shown"));
}

/// A scene in which Claude Code calls `Bash` twice in one session, with these inputs.
fn twice(first: &str, second: &str) -> String {
    let ask = |id: &str, input: &str| {
        format!(
            r#"use {id} Bash '{input}'; ask {id} Bash '{input}'; hear control_response
            case "$line" in *'"behavior":"allow"'*) used {id} done false ;; *) used {id} refused true ;; esac"#
        )
    };
    format!("hear_user; {}; {}; text Seen; result; hear_user", ask("t1", first), ask("t2", second))
}

#[tokio::test]
async fn grant_does_not_cover_other_arguments_of_a_program() {
    let make = r#"{"command":"npm test"}"#;
    for (second, is_asked) in [
        (r#"{"command":"npm test","description":"Again","timeout":9}"#, false),
        (r#"{"command":"npm test","dangerouslyDisableSandbox":true}"#, true),
        (r#"{"command":"npm test","run_in_background":true}"#, true),
        ("{\"command\":\"npm test\u{a0}\"}", true),
    ] {
        let home = playing(&twice(make, second), "");
        let server = home.start();
        let session = crate::support::stand_in::session(&server).await;
        server.send(&session, "do it").await;
        let first = decide(&server, &session, accepted("session")).await;
        if is_asked {
            let is_second =
                |it: &Transcript| it.summary.open_approvals.iter().any(|it| it.as_str() != first);
            watch_until(&server, &session, is_second).await;
            decide(&server, &session, json!({ "decision": "rejected" })).await;
        }
        let answer = last_answer(&server, &session).await;
        let calls: Vec<_> = answer.calls().collect();
        let state = if is_asked { CallState::Denied } else { CallState::Succeeded };
        assert_eq!((calls[1].state, calls[1].granted.is_some()), (state, !is_asked), "{second}");
        assert!(left(&home, "heard").contains(r#""behavior":"allow""#));
    }
}
