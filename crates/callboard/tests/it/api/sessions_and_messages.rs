//! The HTTP API from a client's point of view.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::Transcript;

use crate::support::log::{check_log, kinds};
use crate::support::program::Home;
use crate::support::watcher::{Watcher, is_quiet, watch_until};

#[tokio::test]
async fn a_conversation_from_end_to_end() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let shown = server.get(&format!("/api/sessions/{session}")).await;
    assert_eq!((&shown["agent"], &shown["state"]), (&json!("demo"), &json!("idle")));

    server.send(&session, "list the files, then read a.txt").await;
    watch_until(&server, &session, is_quiet).await;

    let page = server.get(&format!("/api/sessions/{session}/messages")).await;
    let messages = page["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["role"], "user");
    let answer = &messages[1];
    let calls = answer["toolCalls"].as_array().unwrap();
    let names: Vec<&Value> = calls.iter().map(|call| &call["name"]).collect();
    assert_eq!(names, [&json!("list_files"), &json!("read_file")]);
    for call in calls {
        assert_eq!((&call["state"], &call["status"]), (&json!("succeeded"), &json!("completed")));
        assert!(!call["commentary"].as_str().unwrap().is_empty(), "the words that led to it");
    }
    assert_eq!(calls[1]["args"], json!({ "path": "a.txt" }));
    assert_eq!(calls[1]["result"]["text"], "alpha\nbeta\n");
    let content = answer["content"].as_str().unwrap();
    assert!(content.contains("alpha"), "{content}");
    assert!(!content.contains(calls[0]["commentary"].as_str().unwrap()), "final text only");
    assert_eq!(answer["toolActivity"]["isActive"], false);

    let shown = server.get(&format!("/api/sessions/{session}")).await;
    assert_eq!((&shown["state"], &shown["messageCount"]), (&json!("idle"), &json!(2)));
    check_log(&server.log(&session).await, |_| false);
}

#[tokio::test]
async fn a_log_without_deltas_replays_to_the_same_transcript() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "think about tides, time in Paris and Tokyo, write a report").await;
    watch_until(&server, &session, is_quiet).await;

    let all = server.log(&session).await;
    let mut page = server.get(&format!("/api/sessions/{session}/events")).await;
    let thin: Vec<transcript::Record> = serde_json::from_value(page["events"].take()).unwrap();
    assert!(thin.len() < all.len());
    assert!(!kinds(&thin).iter().any(|kind| kind.ends_with("_delta")), "all parts are closed");
    assert_eq!(Transcript::replay(&thin), Transcript::replay(&all));
}

#[tokio::test]
async fn a_repeated_client_id_sends_once() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let path = format!("/api/sessions/{session}/messages");
    let message = json!({ "text": "help", "clientId": "mine" });
    let (first, second) =
        tokio::join!(server.post(&path, message.clone()), server.post(&path, message.clone()));
    assert_eq!(first.1["messageId"], second.1["messageId"]);
    watch_until(&server, &session, is_quiet).await;
    assert_eq!(server.post(&path, message).await.1["messageId"], first.1["messageId"]);
    let kinds_of_log = kinds(&server.log(&session).await);
    assert_eq!(kinds_of_log.iter().filter(|kind| *kind == "user_message").count(), 1);
}

#[tokio::test]
async fn a_failed_run_can_be_retried_and_a_broken_one_continued() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let path = |verb: &str| format!("/api/sessions/{session}/{verb}");
    let (status, error) = server.post(&path("retry"), json!({})).await;
    assert_eq!((status, &error["error"]["code"]), (StatusCode::CONFLICT, &json!("nothing_to_do")));

    server.send(&session, "break").await;
    watch_until(&server, &session, is_quiet).await;
    let shown = server.get(&format!("/api/sessions/{session}")).await;
    assert_eq!(shown["state"], "failed");
    let page = server.get(&path("messages")).await;
    assert_eq!(page["messages"][1]["error"]["code"], "upstream_error");

    let (status, _) = server.post(&path("retry"), json!({})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let retried = watch_until(&server, &session, is_quiet).await;
    let superseded: Vec<bool> = retried.messages.iter().map(|it| it.superseded).collect();
    assert_eq!(superseded, [false, true, false]);
    let page = server.get(&path("messages")).await;
    assert_eq!(page["messages"].as_array().unwrap().len(), 2, "the first answer is superseded");

    let (status, _) = server.post(&path("continue"), json!({})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    watch_until(&server, &session, is_quiet).await;
    let page = server.get(&path("messages")).await;
    let messages = page["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[2]["status"]), (3, &json!("completed")));
}

#[tokio::test]
async fn messages_are_paged_in_either_order() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    for n in 0..5 {
        server.send(&session, &format!("help {n}")).await;
    }
    watch_until(&server, &session, is_quiet).await;
    let all = server.get(&format!("/api/sessions/{session}/messages")).await;
    assert_eq!(all["next"], Value::Null);
    let all: Vec<Value> = serde_json::from_value(all["messages"].clone()).unwrap();
    assert_eq!(all.len(), 10);

    let mut paged: Vec<Value> = Vec::new();
    let mut before = String::new();
    loop {
        let path = format!("/api/sessions/{session}/messages?order=desc&limit=3{before}");
        let page = server.get(&path).await;
        paged.extend(page["messages"].as_array().unwrap().iter().cloned());
        match page["next"].as_u64() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    paged.reverse();
    assert_eq!(paged, all);
}

#[tokio::test]
async fn sessions_are_listed_renamed_and_archived() {
    let home = Home::instant();
    let server = home.start();
    let mut list = Watcher::connect(&server).await;
    list.send(json!({ "type": "subscribe", "sessions": true })).await;
    list.until("subscribed").await;

    let session = server.create_session().await;
    let made = list.until("session").await;
    assert_eq!((&made["id"], &made["title"]), (&json!(session), &json!("New session")));

    let patch = Some(json!({ "title": "Mine", "archived": true }));
    let path = format!("/api/sessions/{session}");
    let (_, shown) = server.request(Method::PATCH, &path, patch).await;
    assert_eq!((&shown["title"], &shown["archived"]), (&json!("Mine"), &json!(true)));
    assert_eq!(list.until("session").await["title"], "Mine");
    let open = server.get("/api/sessions?archived=false").await;
    assert_eq!(open["sessions"], json!([]));
    let all = server.get("/api/sessions").await;
    assert_eq!(all["sessions"][0]["id"], session);
}

#[tokio::test]
async fn bad_requests_get_a_clear_error() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let own = format!("/api/sessions/{session}");
    let send = format!("{own}/messages");
    let cases = [
        (Method::POST, "/api/sessions", Some(json!({ "agent": "nobody" })), 400, "agent_not_found"),
        (Method::POST, "/api/sessions", Some(json!({ "id": "a/b" })), 400, "invalid_request"),
        (Method::POST, "/api/sessions", Some(json!({ "id": session })), 409, "session_exists"),
        (Method::POST, "/api/sessions", Some(json!({ "wat": 1 })), 400, "invalid_request"),
        (Method::POST, "/api/sessions", Some(json!({ "workspace": "x" })), 400, "invalid_request"),
        (Method::POST, &send, Some(json!({ "text": " \n" })), 400, "invalid_request"),
        (Method::POST, &send, Some(json!(7)), 400, "invalid_request"),
        (Method::PATCH, &own, Some(json!(["title", true])), 400, "invalid_request"),
        (
            Method::POST,
            "/api/sessions/none/messages",
            Some(json!({ "text": "x" })),
            404,
            "session_not_found",
        ),
        (Method::POST, "/api/sessions/none/cancel", None, 404, "session_not_found"),
        (Method::GET, "/api/sessions/none", None, 404, "session_not_found"),
        (Method::GET, "/api/sessions/none/events", None, 404, "session_not_found"),
        (Method::GET, "/api/sessions/none/messages", None, 404, "session_not_found"),
        (Method::GET, &format!("{send}?format=morse"), None, 400, "invalid_request"),
        (Method::GET, "/api/nothing", None, 404, "not_found"),
        (Method::PUT, "/api/agents", None, 405, "method_not_allowed"),
    ];
    for (method, path, body, status, code) in cases {
        let (got, answer) = server.request(method, path, body).await;
        assert_eq!((got.as_u16(), &answer["error"]["code"]), (status, &json!(code)), "{path}");
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
    }

    let mut watcher = Watcher::connect(&server).await;
    for (frame, code) in [
        (json!("hello"), "invalid_request"),
        (json!(["ping"]), "invalid_request"),
        (json!({ "type": "wat" }), "invalid_request"),
        (json!({ "type": "subscribe", "sessionId": "none" }), "session_not_found"),
        (json!({ "type": "send_message", "sessionId": "none", "text": "x" }), "session_not_found"),
        (json!({ "type": "subscribe", "sessionId": session, "after": 99 }), "invalid_request"),
        (json!({ "type": "cancel_output", "sessionId": "../x" }), "session_not_found"),
    ] {
        watcher.send(frame).await;
        assert_eq!(watcher.until("error").await["code"], code);
    }
    watcher.send(json!({ "type": "ping" })).await;
    watcher.until("pong").await;
}

#[tokio::test]
async fn assets_are_compressed_and_cached() {
    let home = Home::instant();
    let server = home.start();
    let page =
        tools::http_client().get(&server.base).bearer_auth(crate::support::program::TOKEN).send();
    let page = page.await.unwrap().text().await.unwrap();
    let paths: Vec<&str> = page.split('"').filter(|it| it.starts_with("/assets/")).collect();
    assert!(paths.iter().any(|it| it.ends_with("/main.js")), "{paths:?}");
    for path in paths {
        let get = |encoding| {
            let request = tools::http_client().get(format!("{}{path}", server.base));
            request.header("accept-encoding", encoding).send()
        };
        let (compressed, plain) = (get("gzip").await.unwrap(), get("identity").await.unwrap());
        assert_eq!(compressed.headers()["content-encoding"], "gzip", "{path}");
        assert!(!plain.headers().contains_key("content-encoding"), "{path}");
        for response in [&compressed, &plain] {
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            let kept = response.headers()["cache-control"].to_str().unwrap();
            assert!(kept.contains("immutable"), "{path}: {kept}");
        }
        let sizes = (compressed.bytes().await.unwrap().len(), plain.bytes().await.unwrap().len());
        assert!(sizes.0 < sizes.1, "{path}: {sizes:?}");
    }
}

#[tokio::test]
async fn all_but_healthz_and_assets_needs_the_token() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let client = tools::http_client_builder().redirect(reqwest::redirect::Policy::none()).build();
    let client = client.unwrap();
    let url = |path: &str| format!("{}{path}", server.base);
    for path in ["/", "/s/x", "/assets", "/api/agents", "/api/sessions", "/ws", "/nothing"] {
        let answer = client.get(url(path)).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{path}");
        let wrong = client.get(url(path)).bearer_auth("wrong").send().await.unwrap();
        assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
    let health = client.get(url("/healthz")).send().await.unwrap();
    assert_eq!(health.text().await.unwrap(), "ok");
    let stylesheet = format!("/assets/{}/page.css", render::assets_version());
    for (path, expected) in
        [(&*stylesheet, 200), ("/assets/none/page.css", 404), ("/assets/none", 404)]
    {
        let answer = client.get(url(path)).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), expected, "{path}");
        let changed = client.post(url(path)).send().await.unwrap();
        assert_eq!(changed.status(), StatusCode::UNAUTHORIZED, "POST {path}");
    }
    let refused = client.get(url("/")).send().await.unwrap().text().await.unwrap();
    assert!(refused.contains("name=\"token\""), "there is a way in: {refused}");

    let token = crate::support::program::TOKEN;
    let opened = client.get(url(&format!("/s/{session}?token={token}&at=3"))).send().await.unwrap();
    assert_eq!(opened.status(), StatusCode::SEE_OTHER);
    assert_eq!(opened.headers()["location"], format!("/s/{session}?at=3"), "the clean address");
    let cookie = opened.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
    assert!(!cookie.contains(token), "the cookie is not the token");
    let cookie = cookie.split(';').next().unwrap();
    let page = client.get(url("/")).header("cookie", cookie).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    let (name, value) = cookie.split_once('=').unwrap();
    for wrong in [
        format!("{name}="),
        format!("{name}=wrong"),
        format!("{name}={token}"),
        format!("{name}={value}0"),
        format!("other={value}"),
    ] {
        for path in ["/", "/api/sessions", "/ws"] {
            let answer = client.get(url(path)).header("cookie", &wrong).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{path} with {wrong}");
        }
    }
}
