//! The disk fills up during a run: shown records are kept, other requests are refused with a clear
//! error, and the session continues once there is space again.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::{Record, Seq};

use crate::support::log::check_log;
use crate::support::program::{Home, Server, output};
use crate::support::watcher::{Watcher, as_record, is_quiet, watch_until};

/// Starts a server whose data folder is a file system of four megabytes, in a mount namespace that
/// ends with it. Works for root, and for users where they may create namespaces.
fn start_on_small_disk(home: &Home) -> (Server, PathBuf) {
    start_after(home, "")
}

/// Like [`start_on_small_disk`], after a shell command that finds the program in `$0`.
fn start_after(home: &Home, first: &str) -> (Server, PathBuf) {
    let server = Server::start(on_small_disk(home, first));
    // Path of the data folder as the server sees it.
    let data = home.data();
    let data = PathBuf::from(format!("/proc/{}/root{}", server.pid(), data.display()));
    (server, data)
}

fn on_small_disk(home: &Home, first: &str) -> Command {
    let script =
        format!(r#"mount -t tmpfs -o size=4m none "$CALLBOARD_DATA" && {first} exec "$0""#);
    let script = script.as_str();
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script]);
    command.arg(env!("CARGO_BIN_EXE_callboard"));
    home.prepare(&mut command);
    command
}

fn fill(file: &mut File) {
    while file.write_all(&[7; 4096]).is_ok() {}
    while file.write_all(&[7]).is_ok() {}
}

#[tokio::test]
async fn a_full_disk_loses_no_shown_record() {
    let home = Home::natural();
    let (server, data) = start_on_small_disk(&home);
    let session = server.create_session().await;
    let mut watcher = Watcher::connect(&server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    server.send(&session, "write a report about tides").await;

    let mut shown: Vec<Record> = Vec::new();
    while shown.len() < 30 {
        shown.extend(as_record(&watcher.next().await.unwrap()));
    }
    let filler = data.join("filler");
    let mut file = File::create(&filler).unwrap();
    let error = loop {
        // The run itself uses up the space that the log had allocated.
        fill(&mut file);
        let frame = watcher.next().await.unwrap();
        match as_record(&frame) {
            Some(record) => shown.push(record),
            None if frame["type"] == "error" => break frame,
            None => (),
        }
    };
    assert_eq!((&error["code"], &error["retryable"]), (&json!("storage"), &json!(true)));
    assert!(error["message"].as_str().unwrap().contains("space"), "{error}");

    let path = format!("/api/sessions/{session}/messages");
    let (status, answer) = server.post(&path, json!({ "text": "time in Lima" })).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (StatusCode::INSUFFICIENT_STORAGE, &json!("storage"))
    );
    assert_eq!(server.log(&session).await, shown, "all that was shown, and nothing else");
    let health: Value = server.get("/healthz").await;
    assert_eq!(health, "ok");

    std::fs::remove_file(&filler).unwrap();
    drop(file);
    // The run is closed automatically, as failed for lack of storage.
    let transcript = watch_until(&server, &session, is_quiet).await;
    let finish = transcript.messages[1].run().unwrap().finish.clone().unwrap();
    assert_eq!(finish.error.unwrap().code.as_str(), "storage");

    server.send(&session, "time in Lima").await;
    let transcript =
        watch_until(&server, &session, |it| is_quiet(it) && it.messages.len() == 4).await;
    assert!(transcript.messages[3].run().unwrap().content().contains("Lima"));
    let log = server.log(&session).await;
    check_log(&log, |_| false);
    assert_eq!(log[..shown.len()], shown);
}

#[tokio::test]
async fn a_change_that_cannot_be_stored_is_refused() {
    let home = Home::instant();
    let (server, data) = start_on_small_disk(&home);
    let session = server.create_session().await;
    let path = format!("/api/sessions/{session}");
    let mut file = File::create(data.join("filler")).unwrap();
    for n in 0.. {
        fill(&mut file);
        let before = server.get(&path).await;
        let patch = Some(json!({ "title": n.to_string() }));
        let (status, answer) = server.request(Method::PATCH, &path, patch).await;
        let after = server.get(&path).await;
        if status != StatusCode::OK {
            assert_eq!(
                (status, &answer["error"]["code"]),
                (StatusCode::INSUFFICIENT_STORAGE, &json!("storage"))
            );
            assert_eq!(after, before);
            break;
        }
        assert_eq!(after["title"], n.to_string(), "accepted, so it is there");
    }
}

/// Shell command that imports a session of about a megabyte, with the program in `$0`.
const IMPORT: &str = r#""$0" import --format callboard big.jsonl >&2 &&"#;
const FILL: &str =
    r#"{ dd if=/dev/zero of="$CALLBOARD_DATA/filler" bs=512 count=16384 2>/dev/null || true; } &&"#;

fn write_big_log(home: &Home) {
    let words = "many words for a large session ".repeat(20);
    let header = |seq| json!({ "seq": seq, "at": "2026-11-15T09:00:00.000Z", "sessionId": "big" });
    let record = |seq, event: Value| {
        let mut record = header(seq);
        record.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
        record.to_string()
    };
    let mut lines = vec![record(1, json!({ "type": "session_created", "agent": "demo" }))];
    for seq in 2..1200 {
        let (id, text) = (format!("m{seq}"), format!("{seq} {words}"));
        lines.push(record(seq, json!({ "type": "user_message", "messageId": id, "text": text })));
    }
    std::fs::write(home.workspace().join("big.jsonl"), lines.join("\n")).unwrap();
}

/// Deletes the session of [`write_big_log`] on a full disk, which makes space for a new answer.
async fn delete_to_make_space(server: &Server) {
    let events = server.get("/api/sessions/big/events?limit=5").await;
    assert_eq!(events["events"].as_array().unwrap().len(), 5);

    let (status, answer) = server.request(Method::DELETE, "/api/sessions/big", None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
    let listed = server.get("/api/sessions").await;
    assert!(!listed.to_string().contains("\"big\""), "{listed}");

    let session = server.create_session().await;
    server.send(&session, "time in Lima").await;
    let transcript =
        watch_until(server, &session, |it| is_quiet(it) && it.messages.len() == 2).await;
    assert!(transcript.messages[1].run().unwrap().content().contains("Lima"));
}

#[tokio::test]
async fn a_server_starts_reads_and_deletes_on_a_full_disk() {
    let home = Home::instant();
    write_big_log(&home);
    let (server, _) = start_after(&home, &format!("{IMPORT} {FILL}"));
    delete_to_make_space(&server).await;
}

#[tokio::test]
async fn a_session_can_be_deleted_on_a_full_disk() {
    let home = Home::instant();
    write_big_log(&home);
    let (server, data) = start_after(&home, IMPORT);
    let mut file = File::create(data.join("filler")).unwrap();
    // Also uses up the space that the log has allocated.
    loop {
        fill(&mut file);
        let create = Some(json!({ "agent": "demo" }));
        let (status, _) = server.request(Method::POST, "/api/sessions", create).await;
        if status == StatusCode::INSUFFICIENT_STORAGE {
            break;
        }
        assert!(status.is_success(), "{status}");
    }
    delete_to_make_space(&server).await;
}

#[test]
fn a_start_without_space_says_what_to_do() {
    let home = Home::instant();
    write_big_log(&home);
    // A server that starts by mistake is ended after a minute.
    let start = r#"timeout 60 "$0"; exit $?;"#;
    let first = format!(r#"{IMPORT} rm "$CALLBOARD_DATA/callboard.reserve" && {FILL} {start}"#);
    let (ok, stdout, stderr) = output(&mut on_small_disk(&home, &first));
    assert!(!ok && stderr.contains("free some, and start again"), "{stdout}{stderr}");
}
