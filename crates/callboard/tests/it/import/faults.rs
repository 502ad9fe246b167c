//! Imports of long sessions: complete or absent, even if the server is killed or the client
//! disconnects, while other sessions can be written to.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::import::programs::post;
use crate::support::program::{BEARER, Home, Server};

/// Number of turns. `e2e/import_faults.mjs` uses 33,333.
const TURNS: usize = 1500;
const RECORDS_OF_TURN: usize = 5;

/// Returns a log of that many questions with their answers.
fn log(session: &str, turns: usize) -> String {
    let mut lines = String::new();
    let mut seq = 0;
    let mut add = |record: Value| {
        seq += 1;
        let mut line =
            json!({ "seq": seq, "at": "2026-11-15T09:00:00.000Z", "sessionId": session });
        line.as_object_mut().unwrap().extend(record.as_object().unwrap().clone());
        writeln!(lines, "{line}").unwrap();
    };
    add(json!({ "type": "session_created", "agent": "demo" }));
    for n in 0..turns {
        let (run, part) = (format!("r{n}"), format!("r{n}.0"));
        add(
            json!({ "type": "user_message", "messageId": format!("m{n}"), "text": format!("Question {n}") }),
        );
        add(json!({ "type": "run_start", "responseId": run, "agent": "demo", "trigger": "user" }));
        add(json!({ "type": "text_start", "responseId": run, "partId": part }));
        add(
            json!({ "type": "text_done", "responseId": run, "partId": part, "text": "An answer of some words" }),
        );
        add(
            json!({ "type": "run_finish", "responseId": run, "status": "completed", "durationMs": 1 }),
        );
    }
    lines
}

/// Sends a complete request to import a log, and leaves the connection open.
fn begin_import(server: &Server, log: &str) -> TcpStream {
    let address = server.base.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /api/sessions/import HTTP/1.1\r\nHost: {address}\r\nAuthorization: {BEARER}\r\n\
         Content-Length: {}\r\n\r\n",
        log.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(log.as_bytes()).unwrap();
    stream
}

async fn is_whole_or_absent(server: &Server, session: &str) -> bool {
    let listed = server.get("/api/sessions").await;
    let listed = listed["sessions"].as_array().unwrap().iter().any(|it| it["id"] == session);
    let (status, found) =
        server.request(Method::GET, &format!("/api/sessions/{session}"), None).await;
    let hits = server.get("/api/search?q=Question&limit=1").await;
    let is_found = hits["hits"].as_array().unwrap().iter().any(|it| it["sessionId"] == session);
    if status == StatusCode::NOT_FOUND {
        assert!(!listed && !is_found, "{hits}");
        return false;
    }
    assert_eq!((status, &found["head"]), (StatusCode::OK, &json!(1 + TURNS * RECORDS_OF_TURN)));
    assert!(listed && is_found, "{hits}");
    true
}

#[tokio::test]
async fn a_killed_import_leaves_all_or_nothing() {
    let home = Home::instant();
    let log = log("long", TURNS);
    let mut server = home.start();
    for n in 0..8_u64 {
        let _client = begin_import(&server, &log);
        // Kills the server at a moment between the first byte and the last record.
        tokio::time::sleep(Duration::from_millis(n * 97 % 700)).await;
        server.kill();
        server = home.start();
        if is_whole_or_absent(&server, "long").await {
            let (status, _) = server.request(Method::DELETE, "/api/sessions/long", None).await;
            assert!(status.is_success(), "{status}");
            server.kill();
            server = home.start();
        }
    }
    let (status, made) = post(&server, "", log).await;
    assert_eq!((status, &made["addedTurns"]), (StatusCode::CREATED, &json!(TURNS)), "{made}");
    assert!(is_whole_or_absent(&server, "long").await);
}

/// All clients that may import at a time disconnect. The next import succeeds, and the others leave
/// nothing.
#[tokio::test]
async fn an_import_ends_when_its_client_disconnects() {
    let home = Home::instant();
    let server = home.start();
    for name in ["one", "two"] {
        drop(begin_import(&server, &log(name, 6 * TURNS)));
    }
    let (status, made) = post(&server, "", log("short", 1)).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let listed = server.get("/api/sessions").await;
    let ids: Vec<&Value> =
        listed["sessions"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, [&json!("short")]);
}

#[tokio::test]
async fn other_sessions_are_written_to_during_an_import() {
    let home = Home::instant();
    let server = home.start();
    let other = format!("/api/sessions/{}", server.create_session().await);
    let mut import = std::pin::pin!(post(&server, "", log("long", 2 * TURNS)));
    let mut n_writes = 0;
    let (status, _) = loop {
        let title = Some(json!({ "title": n_writes.to_string() }));
        let mut write = std::pin::pin!(server.request(Method::PATCH, &other, title));
        tokio::select! {
            done = &mut import => break done,
            (status, _) = &mut write => assert_eq!(status, StatusCode::OK),
        }
        n_writes += 1;
    };
    assert_eq!(status, StatusCode::CREATED);
    assert!(n_writes > 5, "{n_writes} writes of another session");
}

#[tokio::test]
async fn a_file_of_too_many_objects_is_refused() {
    let home = Home::instant();
    let server = home.start();
    let text = format!("[{}{{}}]", "{},".repeat(1_500_000));
    let (status, refused) = post(&server, "format=openai", text).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("1500000"), "{refused}");
}
