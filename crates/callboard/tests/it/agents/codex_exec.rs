//! A Codex without an app-server: `codex exec` is started once per run, and the page says so.

use serde_json::json;
use transcript::{CancelReason, ErrorCode, PartKind, RunMessage, RunStatus, Seq};

use crate::support::program::{Home, Server};
use crate::support::stand_in::{answer_in, left, make_executable, make_gate, wait_until_reached};
use crate::support::watcher::{Watcher, is_quiet, watch_until};

/// End of the arguments that resume the conversation.
const THREAD: &str = "-- 0199e09f-0000-7000-8000-000000000002 -";

/// Stand-in for an old Codex. It answers the probe for features as an old version does.
const PRELUDE: &str = r#"
say() { printf '%s\n' "$1"; }
case "$1" in
  app-server) echo "error: unrecognized subcommand 'app-server'" >&2; exit 2 ;;
esac
echo "$*" >> args
said=$(cat)
echo "$said" >> heard
thread() { say '{"type":"thread.started","thread_id":"0199e09f-0000-7000-8000-000000000002"}'; say '{"type":"turn.started"}'; }
reached() { : > gate-middle; }
text() { n=$((n + 1)); say '{"type":"item.completed","item":{"id":"text_'$n'","type":"agent_message","text":"'"$1"'"}}'; }
command() { say '{"type":"item.'$1'","item":{"id":"item_1","type":"command_execution","command":"/bin/bash -lc '"'echo one'"'","aggregated_output":"'$2'","exit_code":'$3',"status":"'$4'"}}'; }
done_with() { say '{"type":"turn.completed","usage":{"input_tokens":400,"cached_input_tokens":300,"output_tokens":24,"reasoning_output_tokens":0}}'; }
"#;

fn playing(scene: &str) -> Home {
    let home = Home::new("");
    let script = home.workspace().join("play");
    std::fs::write(&script, format!("#!/bin/sh\n{PRELUDE}\n{scene}\n")).unwrap();
    make_executable(&script);
    make_gate(&home, "middle");
    let config =
        "demo = false\n[[agents]]\nid = \"codex\"\nkind = \"codex\"\ncommand = [\"./play\"]\n";
    std::fs::write(home.workspace().join("callboard.toml"), config).unwrap();
    home
}

async fn session(server: &Server) -> String {
    let (_, made) = server.post("/api/sessions", json!({ "agent": "codex" })).await;
    made["id"].as_str().unwrap().to_owned()
}

async fn answer_to(server: &Server, session: &str, text: &str) -> RunMessage {
    server.send(session, text).await;
    answer_in(&watch_until(server, session, is_quiet).await)
}

#[tokio::test]
async fn each_message_starts_a_process_that_resumes() {
    let scene = "thread; text Looking.; command started '' null in_progress
        command completed 'one\\n' 0 completed; text Done.; done_with";
    let home = playing(scene);
    let server = home.start();
    let session = session(&server).await;
    for text in ["first words\nin two lines", "second words"] {
        let answer = answer_to(&server, &session, text).await;
        assert_eq!(answer.finish.as_ref().unwrap().status, RunStatus::Completed);
        assert_eq!(answer.content(), "Done.");
        let call = answer.calls().next().unwrap();
        assert_eq!((call.name.as_str(), call.stdout.head()), ("shell", "one\n"));
    }
    assert_eq!(left(&home, "heard"), "first words\nin two lines\nsecond words\n");
    let args = left(&home, "args");
    let resumed: Vec<bool> =
        args.lines().map(|it| it.contains(" resume ") && it.ends_with(THREAD)).collect();
    assert_eq!(resumed, [false, true], "{args}");
}

/// Covers a Codex whose help lists an app-server that lacks the needed methods. It is probed once.
#[tokio::test]
async fn an_incompatible_app_server_is_not_used() {
    let home = playing("thread; text Hello; done_with");
    let script = home.workspace().join("play");
    let play = std::fs::read_to_string(&script).unwrap();
    let app_server = r#"app-server)
        case "$2" in --help) echo 'codex app-server'; echo 'Commands:'; exit 0 ;; esac
        echo "$*" >> asked
        while read -r line; do
          say '{"id":1,"error":{"code":-32601,"message":"method not found"}}'
        done
        exit 0 ;;"#;
    let (head, rest) = play.split_once("app-server)").unwrap();
    let (_, rest) = rest.split_once(";;").unwrap();
    std::fs::write(&script, format!("{head}{app_server}{rest}")).unwrap();
    let server = home.start();
    let session = session(&server).await;
    for _ in 0..2 {
        let answer = answer_to(&server, &session, "hello").await;
        assert_eq!(answer.finish.as_ref().unwrap().status, RunStatus::Completed);
        assert_eq!(answer.content(), "Hello");
    }
    assert_eq!(left(&home, "asked").lines().count(), 1);
    let agents = server.get("/api/agents").await;
    assert!(agents["agents"][0]["limits"].is_string(), "{agents}");
}

#[tokio::test]
async fn its_limits_are_shown() {
    let home = playing("thread; text Hello; done_with");
    let server = home.start();
    let session = session(&server).await;
    let answer = answer_to(&server, &session, "hello").await;
    let is_told = |it: &PartKind| matches!(it, PartKind::Notice { text, .. } if text.contains("without asking"));
    assert!(answer.parts.iter().any(|it| is_told(&it.kind)), "in the log");
    let agents = server.get("/api/agents").await;
    let limits = agents["agents"][0]["limits"].as_str().unwrap_or_default().to_owned();
    assert!(limits.contains("no app-server"), "{agents}");
    let (_, page) = server.get_bytes(&format!("/s/{session}")).await;
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("class=\"remark\">This Codex has no app-server"), "{page}");
}

#[tokio::test]
async fn a_stopped_run_ends_its_process_and_can_be_resumed() {
    let home = playing(
        "thread; case \"$said\" in *wait*) reached; sleep 600 ;; esac
        text Hello; done_with",
    );
    let server = home.start();
    let session = session(&server).await;
    let mut watcher = Watcher::connect(&server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    server.send(&session, "wait").await;
    wait_until_reached(&home, "middle").await;
    // The link to the conversation must be stored before the run is stopped.
    watcher.until("agent_linked").await;
    server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await;
    let answer = answer_in(&watch_until(&server, &session, is_quiet).await);
    assert_eq!(answer.cancelled, Some(CancelReason::UserCancel));
    let answer = answer_to(&server, &session, "go on").await;
    assert_eq!(answer.content(), "Hello");
    assert!(left(&home, "args").lines().nth(1).unwrap().ends_with(THREAD));
}

#[tokio::test]
async fn failures_are_reported() {
    let home = playing(
        "case \"$said\" in
          *key*) thread; say '{\"type\":\"turn.failed\",\"error\":{\"message\":\"unexpected status 401 Unauthorized\"}}'; exit 1 ;;
          *) echo 'no luck today' >&2; exit 3 ;;
        esac",
    );
    let server = home.start();
    let session = session(&server).await;
    for (text, code, words) in [
        ("key", ErrorCode::UpstreamAuth, "codex login"),
        ("luck", ErrorCode::AgentExited, "no luck today"),
    ] {
        let answer = answer_to(&server, &session, text).await;
        let error = answer.finish.unwrap().error.unwrap();
        assert_eq!(error.code, code);
        assert!(error.message.contains(words), "{}", error.message);
    }
}
