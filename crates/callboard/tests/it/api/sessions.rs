//! Searching, deleting, exporting and copying sessions, and their files.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::Seq;

use crate::support::program::{Home, Server, TOKEN, output};
use crate::support::watcher::{Watcher, is_quiet, watch_until};

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
async fn messages_and_tool_calls_are_found() {
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
async fn a_pending_deletion_can_be_undone_and_blocks_the_session() {
    let home = Home::instant();
    let server = home.start();
    let session = converse(&server, "help").await;
    let path = format!("/api/sessions/{session}");
    let delete_in = |seconds: u32| format!("{path}?seconds={seconds}");
    let before = server.log(&session).await.len();

    let (status, _) = server.request(Method::DELETE, &delete_in(600), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (_, page) = server.get_bytes("/").await;
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("row leaving"), "every list shows that it is about to go");
    let message = json!({ "text": "help" });
    let (status, body) = server.post(&format!("{path}/messages"), message.clone()).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{body}");
    assert_eq!(server.log(&session).await.len(), before, "nothing was written");

    let restore = format!("{path}/restore");
    assert_eq!(server.post(&restore, json!({})).await.0, StatusCode::OK);
    assert_eq!(server.post(&restore, json!({})).await.0, StatusCode::CONFLICT, "only once");
    let (status, _) = server.post(&format!("{path}/messages"), message).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    watch_until(&server, &session, is_quiet).await;

    let mut watcher = Watcher::connect(&server).await;
    watcher.send(json!({ "type": "subscribe", "sessions": true })).await;
    server.request(Method::DELETE, &delete_in(0), None).await;
    assert_eq!(watcher.until("session_deleted").await["id"], session);
}

#[tokio::test]
async fn session_list_pages_and_separates_archived() {
    let home = Home::instant();
    let server = home.start();
    let mut all = Vec::new();
    for _ in 0..103 {
        all.push(server.create_session().await);
    }
    let page = async |path: &str| String::from_utf8(server.get_bytes(path).await.1).unwrap();
    let listed = |html: &str| -> Vec<String> {
        let of = |it: &str| it.split_once('"').unwrap().0.to_owned();
        html.split("<li id=\"sessions-").skip(1).map(of).collect()
    };
    let first = page("/").await;
    let link = first.split("id=\"sessions.more\"").nth(1).expect("a link to the rest");
    let link = link.split("href=\"").nth(1).unwrap().split_once('"').unwrap().0;
    let second = page(&link.replace("&amp;", "&")).await;
    assert!(!second.contains("sessions.more"), "the end has no link");
    let mut shown = [listed(&first), listed(&second)].concat();
    assert_eq!(shown.len(), all.len());
    shown.sort();
    all.sort();
    assert_eq!(shown, all);

    let archive = json!({ "archived": true });
    server.request(Method::PATCH, &format!("/api/sessions/{}", all[0]), Some(archive)).await;
    assert!(!listed(&page("/").await).contains(&all[0]));
    assert_eq!(listed(&page("/?archived=true").await), all[..1]);
}

#[tokio::test]
async fn deleting_a_session_removes_all_its_data() {
    let home = Home::natural();
    let server = home.start();
    let kept = converse(&server, "time in Lima").await;
    let session = server.create_session().await;
    let mut watcher = Watcher::connect(&server).await;
    watcher.send(json!({ "type": "subscribe", "sessions": true })).await;
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

    // The id can be used again.
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
async fn a_backup_of_a_running_server_is_complete() {
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
async fn uploaded_files_are_served_as_attachments() {
    let home = Home::instant();
    let server = home.start();
    let client = tools::http_client();
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
async fn metrics_and_sizes_match_the_sessions() {
    let home = Home::instant();
    let server = home.start();
    let session = converse(&server, "read a.txt, read missing.txt").await;
    // The watcher's connection is closed with a delay.
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
async fn the_doctor_reports_problems() {
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

/// Agents that nobody configured may be missing, but at least one must be able to work.
#[tokio::test]
async fn without_a_usable_agent_the_remedy_is_reported() {
    let home = Home::new("demo = false\n");
    let alone = || {
        let mut command = home.command();
        command.env("PATH", "/nowhere");
        command
    };
    let (ok, stdout, stderr) = output(alone().arg("doctor"));
    let what_to_do = "install Claude Code, Codex or Pi, add a model to callboard.toml";
    assert!(!ok && stdout.contains("PROBLEM") && stdout.contains(what_to_do), "{stdout}");
    assert!(stderr.contains("one of these needs your attention"), "{stderr}");
    let server = Server::start(alone());
    let (status, refused) = server.post("/api/sessions", json!({ "agent": "" })).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(message.starts_with("no agent is ready") && message.contains(what_to_do), "{message}");
}

/// The import of an export is the same session, under another id if necessary.
#[tokio::test]
async fn an_exported_session_can_be_imported() {
    let home = Home::instant();
    std::fs::write(home.workspace().join("notes.txt"), "one\ntwo\n").unwrap();
    let server = home.start();
    let session = converse(&server, "read notes.txt").await;
    let log = text(&server, &format!("/api/sessions/{session}/export?format=jsonl")).await;

    let (status, refused) = import(&server, "", &log).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (StatusCode::CONFLICT, &json!("session_exists"))
    );
    let (status, imported) = import(&server, "?id=copy", &log).await;
    assert_eq!((status, &imported["id"]), (StatusCode::CREATED, &json!("copy")));

    let copy = text(&server, "/api/sessions/copy/export?format=jsonl").await;
    assert_eq!(
        copy,
        log.replace(&format!("\"sessionId\":\"{session}\""), "\"sessionId\":\"copy\"")
    );
    let messages = |id: &str| format!("/api/sessions/{id}/messages");
    assert_eq!(server.get(&messages("copy")).await, server.get(&messages(&session)).await);
    server.send("copy", "time in Lima").await;
    watch_until(&server, "copy", is_quiet).await;

    let broken = [
        ("", "has no record"),
        ("{\"seq\":1}", "line 1"),
        ("{}", "is no list of messages"),
        (log.split_once('\n').unwrap().1, "line 1: record 2 does not follow 0"),
        (&log.replace("session_created", "notice"), "line 1: a log begins with session_created"),
        (&format!("{log}not a record"), &format!("line {}", log.lines().count() + 1)),
    ];
    for (file, why) in broken {
        let (status, refused) = import(&server, "?id=broken", file).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
    }
}

async fn text(server: &Server, path: &str) -> String {
    let request = tools::http_client().get(format!("{}{path}", server.base)).bearer_auth(TOKEN);
    request.send().await.unwrap().text().await.unwrap()
}

async fn import(server: &Server, query: &str, log: &str) -> (StatusCode, Value) {
    let url = format!("{}/api/sessions/import{query}", server.base);
    let request = tools::http_client().post(url).bearer_auth(TOKEN).body(log.to_owned());
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test]
async fn only_pictures_are_served_inline() {
    let home = Home::instant();
    let server = home.start();
    let files: [(&[u8], &str, &str); 3] = [
        (b"\x89PNG\r\n\x1a\n....", "image/png", "inline"),
        (b"<svg onload=alert(1)>", "application/octet-stream", "attachment"),
        (b"<html><script>alert(1)</script>", "application/octet-stream", "attachment"),
    ];
    let client = tools::http_client();
    for (bytes, kind, disposition) in files {
        let put = client.post(format!("{}/api/blobs", server.base)).bearer_auth(TOKEN);
        let put: Value = put.body(bytes.to_vec()).send().await.unwrap().json().await.unwrap();
        let url = format!("{}/api/blobs/{}", server.base, put["blob"].as_str().unwrap());
        let answer = client.get(url).bearer_auth(TOKEN).send().await.unwrap();
        let header = |name| answer.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!((header("content-type"), header("content-disposition")), (kind, disposition));
        assert!(header("content-security-policy").contains("sandbox"));
        assert_eq!(header("x-content-type-options"), "nosniff");
    }
}

/// A session is shown as of any record, on the page, as a file and in the terminal.
#[tokio::test]
async fn a_past_state_can_be_exported_in_every_format() {
    let home = Home::instant();
    std::fs::write(home.workspace().join("notes.txt"), "buy <oil> & wicks\n").unwrap();
    let server = home.start();
    let session = converse(&server, "read notes.txt").await;
    let export = |query: &str| format!("/api/sessions/{session}/export{query}");

    let html = text(&server, &export("")).await;
    assert!(html.contains("buy &lt;oil&gt; &amp; wicks"), "{html}");
    assert!(
        html.contains("<style>") && !html.contains("<script") && !html.contains("href=\"/assets")
    );
    let markdown = text(&server, &export("?format=md")).await;
    assert!(markdown.starts_with("# read notes.txt\n"), "{markdown}");
    assert!(markdown.contains("**read_file** (succeeded"), "{markdown}");
    let messages: Value =
        serde_json::from_str(&text(&server, &export("?format=json")).await).unwrap();
    let listed = server.get(&format!("/api/sessions/{session}/messages")).await;
    assert_eq!(messages["messages"], listed["messages"]);

    let early = text(&server, &export("?at=2")).await;
    assert!(early.contains("read notes.txt") && !early.contains("wicks"));
    let page = text(&server, &format!("/s/{session}?at=2")).await;
    assert!(page.contains("as it was at record 2") && !page.contains("wicks"));

    let printed = |args: &[&str]| {
        let (ok, stdout, stderr) = output(home.command().args(["export", &session]).args(args));
        assert!(ok, "{stderr}");
        stdout
    };
    assert_eq!(printed(&["--format", "md"]), markdown, "by way of the server");
    let log = text(&server, &export("?format=jsonl")).await;
    server.stop();
    assert_eq!(printed(&["--format", "md"]), markdown, "from the folder");
    assert_eq!(printed(&[]), log);
    assert_eq!(printed(&["--at", "2"]).lines().count(), 2);
}

/// Holds with a server and without one.
#[tokio::test]
async fn exporting_beyond_the_end_of_a_log_fails() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let export = |at: &str| output(home.command().args(["export", &session, "--at", at]));
    for server in [Some(server), None] {
        assert!(export("1").0);
        let (ok, stdout, stderr) = export("2");
        assert!(!ok && stdout.is_empty() && stderr.contains("ends at 1"), "{stdout}{stderr}");
        drop(server);
    }
}

/// A client that got no response repeats the request with the same client id.
#[tokio::test]
async fn a_message_replaces_an_earlier_one_once() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let earlier = server.send(&session, "help").await;
    watch_until(&server, &session, is_quiet).await;
    let path = format!("/api/sessions/{session}/messages");
    let words = json!({ "text": "think", "clientId": "c1", "replaces": earlier });
    let (status, first) = server.post(&path, words.clone()).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{first}");
    watch_until(&server, &session, is_quiet).await;
    let (status, again) = server.post(&path, words).await;
    assert_eq!((status, &again["messageId"]), (StatusCode::ACCEPTED, &first["messageId"]));
    let log = server.log(&session).await;
    let kinds = log.iter().map(|it| serde_json::to_value(it).unwrap()["type"].clone());
    assert_eq!(kinds.filter(|it| it == "history_rewound").count(), 1);
    let gone = json!({ "text": "think", "clientId": "c2", "replaces": earlier });
    let (status, refused) = server.post(&path, gone).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{refused}");
}
