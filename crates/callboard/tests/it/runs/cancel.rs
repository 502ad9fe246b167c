//! Cancelling a run: exactly once and in the documented order, at any moment.

use serde_json::json;
use transcript::{CallState, CancelReason, Message, Record, RunStatus, Seq, Transcript};

use crate::support::log::{check_log, kinds};
use crate::support::program::{Home, Server};
use crate::support::watcher::{Watcher, as_record, is_quiet, watch_until};

/// Sends a message and cancels its run after `n` of the run's records.
async fn stop_after(server: &Server, text: &str, n: usize) -> Vec<Record> {
    let session = server.create_session().await;
    let mut watcher = Watcher::connect(server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    watcher.until("caught_up").await;
    server.send(&session, text).await;
    let mut seen = 0;
    while seen < n {
        let frame = watcher.next().await.unwrap();
        seen += usize::from(as_record(&frame).is_some_and(|it| it.response_id.is_some()));
    }
    watcher.send(json!({ "type": "cancel_output", "sessionId": session })).await;
    // A second request finds nothing to stop, or the same cancellation.
    watcher.send(json!({ "type": "cancel_output", "sessionId": session })).await;
    watch_until(server, &session, is_quiet).await;
    server.log(&session).await
}

#[tokio::test]
async fn a_run_can_be_stopped_at_any_record() {
    let home = Home::natural();
    let server = home.start();
    let moments = (1..74).map(|n| check_stop_after(&server, n));
    futures_util::future::join_all(moments).await;
}

async fn check_stop_after(server: &Server, n: usize) {
    let text = "think about it, time in Paris and Tokyo, read a.txt";
    let log = stop_after(server, text, n).await;
    check_log(&log, |_| false);
    let transcript = Transcript::replay(&log);
    let answer = transcript.messages.last().and_then(Message::run).unwrap();
    assert_eq!(answer.finish.as_ref().unwrap().status, RunStatus::Cancelled, "stopped at {n}");
    assert_eq!(answer.cancelled, Some(CancelReason::UserCancel));

    let kinds = kinds(&log);
    let asked = kinds.iter().position(|kind| kind == "cancel_requested").unwrap();
    let order = |kind: &String| match kind.as_str() {
        "text_done" | "thinking_done" => 0,
        "tool_arguments_done" => 1,
        "tool_approval_resolved" => 2,
        "tool_result" => 3,
        "step_finish" => 4,
        "output_cancelled" => 5,
        "run_finish" => 6,
        other => panic!("{other} after the run was stopped at {n}"),
    };
    assert!(kinds[asked + 1..].is_sorted_by_key(order), "{:?}", &kinds[asked..]);
    let count = |wanted: &str| kinds.iter().filter(|kind| *kind == wanted).count();
    assert_eq!((count("cancel_requested"), count("output_cancelled")), (1, 1));
}

#[tokio::test]
async fn cancelling_keeps_texts_and_interrupts_calls() {
    let home = Home::natural();
    let server = home.start();
    let text = stop_after(&server, "tell me a story", 20).await;
    let transcript = Transcript::replay(&text);
    let answer = transcript.messages[1].run().unwrap();
    assert!(!answer.content().is_empty(), "the undecided text is the interrupted answer");

    let logs = (8..26).map(|n| stop_after(&server, "read a.txt", n));
    let mut interrupted = 0;
    for log in futures_util::future::join_all(logs).await {
        let transcript = Transcript::replay(&log);
        let open = kinds(&log).contains(&"tool_call_start".to_owned());
        let Some(call) = transcript.messages[1].run().unwrap().calls().next() else {
            assert!(!open);
            continue;
        };
        if call.state == CallState::Interrupted {
            let error = call.outcome.as_ref().unwrap().error.as_ref().unwrap();
            assert_eq!(error.code.as_str(), "tool_interrupted");
            interrupted += 1;
        }
    }
    assert!(interrupted > 0, "some of these moments are within the call");
}

#[tokio::test]
async fn an_idle_session_has_nothing_to_stop() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let (status, answer) = server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await;
    assert_eq!((status.as_u16(), &answer["cancelled"]), (200, &json!(false)));
    assert_eq!(server.log(&session).await.len(), 1, "nothing was written");
}
