//! The disk fills up in the middle of a run: what was shown is kept, the rest is refused in clear
//! words, and the session goes on when there is room again.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::{Record, Seq};

use crate::log::check_log;
use crate::program::{Home, Server};
use crate::watcher::{Watcher, as_record, is_quiet, watch_until};

/// A server whose data folder is a file system of four megabytes, in a mount namespace that ends
/// with it. Works for root, and for users where they may have namespaces.
fn start_on_small_disk(home: &Home) -> (Server, PathBuf) {
    let script = r#"mount -t tmpfs -o size=4m none "$CALLBOARD_DATA" && exec "$0""#;
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script]);
    command.arg(env!("CARGO_BIN_EXE_callboard"));
    home.prepare(&mut command);
    let server = Server::start(command);
    // The folder as the server sees it.
    let data = home.data();
    let data = PathBuf::from(format!("/proc/{}/root{}", server.pid(), data.display()));
    (server, data)
}

fn fill(file: &mut File) {
    while file.write_all(&[7; 4096]).is_ok() {}
    while file.write_all(&[7]).is_ok() {}
}

#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_shown() {
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
        // Whatever room the log still had of its own is used up by the run itself.
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
    // The run is closed by itself, as failed for lack of storage.
    let transcript = watch_until(&server, &session, is_quiet).await;
    let finish = transcript.messages[1].answer().unwrap().finish.clone().unwrap();
    assert_eq!(finish.error.unwrap().code.as_str(), "storage");

    server.send(&session, "time in Lima").await;
    let transcript =
        watch_until(&server, &session, |it| is_quiet(it) && it.messages.len() == 4).await;
    assert!(transcript.messages[3].answer().unwrap().content().contains("Lima"));
    let log = server.log(&session).await;
    check_log(&log, |_| false);
    assert_eq!(log[..shown.len()], shown);
}

#[tokio::test]
async fn what_cannot_be_written_is_not_accepted() {
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
