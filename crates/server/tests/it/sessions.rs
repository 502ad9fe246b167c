//! Finding, deleting and copying sessions, and files that go with messages.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::Seq;

use crate::program::{Home, Server, TOKEN, output};
use crate::watcher::{Watcher, is_quiet, watch_until};

async fn converse(server: &Server, text: &str) -> String {
    let session = server.create_session().await;
    server.send(&session, text).await;
    watch_until(server, &session, is_quiet).await;
    session
}

async fn hits(server: &Server, query: &str) -> Vec<(String, String)> {
    let found = server.get(&format!("/api/search?q={query}")).await;
    let hits = found["hits"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    hits.iter().map(|hit| (text(&hit["sessionId"]), text(&hit["kind"]))).collect()
}

#[tokio::test]
async fn what_was_said_and_done_is_found() {
    let home = Home::instant();
    std::fs::write(home.workspace().join("secret.txt"), "the word is xylophone\n").unwrap();
    let server = home.start();
    let read = converse(&server, "read secret.txt").await;
    let other = converse(&server, "think about marmalade").await;

    let kinds = |wanted: &str, hits: &[(String, String)]| -> Vec<String> {
        let mut kinds: Vec<_> =
            hits.iter().filter(|hit| hit.0 == wanted).map(|hit| hit.1.clone()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    };
    let found = hits(&server, "xylophone").await;
    assert_eq!(kinds(&read, &found), ["result", "text"], "in the tool's result and the answer");
    assert!(kinds(&other, &found).is_empty());
    assert_eq!(
        kinds(&read, &hits(&server, "secret").await),
        ["arguments", "message", "result", "text"]
    );
    assert!(kinds(&other, &hits(&server, "marmal").await).contains(&"thinking".to_owned()));
    for query in ["", "%22", "AND", "*", "NEAR(", "nothingofthatsort"] {
        hits(&server, query).await;
    }
}

#[tokio::test]
async fn deleting_a_session_leaves_nothing_of_it() {
    let home = Home::natural();
    let server = home.start();
    let kept = converse(&server, "time in Lima").await;
    let session = server.create_session().await;
    let mut watcher = Watcher::connect(&server).await;
    watcher.say(json!({ "type": "subscribe", "sessions": true })).await;
    watcher.subscribe(&session, Seq(0), true).await;
    server.send(&session, "think about quicksilver, tell me a story").await;
    watcher.until("thinking_delta").await;

    let path = format!("/api/sessions/{session}");
    let (status, _) = server.request(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(watcher.until("session_deleted").await["id"], session);
    let (status, _) = server.request(Method::GET, &path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = server.request(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(hits(&server, "quicksilver").await.is_empty());
    let listed = server.get("/api/sessions").await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(listed["sessions"][0]["id"], kept);

    // Its name is free again.
    let (status, _) = server.post("/api/sessions", json!({ "id": session })).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(server.log(&session).await.len(), 1);
    server.stop();
    let files = ["callboard.db", "callboard.db-wal"].map(|name| home.data().join(name));
    for file in files.iter().filter(|it| it.exists()) {
        let bytes = std::fs::read(file).unwrap();
        let is_there = bytes.windows(11).any(|it| it == b"quicksilver");
        assert!(!is_there, "still in {}", file.display());
    }
}

#[tokio::test]
async fn a_copy_made_while_running_is_a_whole_server() {
    let home = Home::instant();
    let server = home.start();
    let session = converse(&server, "list the files, write a report").await;
    let log = server.log(&session).await;
    let copy = home.workspace().join("copy.db");
    let (ok, stdout, stderr) = output(home.command().args(["backup", "copy.db"]));
    assert!(ok && stdout.contains("copy.db"), "{stdout}{stderr}");
    let (ok, _, stderr) = output(home.command().args(["backup", "copy.db"]));
    assert!(!ok && stderr.contains("copy.db"), "never over something: {stderr}");
    server.stop();

    let restored = Home::instant();
    std::fs::copy(&copy, restored.data().join("callboard.db")).unwrap();
    let server = restored.start();
    assert_eq!(server.log(&session).await, log);
    server.send(&session, "help").await;
    watch_until(&server, &session, |it| is_quiet(it) && it.messages.len() == 4).await;
}

#[tokio::test]
async fn files_are_put_and_got_back_as_files() {
    let home = Home::instant();
    let server = home.start();
    let client = reqwest::Client::new();
    let page = "<script>alert(1)</script>";
    let put = client.post(format!("{}/api/blobs", server.base)).bearer_auth(TOKEN).body(page);
    let put = put.send().await.unwrap();
    assert_eq!(put.status(), StatusCode::CREATED);
    let put: Value = put.json().await.unwrap();
    let url = format!("{}/api/blobs/{}", server.base, put["blob"].as_str().unwrap());
    let got = client.get(url).bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(got.headers()["content-type"], "application/octet-stream");
    assert_eq!(got.headers()["content-disposition"], "attachment");
    assert!(got.headers()["content-security-policy"].to_str().unwrap().contains("sandbox"));
    assert_eq!(got.text().await.unwrap(), page);
    let session = server.create_session().await;
    let path = format!("/api/sessions/{session}/messages");
    let attach = |blob: &Value, size: usize| {
        let attachment =
            json!({ "blob": blob, "name": "x.html", "mediaType": "text/html", "size": size });
        json!({ "text": "look", "attachments": [attachment] })
    };
    let (status, _) = server.post(&path, attach(&put["blob"], page.len())).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let wrong = [attach(&put["blob"], 1), attach(&json!("00"), 1)];
    for message in wrong {
        let (status, _) = server.post(&path, message).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "no such file");
    }
    for missing in ["00", "zz", "..%2f"] {
        let (status, _) = server.request(Method::GET, &format!("/api/blobs/{missing}"), None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{missing}");
    }
}

#[tokio::test]
async fn gauges_and_sizes_say_what_happened() {
    let home = Home::instant();
    let server = home.start();
    let session = converse(&server, "read a.txt, read missing.txt").await;
    // The connection that watched is gone soon, not at once.
    let metrics = loop {
        let metrics = server.get("/metrics").await.as_str().unwrap().to_owned();
        if metrics.contains("callboard_watchers 0\n") {
            break metrics;
        }
    };
    let n_records = server.log(&session).await.len();
    for line in [
        format!("callboard_records_total {}", n_records - 1),
        "callboard_runs_started_total{agent=\"demo\"} 1".to_owned(),
        "callboard_runs_finished_total{agent=\"demo\",status=\"completed\"} 1".to_owned(),
        "callboard_runs_open 0".to_owned(),
        "callboard_tool_calls_total{tool=\"read_file\",outcome=\"failed\"} 1".to_owned(),
        "callboard_errors_total{code=\"tool_error\"} 1".to_owned(),
    ] {
        assert!(metrics.lines().any(|it| it == line), "no {line} in\n{metrics}");
    }
    assert!(metrics.ends_with("# EOF\n"));
    assert!(!metrics.contains("alpha"), "no contents");

    let sizes = server.get("/api/sizes").await;
    assert_eq!(sizes["sessions"][0]["sessionId"], session);
    assert!(sizes["sessions"][0]["records"].as_u64().unwrap() > 1000);
    assert!(sizes["total"]["database"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn the_doctor_says_what_is_wrong() {
    let home = Home::instant();
    let (ok, stdout, stderr) = output(home.command().arg("doctor"));
    assert!(ok, "{stdout}{stderr}");
    assert!(stdout.contains("demo") && stdout.contains("this machine only"), "{stdout}");
    let server = home.start();
    let (ok, stdout, _) = output(home.command().arg("doctor"));
    assert!(ok && stdout.contains(&server.base), "{stdout}");
    drop(server);

    std::fs::write(home.workspace().join("callboard.toml"), "[server]\nlisen = 1\n").unwrap();
    let (ok, stdout, _) = output(home.command().arg("doctor"));
    assert!(!ok && stdout.contains("PROBLEM") && stdout.contains("lisen"), "{stdout}");
}
