//! Stopping program agents: once the stop is reported, no process is left.

use reqwest::Method;
use serde_json::json;
use transcript::{CallState, CancelReason, Event, RunStatus, Seq};

use crate::support::stand_in::{
    CONVERSATION, alive, cancel, error, last_answer, left, open_gate, playing, session, status,
    wait_until_reached,
};
use crate::support::watcher::Watcher;

#[tokio::test]
async fn a_program_that_obeys_an_interrupt_is_kept() {
    let scene = "hear_user; text Half; reached middle; hear interrupt
        result true aborted_streaming; hear_user; text Whole; result; hear_user";
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    wait_until_reached(&home, "middle").await;
    assert_eq!(cancel(&server, &session).await["cancelled"], true);
    let answer = last_answer(&server, &session).await;
    assert_eq!(answer.cancelled, Some(CancelReason::UserCancel));
    server.send(&session, "go on").await;
    assert_eq!(last_answer(&server, &session).await.content(), "Whole");
    assert_eq!(left(&home, "args").lines().count(), 1, "the same process");
}

/// Codex ends its turn, but its commands continue.
#[tokio::test]
async fn a_command_that_survives_the_interrupt_is_ended() {
    let scene = r#"hear_user; use t1 Bash '{"command":"sleep 600"}'; setsid sleep 600 & reached middle
        hear interrupt; result true aborted_tools; hear_user"#;
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    wait_until_reached(&home, "middle").await;
    cancel(&server, &session).await;
    assert_eq!(alive(&home), Vec::<String>::new());
    let answer = last_answer(&server, &session).await;
    assert_eq!(answer.calls().next().unwrap().state, CallState::Interrupted);
}

/// The program reports that the call has ended, but its command is still running. Earlier commands
/// and the program's own helpers continue.
#[tokio::test]
async fn a_command_that_outlives_its_call_is_ended_before_the_reply() {
    let scene = r#"keep() { echo $! > $1; }
        hear_user; sleep 600 & keep helper; setsid sleep 600 & keep earlier; text Done; result
        hear_user; sleep 600 & keep late_helper; use t1 Bash '{"command":"sleep 600"}'
        setsid sleep 600 & keep plain
        setsid sh -c 'trap "" TERM; while :; do sleep 1; done' & keep stubborn
        reached middle; hear interrupt; used t1 Interrupted true; result true aborted_tools
        hear_user; text Whole; result; hear_user"#;
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    last_answer(&server, &session).await;
    server.send(&session, "more").await;
    wait_until_reached(&home, "middle").await;
    cancel(&server, &session).await;
    let alive = alive(&home);
    let names = ["helper", "earlier", "late_helper", "plain", "stubborn"];
    let is_alive = names.map(|it| alive.contains(&left(&home, it).trim().to_owned()));
    assert_eq!(is_alive, [true, true, true, false, false]);
    server.send(&session, "go on").await;
    assert_eq!(last_answer(&server, &session).await.content(), "Whole");
    assert_eq!(left(&home, "args").lines().count(), 1, "the same process");
}

/// Neither the process group nor the environment identifies a daemon.
#[tokio::test]
async fn daemons_are_ended_however_their_program_ends() {
    let hides =
        "hear_user; (setsid env -i /bin/sleep 600 >/dev/null 2>&1 </dev/null & echo $! > hidden)
        reached middle";
    let endings =
        [("sleep 600", "cancel"), ("wait_for go; exit 3", "exit"), ("sleep 600", "restart")];
    let endings = endings.map(|(then, how)| async move {
        let home = playing(&format!("{hides}; {then}"), "");
        let server = home.start();
        let session = session(&server).await;
        server.send(&session, "hello").await;
        wait_until_reached(&home, "middle").await;
        let hidden = format!("/proc/{}/stat", left(&home, "hidden").trim());
        let is_alive = || std::fs::read_to_string(&hidden).is_ok_and(|it| !it.contains(") Z "));
        assert!(is_alive(), "{how}");
        let server = match how {
            "cancel" => {
                cancel(&server, &session).await;
                server
            }
            "exit" => {
                open_gate(&home, "go").await;
                server
            }
            _ => {
                server.kill();
                home.start()
            }
        };
        let answer = last_answer(&server, &session).await;
        assert!(!is_alive(), "{how}");
        if how == "exit" {
            assert!(error(&answer).1.contains("code 3"), "{:?}", error(&answer));
        }
    });
    futures_util::future::join_all(endings).await;
}

/// A program that outlives its command would take the command's end for a result and answer it.
#[tokio::test]
async fn processes_of_a_killed_keeper_are_ended_oldest_first() {
    // Each process starts the next, and writes its number if the next ends before itself.
    let scene = r#"cat > nest <<'END'
if [ $1 -gt 0 ]; then sh nest $(($1 - 1)); else echo > deepest; sleep 600; fi
echo $1 >> outlived
END
        hear_user; echo $PPID > keeper; sh nest 12 & while [ ! -e deepest ]; do sleep 0.1; done
        reached middle; wait; echo program >> outlived; sleep 600"#;
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    wait_until_reached(&home, "middle").await;
    let keeper = left(&home, "keeper");
    assert!(
        std::process::Command::new("kill").args(["-9", keeper.trim()]).status().unwrap().success()
    );
    last_answer(&server, &session).await;
    assert_eq!(alive(&home), Vec::<String>::new());
    assert_eq!(left(&home, "outlived"), "");
}

/// Covers programs and child processes that ignore signals.
#[tokio::test]
async fn a_program_that_does_not_stop_is_ended_with_all_its_processes() {
    let scenes = [
        "trap '' TERM; hear_user; reached middle; while :; do sleep 1; done",
        "hear_user; setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' & reached middle
         sleep 600",
    ];
    let stops = scenes.map(|scene| async move {
        let home = playing(scene, "");
        let server = home.start();
        let session = session(&server).await;
        server.send(&session, "hello").await;
        wait_until_reached(&home, "middle").await;
        // Both requests return after the process has ended.
        let (first, second) = tokio::join!(cancel(&server, &session), cancel(&server, &session));
        assert_eq!(alive(&home), Vec::<String>::new(), "{scene}");
        assert_eq!((&first["cancelled"], &second["cancelled"]), (&json!(true), &json!(true)));
        let answer = last_answer(&server, &session).await;
        assert_eq!(status(&answer), RunStatus::Cancelled);
        let log = server.log(&session).await;
        let asked = log.iter().filter(|it| matches!(it.event, Event::CancelRequested { .. }));
        assert_eq!(asked.count(), 1);
    });
    futures_util::future::join_all(stops).await;
}

#[tokio::test]
async fn a_restart_ends_leftover_processes_and_closes_the_run() {
    let scene = "trap '' TERM; hear_user; setsid sleep 600 & text Half; reached middle
        while :; do sleep 1; done";
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    let mut watcher = Watcher::connect(&server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    server.send(&session, "hello").await;
    // The text must be stored before the server is killed.
    watcher.until("text_done").await;
    wait_until_reached(&home, "middle").await;
    server.kill();
    assert!(!alive(&home).is_empty(), "it has survived its server");
    let server = home.start();
    assert_eq!(alive(&home), Vec::<String>::new(), "gone before the server is ready");
    let answer = last_answer(&server, &session).await;
    assert_eq!(answer.cancelled, Some(CancelReason::Restart));
    std::fs::write(
        home.workspace().join("play"),
        left(&home, "play").replace("text Half; reached middle", "text Whole; result"),
    )
    .unwrap();
    server.send(&session, "go on").await;
    assert_eq!(last_answer(&server, &session).await.content(), "Whole");
    assert!(left(&home, "args").lines().nth(1).unwrap().contains(CONVERSATION), "resumed");
    server.request(Method::DELETE, &format!("/api/sessions/{session}"), None).await;
    assert_eq!(alive(&home), Vec::<String>::new(), "gone with its session");
}

#[tokio::test]
async fn a_server_ends_its_programs_before_it_exits() {
    let scene = "trap '' TERM; hear_user; text Half; while :; do sleep 1; done";
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    let mut watcher = Watcher::connect(&server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    server.send(&session, "hello").await;
    watcher.until("text_done").await;
    server.stop();
    assert_eq!(alive(&home), Vec::<String>::new());
    let server = home.start();
    let answer = last_answer(&server, &session).await;
    assert_eq!((answer.content(), answer.cancelled), ("Half".into(), Some(CancelReason::Restart)));
}

#[tokio::test]
async fn a_slow_stop_does_not_block_the_connection() {
    let scene = "trap '' TERM; hear_user; text Half; while :; do sleep 1; done";
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    let mut watcher = Watcher::connect(&server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    server.send(&session, "hello").await;
    watcher.until("text_done").await;
    watcher.send(json!({ "type": "cancel_output", "sessionId": session })).await;
    watcher.send(json!({ "type": "ping" })).await;
    watcher.until("pong").await;
    let state = server.get(&format!("/api/sessions/{session}")).await["state"].take();
    assert_eq!(state, "running", "it is not gone yet");
    last_answer(&server, &session).await;
}

/// The lines are no part of the conversation, but can be read as raw lines.
#[tokio::test]
async fn output_after_the_end_request_is_kept_as_raw_lines() {
    let farewell = "farewell() { trap '' TERM; say '{\"type\":\"farewell\"}'; exit 0; }
        trap farewell TERM; hear_user";
    let idle = "result; while read -r line; do :; done; farewell";
    let stopped = "use t1 Bash '{\"command\":\"sleep\"}'; reached middle; hear interrupt
        result true aborted_tools; while read -r line; do :; done; farewell";
    for (scene, settings) in [(idle, "idle_minutes = 0\n"), (stopped, ""), (idle, "")] {
        let home = playing(&format!("{farewell}; {scene}"), settings);
        let mut server = home.start();
        let session = session(&server).await;
        server.send(&session, "hello").await;
        if scene == stopped {
            wait_until_reached(&home, "middle").await;
        } else {
            last_answer(&server, &session).await;
        }
        if settings.is_empty() && scene == idle {
            server.stop();
            server = home.start();
        } else if scene == idle {
            server.wait_for_log("an idle program is ended");
        }
        // The session handles this request after it has stored all earlier output.
        cancel(&server, &session).await;
        let raw = server.get(&format!("/api/sessions/{session}/raw")).await;
        let last = raw["lines"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["text"], "{\"type\":\"farewell\"}", "{scene} {settings}: {raw}");
        let unknown = server.log(&session).await.into_iter().map(|it| it.event);
        let unknown = unknown.filter(|it| matches!(it, Event::Unrecognized { .. }));
        assert_eq!(unknown.count(), 0, "it is no part of the conversation");
    }
}

/// Covers signals that the runtime of the keeper handles itself.
#[tokio::test]
async fn an_end_by_a_signal_is_reported() {
    for signal in ["SEGV", "BUS", "ABRT", "KILL"] {
        let home = playing(&format!("kill -{signal} $$"), "");
        let server = home.start();
        let session = session(&server).await;
        server.send(&session, "hello").await;
        let (_, message) = error(&last_answer(&server, &session).await);
        assert!(message.contains("signal"), "{signal}: {message}");
    }
}
