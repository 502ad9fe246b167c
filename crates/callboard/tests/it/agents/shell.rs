//! Shell commands of agents, observed from outside: they end with their run.

use std::path::Path;

use serde_json::json;
use transcript::{CallState, Message, Seq};

use crate::support::program::{Home, Server};
use crate::support::watcher::{Watcher, is_quiet, watch_until};

/// Returns the processes whose working folder is this workspace, except the server itself.
fn alive_in(home: &Home, server: &Server) -> Vec<String> {
    let workspace = home.workspace().canonicalize().unwrap();
    let ours = |pid: &str| {
        let folder = Path::new("/proc").join(pid);
        std::fs::read_link(folder.join("cwd")).is_ok_and(|it| it == workspace)
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|it| it.file_name().into_string().ok());
    pids.filter(|it| *it != server.pid().to_string() && ours(it)).collect()
}

/// Starts a command that prints and then runs forever.
async fn start(server: &Server, command: &str) -> String {
    let session = server.create_session().await;
    let mut watcher = Watcher::connect(server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    server.send(&session, &format!("run {command}")).await;
    watcher.until("tool_output_delta").await;
    session
}

const STUBBORN: [&str; 3] = [
    "trap '' TERM; echo ready; while :; do sleep 1; done",
    "setsid sh -c 'echo ready; sleep 600'",
    "setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1; done' & wait",
];

fn home() -> Home {
    Home::new("[demo]\npace = \"instant\"\n[approvals]\nshell = \"allow\"\n")
}

#[tokio::test]
async fn a_cancelled_command_leaves_no_process_alive() {
    let home = home();
    let server = home.start();
    for command in STUBBORN {
        let session = start(&server, command).await;
        assert!(!alive_in(&home, &server).is_empty());
        server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await;
        assert_eq!(alive_in(&home, &server), Vec::<String>::new(), "when the cancel is answered");
        let transcript = watch_until(&server, &session, is_quiet).await;
        let answer = transcript.messages.last().and_then(Message::run).unwrap();
        assert_eq!(answer.calls().next().unwrap().state, CallState::Interrupted);
    }
}

#[tokio::test]
async fn processes_of_a_killed_server_are_ended_at_restart() {
    let home = home();
    let server = home.start();
    let mut sessions = Vec::new();
    for command in STUBBORN {
        sessions.push(start(&server, command).await);
    }
    server.kill();
    let server = home.start();
    for session in &sessions {
        // The request is answered after the session has been recovered.
        server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await;
    }
    assert_eq!(alive_in(&home, &server), Vec::<String>::new());
}
