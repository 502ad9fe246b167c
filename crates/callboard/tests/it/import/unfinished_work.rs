//! A session that is imported in the middle of its work does nothing on its own, before and after a
//! restart, and can be continued by hand.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::{Message, Record, Transcript};

use crate::agents::exchanges::{demos, session_of};
use crate::import::programs::post;
use crate::support::log::{check_log, kinds};
use crate::support::program::Server;
use crate::support::watcher::{is_quiet, watch_until};

/// Every kind of unfinished work: an open run, an unanswered message, a queue, steered messages,
/// synchronous and asynchronous exchanges with `OTHER`, and a requested approval.
const BUSY: &str = r#"
    - {"type":"session_created","agent":"a"}
    - {"type":"user_message","messageId":"m1","text":"time in Lima"}
    r1 {"type":"run_start","agent":"a","trigger":"user"}
    r1 {"type":"step_start","index":0}
    r1 {"type":"text_start","partId":"r1.0"}
    r1 {"type":"text_delta","partId":"r1.0","delta":"I ask"}
    - {"type":"message_queued","messageId":"m2","text":"time in Paris","mode":"steer"}
    r1 {"type":"message_steered","messageId":"m2","text":"time in Paris","state":"handed_over"}
    - {"type":"message_queued","messageId":"m3","text":"time in Tokyo","mode":"queue"}
    - {"type":"message_queued","messageId":"m4","text":"time in Cairo","mode":"steer"}
    r1 {"type":"tool_call_start","callId":"r1.1","toolName":"agents_message","executor":"server"}
    r1 {"type":"agent_message","exchangeId":"x1","callId":"r1.1","direction":"sent","agent":"b","peerSessionId":"OTHER","text":"now?","mode":"sync"}
    r1 {"type":"agent_message","exchangeId":"x2","direction":"sent","agent":"b","peerSessionId":"OTHER","text":"some day?","mode":"async"}
    r1 {"type":"tool_call_start","callId":"r1.2","toolName":"shell","executor":"server"}
    r1 {"type":"tool_arguments_done","callId":"r1.2","arguments":"{\"command\":\"touch made\"}","summary":"","validation":"pending"}
    r1 {"type":"tool_approval_requested","callId":"r1.2","options":{"scopes":["once"],"canEdit":false}}
    r1 {"type":"tool_approval_resolved","callId":"r1.2","decision":"accepted","scope":"session","covers":"shell","by":"user"}
    r1 {"type":"tool_running","callId":"r1.2"}
"#;

fn records(other: &str) -> Vec<Value> {
    let lines = BUSY.lines().map(str::trim).filter(|line| !line.is_empty());
    let record = |(seq, line): (u64, &str)| {
        let (run, body) = line.split_once(' ').unwrap();
        let mut record: Value = serde_json::from_str(&body.replace("OTHER", other)).unwrap();
        record["seq"] = json!(seq);
        record["at"] = json!(format!("2026-11-15T18:44:{seq:02}.000Z"));
        record["sessionId"] = json!("busy");
        if run != "-" {
            record["responseId"] = json!(run);
        }
        record
    };
    (1..).zip(lines).map(record).collect()
}

fn file(records: &[Value]) -> String {
    records.iter().map(|it| format!("{it}\n")).collect()
}

/// Returns the log after the session's task has handled another request.
async fn log_once_opened(server: &Server, session: &str) -> Vec<Record> {
    let path = format!("/api/sessions/{session}");
    let body = json!({ "archived": false });
    let (status, _) = server.request(Method::PATCH, &path, Some(body)).await;
    assert_eq!(status, StatusCode::OK);
    let mut log = server.log(session).await;
    assert_eq!(kinds(&log).last().unwrap(), "session_updated");
    log.pop();
    log
}

#[tokio::test]
async fn an_imported_session_starts_nothing_on_its_own() {
    let home = demos("instant", &["a", "b"], "");
    let server = home.start();
    let other = session_of(&server, "b").await;
    let busy = records(&other);
    let mut imported = Vec::new();
    for end in 1..=busy.len() {
        let id = format!("busy-{end}");
        let (status, answer) = post(&server, &format!("id={id}"), file(&busy[..end])).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        let log = server.log(&id).await;
        check_log(&log, |_| false);
        assert_eq!(log_once_opened(&server, &id).await, log, "{id}");
        imported.push((id, log));
    }
    server.stop();

    let server = home.start();
    for (id, log) in &imported {
        let mut after = log_once_opened(&server, id).await;
        assert_eq!(kinds(&after).pop().unwrap(), "session_updated", "of before the restart");
        after.pop();
        assert_eq!(after, *log, "{id}");
    }
    assert_eq!(kinds(&server.log(&other).await), ["session_created"]);
    assert!(!home.workspace().join("made").exists());
    let sessions = server.get("/api/sessions").await;
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), imported.len() + 1);
    server.stop();
}

#[tokio::test]
async fn an_imported_session_can_be_continued() {
    let home = demos("instant", &["a", "b"], "");
    let server = home.start();
    let other = session_of(&server, "b").await;
    let busy = records(&other);
    for end in 1..=busy.len() {
        let id = format!("busy-{end}");
        post(&server, &format!("id={id}"), file(&busy[..end])).await;
        let waiting = server.get(&format!("/api/sessions/{id}/queue")).await;
        let n_waiting = waiting["messages"].as_array().unwrap().len();
        server.send(&id, "time in Oslo").await;
        watch_until(&server, &id, |it| is_quiet_but_for_the_held(it) && n_answers(it) == 1).await;
        server.post(&format!("/api/sessions/{id}/queue/release"), json!(null)).await;
        watch_until(&server, &id, |it| is_quiet(it) && n_answers(it) == 1 + n_waiting).await;
        check_log(&server.log(&id).await, |_| false);
    }
    assert_eq!(kinds(&server.log(&other).await), ["session_created"]);
}

/// Returns the number of places whose time was answered.
fn n_answers(transcript: &Transcript) -> usize {
    let answers = || transcript.messages.iter().filter_map(Message::run);
    let is_told = |place: &&str| answers().any(|it| it.content().contains(*place));
    ["In Oslo it is", "In Paris it is", "In Tokyo it is", "In Cairo it is"]
        .iter()
        .filter(|place| is_told(place))
        .count()
}

fn is_quiet_but_for_the_held(transcript: &Transcript) -> bool {
    transcript.summary.open_run.is_none() && transcript.queue.next().is_none()
}

/// Grants of the imported session do not apply.
#[tokio::test]
async fn grants_are_not_imported() {
    let home = demos("instant", &["a", "b"], "");
    let server = home.start();
    post(&server, "", file(&records("nobody"))).await;
    server.send("busy", "run touch made").await;
    let asked = |it: &Transcript| !it.summary.open_approvals.is_empty();
    watch_until(&server, "busy", asked).await;
    assert!(!home.workspace().join("made").exists());
}

#[tokio::test]
async fn the_page_says_what_an_import_stopped() {
    let home = demos("instant", &["a", "b"], "");
    let server = home.start();
    post(&server, "", file(&records("nobody"))).await;
    let (_, page) = server.get_bytes("/s/busy").await;
    let page = String::from_utf8(page).unwrap();
    for words in [
        "it was not complete when it was imported",
        "This session was imported. 3 messages are held back.",
        "nothing starts until you send a message",
        "The session was imported before the answer came.",
    ] {
        assert!(page.contains(words), "{words}");
    }
}
