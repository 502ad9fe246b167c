//! The private files of the server are out of reach of all agents, wherever the workspace is.

use serde_json::json;
use transcript::{CallState, Message, RunMessage, Transcript};

use crate::support::program::{Home, Server, TOKEN};
use crate::support::watcher::{is_quiet, watch_until};

/// Creates a session in the parent of the data folder, like a server that is started in `$HOME`.
async fn session(home: &Home, server: &Server) -> String {
    let workspace = home.data().parent().unwrap().to_owned();
    let body = json!({ "agent": "demo", "workspace": workspace });
    let (_, session) = server.post("/api/sessions", body).await;
    session["id"].as_str().unwrap().to_owned()
}

async fn last_answer(server: &Server, session: &str) -> RunMessage {
    let transcript = watch_until(server, session, is_quiet).await;
    transcript.messages.last().and_then(Message::run).unwrap().clone()
}

#[tokio::test]
async fn file_tools_refuse_the_data_folder() {
    let home = Home::instant();
    let server = home.start();
    let root = home.data().parent().unwrap().to_owned();
    std::os::unix::fs::symlink(home.data(), root.join("link")).unwrap();
    std::fs::hard_link(home.data().join("server.json"), root.join("hard.json")).unwrap();
    let session = session(&home, &server).await;
    for path in
        ["data/server.json", "link/server.json", "hard.json", "./workspace/../data/server.json"]
    {
        server.send(&session, &format!("read {path}")).await;
        let answer = last_answer(&server, &session).await;
        let call = answer.calls().next().unwrap_or_else(|| panic!("no call for {path}"));
        let error = call.outcome.as_ref().unwrap().error.as_ref().unwrap();
        assert_eq!(call.state, CallState::Failed, "{path}");
        assert!(error.message.contains("Callboard's own files"), "{path}: {}", error.message);
    }
    let log = serde_json::to_string(&server.log(&session).await).unwrap();
    assert!(!log.contains(TOKEN));
}

#[tokio::test]
async fn commands_near_the_data_folder_are_never_granted() {
    let home = Home::instant();
    let server = home.start();
    let session = session(&home, &server).await;
    for command in ["cat data/server.json", "touch made", "touch made"] {
        server.send(&session, &format!("run {command}")).await;
        let is_asked = |it: &Transcript| !it.summary.open_approvals.is_empty();
        let transcript = watch_until(&server, &session, is_asked).await;
        let call = transcript.summary.open_approvals.last().unwrap();
        let answer = transcript.messages.last().and_then(Message::run).unwrap();
        let options =
            answer.call(call).unwrap().approval.as_ref().unwrap().options.clone().unwrap();
        assert_eq!((options.scopes.len(), options.covers), (1, None), "{command}");
        let path = format!("/api/sessions/{session}/calls/{call}/approval");
        server.post(&path, json!({ "decision": "rejected" })).await;
        last_answer(&server, &session).await;
    }
    server.send(&session, "run cat workspace/a.txt").await;
    let answer = last_answer(&server, &session).await;
    assert_eq!(answer.calls().next().unwrap().state, CallState::Succeeded, "provably elsewhere");
}
