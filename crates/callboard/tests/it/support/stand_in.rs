//! A stand-in for Claude Code: a shell script that plays a scene, and does only what the test tells
//! it to.
//!
//! It runs in the workspace, where it writes its input (`heard`), its arguments (`args`) and its
//! environment (`env`). It waits at gates (`wait_for NAME`) until the test opens them.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;

use reqwest::StatusCode;
use serde_json::{Value, json};
use transcript::{ErrorCode, Message, RunMessage, RunStatus, Transcript};

use crate::support::log::check_log;
use crate::support::program::{Home, Server};
use crate::support::watcher::{is_quiet, watch_until};

/// Id of the stand-in's conversation.
pub(crate) const CONVERSATION: &str = "0199e09f-0000-7000-8000-000000000001";

/// Shell functions that a scene may use.
const PRELUDE: &str = r#"
echo "$*" >> args
env > env
say() { printf '%s\n' "$1"; }
init() {
  say '{"type":"system","subtype":"init","session_id":"0199e09f-0000-7000-8000-000000000001","cwd":"'"$PWD"'","tools":[],"mcp_servers":[],"model":"m","permissionMode":"default","slash_commands":[],"claude_code_version":"9.9.9","uuid":"u0"}'
}
text() {
  n=$((n + 1))
  say '{"type":"assistant","message":{"id":"m'$n'","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"'"$1"'"}]},"parent_tool_use_id":null,"session_id":"0199e09f-0000-7000-8000-000000000001","uuid":"u'$n'"}'
}
# use ID NAME INPUT
use() {
  n=$((n + 1))
  say '{"type":"assistant","message":{"id":"m'$n'","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"'$1'","name":"'$2'","input":'"$3"'}]},"parent_tool_use_id":null,"session_id":"0199e09f-0000-7000-8000-000000000001","uuid":"u'$n'"}'
}
# ask ID NAME INPUT
ask() {
  say '{"type":"control_request","request_id":"ask-'$1'","request":{"subtype":"can_use_tool","tool_name":"'$2'","display_name":"'$2'","input":'"$3"',"tool_use_id":"'$1'","permission_suggestions":[]}}'
}
# used ID CONTENT IS_ERROR
used() {
  n=$((n + 1))
  say '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"'$1'","content":"'"$2"'","is_error":'$3'}]},"parent_tool_use_id":null,"session_id":"0199e09f-0000-7000-8000-000000000001","uuid":"u'$n'"}'
}
# result IS_ERROR REASON
result() {
  n=$((n + 1))
  say '{"type":"result","subtype":"success","is_error":'${1:-false}',"terminal_reason":"'${2:-completed}'","duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":"","stop_reason":"end_turn","session_id":"0199e09f-0000-7000-8000-000000000001","total_cost_usd":0,"usage":{"input_tokens":1,"output_tokens":1},"uuid":"u'$n'"}'
}
# Reads until a line holds this, and ends with its input.
hear() {
  while IFS= read -r line; do
    printf '%s\n' "$line" >> heard
    case "$line" in *"$1"*) return ;; esac
  done
  exit 0
}
hear_user() { hear '"type":"user"'; init; }
# Opened by the test; `reached NAME` tells it that we are there.
wait_for() { : < "gate-$1"; }
reached() { : > "gate-$1"; }
"#;

/// Creates a home whose only agent plays this scene.
pub(crate) fn playing(scene: &str, settings: &str) -> Home {
    let home = Home::new("");
    let script = home.workspace().join("play");
    std::fs::write(&script, format!("#!/bin/sh\n{PRELUDE}\n{scene}\n")).unwrap();
    make_executable(&script);
    let words = scene.split(|it: char| !it.is_alphanumeric() && it != '_');
    for pair in words.filter(|it| !it.is_empty()).collect::<Vec<_>>().windows(2) {
        if let ["wait_for" | "reached", name] = pair {
            make_gate(&home, name);
        }
    }
    let config = format!(
        "demo = false\n[[agents]]\nid = \"claude\"\nkind = \"claude\"\ncommand = [\"./play\"]\n{settings}"
    );
    std::fs::write(home.workspace().join("callboard.toml"), config).unwrap();
    home
}

pub(crate) fn make_executable(script: &Path) {
    assert!(Command::new("chmod").arg("755").arg(script).status().unwrap().success());
}

pub(crate) fn make_gate(home: &Home, name: &str) {
    let gate = home.workspace().join(format!("gate-{name}"));
    if !gate.exists() {
        assert!(Command::new("mkfifo").arg(gate).status().unwrap().success());
    }
}

/// Opens a gate that the scene waits at.
pub(crate) async fn open_gate(home: &Home, name: &str) {
    let gate = home.workspace().join(format!("gate-{name}"));
    // Blocks until the scene opens its end.
    tokio::task::spawn_blocking(move || OpenOptions::new().write(true).open(gate).unwrap())
        .await
        .unwrap();
}

/// Waits until the scene has reached this gate.
pub(crate) async fn wait_until_reached(home: &Home, name: &str) {
    let gate = home.workspace().join(format!("gate-{name}"));
    tokio::task::spawn_blocking(move || std::fs::read(gate).unwrap()).await.unwrap();
}

/// Returns a file that the scene has written, or an empty text.
pub(crate) fn left(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.workspace().join(name)).unwrap_or_default()
}

pub(crate) async fn session(server: &Server) -> String {
    let (status, session) = server.post("/api/sessions", json!({ "agent": "claude" })).await;
    assert_eq!(status, StatusCode::CREATED, "{session}");
    session["id"].as_str().unwrap().to_owned()
}

/// Waits until nothing runs and returns the last answer.
pub(crate) async fn last_answer(server: &Server, session: &str) -> RunMessage {
    let transcript = watch_until(server, session, is_quiet).await;
    check_log(&server.log(session).await, |_| false);
    answer_in(&transcript)
}

pub(crate) fn answer_in(transcript: &Transcript) -> RunMessage {
    transcript.messages.iter().rev().find_map(Message::run).unwrap().clone()
}

/// Returns the status of the answer's run.
pub(crate) fn status(answer: &RunMessage) -> RunStatus {
    answer.finish.as_ref().unwrap().status
}

/// Returns the error of the answer's run.
pub(crate) fn error(answer: &RunMessage) -> (ErrorCode, String) {
    let error = answer.finish.as_ref().unwrap().error.clone().unwrap();
    (error.code, error.message)
}

/// Returns the processes that carry Callboard's mark and work in this workspace.
pub(crate) fn alive(home: &Home) -> Vec<String> {
    let workspace = home.workspace().canonicalize().unwrap();
    let is_ours = |pid: &String| {
        let folder = Path::new("/proc").join(pid);
        let environ = std::fs::read(folder.join("environ")).unwrap_or_default();
        let is_marked = environ.split(|it| *it == 0).any(|it| it.starts_with(b"CALLBOARD_MARK="));
        is_marked && std::fs::read_link(folder.join("cwd")).is_ok_and(|it| it == workspace)
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|it| it.file_name().into_string().ok()).filter(is_ours).collect()
}

pub(crate) async fn cancel(server: &Server, session: &str) -> Value {
    server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await.1
}
