//! Programs that print many unreadable lines: the log and every page stay small, and no line is
//! lost.

use reqwest::StatusCode;
use serde_json::{Value, json};
use transcript::{Event, MAX_UNRECOGNIZED, PartKind, Record, RunMessage, RunStatus};

use crate::import::programs::post;
use crate::support::program::{Home, Server};
use crate::support::stand_in::{cancel, last_answer, playing, session, status, wait_until_reached};

const LINES: u64 = 20_000;

fn unread_lines(answer: &RunMessage) -> Vec<u64> {
    let lines = |kind: &PartKind| match kind {
        PartKind::Unrecognized { lines, .. } => Some(*lines),
        _ => None,
    };
    answer.parts.iter().filter_map(|it| lines(&it.kind)).collect()
}

async fn raw_lines(server: &Server, session: &str) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let raw = format!("/api/sessions/{session}/raw?after={after}&limit=1000");
        let page = server.get(&raw).await;
        let lines = page["lines"].as_array().unwrap();
        let Some(last) = lines.last() else { return found };
        after = last["number"].as_u64().unwrap();
        found.extend(lines.iter().map(|it| it["text"].as_str().unwrap().to_owned()));
    }
}

#[tokio::test]
async fn many_unreadable_lines_make_few_records_and_none_is_lost() {
    let scene = format!("hear_user; seq -f 'garbage %.0f' {LINES}; text Hello; result; hear_user");
    let home = playing(&scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    let answer = last_answer(&server, &session).await;
    assert_eq!((answer.content(), status(&answer)), ("Hello".into(), RunStatus::Completed));
    let unread = unread_lines(&answer);
    assert_eq!(unread.iter().sum::<u64>(), LINES, "every line is counted");
    assert_eq!(unread.len(), MAX_UNRECOGNIZED + 1);

    let log = server.log(&session).await;
    let is_unread = |it: &&Record| matches!(it.event, Event::Unrecognized { .. });
    let n_records = log.iter().filter(is_unread).count();
    assert!(n_records <= MAX_UNRECOGNIZED + 16, "{n_records} records");
    cancel(&server, &session).await;

    let raw = raw_lines(&server, &session).await;
    let garbage: Vec<String> = raw.into_iter().filter(|it| it.starts_with("garbage")).collect();
    let written: Vec<String> = (1..=LINES).map(|n| format!("garbage {n}")).collect();
    assert!(garbage == written, "{} of {LINES} lines are kept", garbage.len());

    // The last part stands for all further lines and links to them.
    let rest = answer
        .parts
        .iter()
        .rev()
        .find(|it| matches!(it.kind, PartKind::Unrecognized { lines, .. } if lines > 1));
    let path = format!("/api/sessions/{session}/raw?part={}&format=text", rest.unwrap().first);
    let (_, text) = server.get_bytes(&path).await;
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().filter(|it| it.starts_with("garbage")).count() as u64, LINES - 50);
}

#[tokio::test]
async fn an_endless_flood_can_be_stopped_and_blocks_no_session() {
    let home = playing("hear_user; reached flood; exec yes garbage", "");
    let server = home.start();
    let flooded = session(&server).await;
    server.send(&flooded, "hello").await;
    wait_until_reached(&home, "flood").await;
    let other = session(&server).await;
    let path = format!("/api/sessions/{other}");
    let (renamed, _) =
        server.request(reqwest::Method::PATCH, &path, Some(json!({ "title": "still here" }))).await;
    assert_eq!(renamed, StatusCode::OK);
    cancel(&server, &flooded).await;
    assert_eq!(status(&last_answer(&server, &flooded).await), RunStatus::Cancelled);
}

/// A log as earlier versions wrote it: one record per line.
fn old_log(n: u64) -> String {
    let record = |seq: u64, run: bool, mut event: Value| {
        event["seq"] = json!(seq);
        event["at"] = json!("2026-11-15T18:44:28.123Z");
        event["sessionId"] = json!("old");
        if run {
            event["responseId"] = json!("r1");
        }
        event.to_string()
    };
    let line =
        |n| json!({"type": "unrecognized", "source": "claude", "raw": format!("garbage {n}")});
    let mut lines = vec![
        record(1, false, json!({"type": "session_created", "agent": "claude"})),
        record(2, false, json!({"type": "user_message", "messageId": "m1", "text": "hello"})),
        record(3, true, json!({"type": "run_start", "agent": "claude", "trigger": "user"})),
    ];
    lines.extend((0..n).map(|it| record(4 + it, true, line(it))));
    let end = json!({"type": "run_finish", "status": "completed", "durationMs": 9});
    lines.push(record(4 + n, true, end));
    lines.join("\n")
}

/// The size of each response does not depend on the number of lines.
#[tokio::test]
async fn a_log_with_a_record_for_every_line_is_served_in_small_pages() {
    let home = Home::instant();
    let server = home.start();
    let (few, many) = (200, 30_000);
    let mut sizes = Vec::new();
    for n in [few, many] {
        let id = format!("old{n}");
        let (status, imported) = post(&server, &format!("format=jsonl&id={id}"), old_log(n)).await;
        assert_eq!(status, StatusCode::CREATED, "{imported}");
        let api = format!("/api/sessions/{id}");
        let paths = [
            format!("/s/{id}"),
            format!("/s/{id}?at={}", n + 4),
            format!("{api}/messages"),
            format!("{api}/messages?format=ui"),
            format!("{api}/messages?format=contract&status=all"),
            format!("{api}/export?format=html"),
            format!("{api}/export?format=md"),
            format!("{api}/answers/r1"),
        ];
        let mut of_log = Vec::new();
        for path in paths {
            let (_, body) = server.get_bytes(&path).await;
            let text = String::from_utf8(body).unwrap();
            assert!(text.contains("garbage 0"), "{path} is drawn");
            of_log.push((path, text.len()));
        }
        sizes.push(of_log);
    }
    for ((path, small), (_, large)) in sizes[0].iter().zip(&sizes[1]) {
        assert!(*large < small + 2000, "{path}: {small} and {large} bytes");
    }
}
