//! The AI SDK endpoints and contract events: their streams, and the requests that are refused. The
//! client libraries themselves are tested in `e2e/chat*.test.mjs`.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::log;
use crate::support::program::{Home, Server};
use crate::support::stand_in::{playing, session};
use crate::support::watcher::{Watcher, is_quiet, watch_until};

fn user_message(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] })
}

/// Returns the chunks of a response.
fn chunks(body: &Value) -> Vec<Value> {
    let events = body.as_str().unwrap_or_default().split("\n\n");
    let data = events.filter_map(|it| it.strip_prefix("data: ")).filter(|it| *it != "[DONE]");
    data.map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn kinds(chunks: &[Value]) -> Vec<&str> {
    chunks.iter().map(|it| it["type"].as_str().unwrap()).collect()
}

async fn chat(server: &Server, body: Value) -> (StatusCode, Value) {
    server.post("/api/chat/demo", body).await
}

#[tokio::test]
async fn regenerating_answers_the_last_message_of_the_request() {
    let home = Home::instant();
    let server = home.start();
    let (first, second) = (user_message("u1", "say one"), user_message("u2", "say two"));
    chat(&server, json!({ "id": "c", "messages": [first] })).await;
    let answer = json!({ "id": "a1", "role": "assistant", "parts": [] });
    // The second message never arrived, because the connection was lost.
    let regenerate = json!({
        "id": "c", "trigger": "regenerate-message", "messages": [first, answer, second],
    });
    let kept = async || {
        let kept = server.get("/api/sessions/c/messages?format=ui").await;
        let messages = kept["messages"].as_array().unwrap().iter();
        let texts = messages.map(|it| {
            let parts = it["parts"].as_array().unwrap();
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>()
        });
        texts.collect::<Vec<_>>()
    };
    chat(&server, regenerate.clone()).await;
    let response = kept().await;
    assert_eq!(response.len(), 4, "nothing was put aside: {response:?}");
    assert_eq!(response[2], "say two");
    chat(&server, regenerate).await;
    assert_eq!(kept().await.len(), 4, "now it is answered again");
    let body = json!({ "id": "c", "trigger": "regenerate-message", "messages": [first] });
    chat(&server, body).await;
    assert_eq!(kept().await.len(), 2, "and so is the first, and what came after is put aside");
}

/// Returns the events that a reader gets after record `after`, up to the end of the run.
async fn contract_events(server: &Server, session: &str, after: u64) -> Vec<(u64, Value)> {
    let path = format!("/api/sessions/{session}/contract-events?after={after}");
    let mut response = server.open(&path).await;
    let mut text = String::new();
    let is_end = |(_, event): &(u64, Value)| {
        event["type"] == "agent.status" && event["payload"]["status"] != "processing"
    };
    loop {
        let events: Vec<(u64, Value)> = text.split_inclusive("\n\n").filter_map(event).collect();
        if events.iter().any(is_end) {
            return events;
        }
        text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
}

fn event(text: &str) -> Option<(u64, Value)> {
    let field = |name: &str| text.lines().find_map(|it| it.strip_prefix(name));
    let data: Value = serde_json::from_str(field("data: ")?).ok()?;
    assert_eq!(field("event: "), data["type"].as_str(), "who listens for a kind hears it");
    Some((field("id: ")?.parse().ok()?, data))
}

#[tokio::test]
async fn a_repeated_message_replays_its_answer() {
    let home = Home::instant();
    let server = home.start();
    let body = json!({ "id": "c", "messages": [user_message("u1", "time in Paris")] });
    let (_, first) = chat(&server, body.clone()).await;
    let (_, again) = chat(&server, body).await;
    let (first, again) = (chunks(&first), chunks(&again));
    assert_eq!(first[0]["messageId"], again[0]["messageId"]);
    assert_eq!(first.last(), again.last());
    let log = log::kinds(&server.log("c").await);
    assert_eq!(log.iter().filter(|it| *it == "run_start").count(), 1);
}

#[tokio::test]
async fn a_late_decision_still_gets_the_outcome() {
    let home = Home::instant();
    let server = home.start();
    let body = json!({ "id": "c", "messages": [user_message("u1", "run echo hi > made.txt")] });
    let (_, asked) = chat(&server, body).await;
    let asked = chunks(&asked);
    let run = asked[0]["messageId"].as_str().unwrap().to_owned();
    let request = asked.iter().find(|it| it["type"] == "tool-approval-request").unwrap();
    let call = request["toolCallId"].as_str().unwrap();
    let path = format!("/api/sessions/c/calls/{call}/approval");
    server.post(&path, json!({ "decision": "accepted" })).await;
    watch_until(&server, "c", is_quiet).await;

    let approval = json!({ "id": request["approvalId"], "approved": false });
    let part = json!({
        "type": "tool-shell", "toolCallId": call, "state": "approval-responded",
        "input": {}, "approval": approval,
    });
    let answer = json!({ "id": run, "role": "assistant", "parts": [part] });
    let body = json!({ "id": "c", "messages": [answer], "messageId": run });
    let (status, rest) = chat(&server, body.clone()).await;
    assert_eq!(status, StatusCode::OK, "{rest}");
    let rest = chunks(&rest);
    assert_eq!(rest[0]["messageId"], run, "the same message goes on");
    assert_eq!(kinds(&rest)[1], "tool-output-available", "the first decision counts");
    assert_eq!(kinds(&rest).last(), Some(&"finish"));
    let (_, again) = chat(&server, body).await;
    assert_eq!(chunks(&again), rest, "however often it is asked");
}

#[tokio::test]
async fn a_result_for_a_call_that_has_ended_is_refused() {
    let home = Home::instant();
    let server = home.start();
    let body = json!({ "id": "c", "messages": [user_message("u1", "use the client tool pick")] });
    let (_, response) = chat(&server, body).await;
    let response = chunks(&response);
    let error = response.iter().find(|it| it["type"] == "tool-output-error").unwrap();
    let call = error["toolCallId"].as_str().unwrap();
    let path = format!("/api/sessions/c/calls/{call}/result");
    let (status, body) = server.post(&path, json!({ "output": 1 })).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{body}");
}

#[tokio::test]
async fn program_agents_cannot_rewind() {
    let home = playing("while :; do hear_user; text Hello; result; done", "");
    let server = home.start();
    let id = session(&server).await;
    let first = json!({ "id": id, "messages": [user_message("u1", "hello")] });
    let (_, response) = server.post("/api/chat", first).await;
    assert_eq!(kinds(&chunks(&response)).last(), Some(&"finish"), "{response}");
    for body in [
        json!({ "id": id, "trigger": "regenerate-message", "messages": [user_message("u1", "hello")] }),
        json!({ "id": id, "messageId": "u1", "messages": [user_message("u1", "other words")] }),
    ] {
        let (status, why) = server.post("/api/chat", body).await;
        assert_eq!(status, StatusCode::CONFLICT, "{why}");
        assert!(why.as_str().unwrap().contains("cannot go back"), "{why}");
    }
}

#[tokio::test]
async fn contract_events_resume_after_any_event() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "time in Paris and Tokyo").await;
    watch_until(&server, &session, is_quiet).await;
    check_that_contract_events_continue(&server, &session).await;
    let (status, _) =
        server.request(Method::GET, "/api/sessions/nobody/contract-events", None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

/// The end of a stopped run is two events that come from one record.
#[tokio::test]
async fn contract_events_of_a_stopped_run_resume_after_any_event() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "run echo hi > made.txt").await;
    watch_until(&server, &session, |it| !it.summary.open_approvals.is_empty()).await;
    server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await;
    watch_until(&server, &session, is_quiet).await;
    check_that_contract_events_continue(&server, &session).await;
}

/// Checks that a reader that reconnects after any event gets the rest. The events of the last
/// record may come once more.
async fn check_that_contract_events_continue(server: &Server, session: &str) {
    let all = contract_events(server, session, 0).await;
    assert!(all.len() > 3, "{all:?}");
    for (n, (after, _)) in all.iter().enumerate().take(all.len() - 1) {
        let rest = contract_events(server, session, *after).await;
        assert!(all.ends_with(&rest), "after {after}: {rest:?}");
        assert!(rest.len() >= all.len() - 1 - n, "after {after} nothing is lost: {rest:?}");
        assert!(rest.len() <= all.len() - n, "after {after} little comes twice: {rest:?}");
    }
}

#[tokio::test]
async fn contract_events_open_with_a_comment() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let path = format!("/api/sessions/{session}/contract-events");
    let first = server.open(&path).await.chunk().await.unwrap().unwrap();
    assert_eq!(std::str::from_utf8(&first).unwrap(), ": stream-open\n\n");
}

#[tokio::test]
async fn a_held_message_ends_its_response_with_an_error() {
    let home = Home::instant();
    let server = home.start();
    let (_, asked) = chat(
        &server,
        json!({ "id": "c", "messages": [user_message("u1", "run echo hi > made.txt")] }),
    )
    .await;
    assert!(kinds(&chunks(&asked)).contains(&"tool-approval-request"), "{asked}");
    let second = json!({ "id": "c", "messages": [user_message("u2", "time in Paris")] });
    let waiting = chat(&server, second.clone());
    let stop = async {
        watch_until(&server, "c", |it| !it.queue.messages.is_empty()).await;
        server.post("/api/sessions/c/cancel", json!({})).await
    };
    let ((_, held), _) = tokio::join!(waiting, stop);
    let (_, again) = chat(&server, second.clone()).await;
    for response in [held, again] {
        let response = chunks(&response);
        assert_eq!(kinds(&response), ["error"]);
        assert!(
            response[0]["errorText"].as_str().unwrap().contains("/api/sessions/c/queue/release")
        );
    }
    server.post("/api/sessions/c/queue/release", json!({})).await;
    let (_, response) = chat(&server, second).await;
    assert_eq!(kinds(&chunks(&response)).last(), Some(&"finish"), "{response}");
}

/// Holds for a message that was queued and for one that was edited.
#[tokio::test]
async fn user_messages_are_returned_as_sent() {
    let home = Home::instant();
    let server = home.start();
    let text = |it: &str| json!({ "type": "text", "text": it });
    let link =
        json!({ "type": "file", "mediaType": "image/png", "url": "https://example.com/dot" });
    let data = json!({ "type": "data-place", "data": { "x": 1 } });
    let message = |id: &str| {
        let parts = [text("run echo hi > made.txt"), link.clone(), data.clone(), text("please")];
        let metadata = json!({ "mood": "good" });
        json!({ "id": id, "role": "user", "metadata": metadata, "parts": parts })
    };
    let (_, asked) = chat(&server, json!({ "id": "c", "messages": [message("u1")] })).await;
    let asked = chunks(&asked);
    let request = asked.iter().find(|it| it["type"] == "tool-approval-request").unwrap();
    let waits = chat(&server, json!({ "id": "c", "messages": [message("u2")] }));
    let change = async {
        let view = watch_until(&server, "c", |it| !it.queue.messages.is_empty()).await;
        let path = format!("/api/sessions/c/queue/{}", view.queue.messages[0].id);
        server.request(Method::PATCH, &path, Some(json!({ "text": "hello" }))).await;
        let call = request["toolCallId"].as_str().unwrap();
        let path = format!("/api/sessions/c/calls/{call}/approval");
        server.post(&path, json!({ "decision": "accepted" })).await;
    };
    tokio::join!(waits, change);
    let kept = server.get("/api/sessions/c/messages?format=ui").await;
    let [first, second] = [&kept["messages"][0], &kept["messages"][2]];
    assert_eq!(first["parts"], message("u1")["parts"]);
    assert_eq!(second["parts"], json!([text("hello"), link, data]), "it was written anew");
    for message in [first, second] {
        assert_eq!(message["metadata"]["mood"], "good");
        assert!(message["metadata"]["createdAt"].is_string());
    }
}

#[tokio::test]
async fn a_queued_message_streams_keep_alive_comments() {
    let home = Home::instant();
    let server = home.start();
    let body = |id: &str, text: &str| json!({ "id": "c", "messages": [user_message(id, text)] });
    chat(&server, body("u1", "run echo hi > made.txt")).await;
    let mut waits = server.open_post("/api/chat/demo", body("u2", "hello")).await;
    let first = waits.chunk().await.unwrap().unwrap();
    assert_eq!(std::str::from_utf8(&first).unwrap(), ": still there\n\n");
    let view = watch_until(&server, "c", |it| !it.queue.messages.is_empty()).await;
    let call = view.summary.open_approvals.iter().next().unwrap();
    let path = format!("/api/sessions/c/calls/{call}/approval");
    server.post(&path, json!({ "decision": "rejected" })).await;
    let rest = waits.text().await.unwrap();
    assert_eq!(kinds(&chunks(&json!(rest))).last(), Some(&"finish"), "{rest}");
}

/// Clients of AI SDK 4 send no message ids by default.
#[tokio::test]
async fn a_repeated_message_without_an_id_is_answered_again() {
    let home = Home::instant();
    let server = home.start();
    let user = |text: &str| json!({ "role": "user", "content": text });
    let answer = json!({ "role": "assistant", "content": "Yes?" });
    let post = async |messages: Value| {
        let body = json!({ "id": "c", "messages": messages });
        let (status, response) = server.post("/api/chat/v4/demo", body).await;
        assert_eq!(status, StatusCode::OK, "{response}");
        let log = log::kinds(&server.log("c").await);
        let count = |kind: &str| log.iter().filter(|it| *it == kind).count();
        (count("user_message"), count("history_rewound"))
    };
    assert_eq!(post(json!([user("hello")])).await, (1, 0));
    assert_eq!(post(json!([user("hello")])).await, (1, 1), "reload()");
    assert_eq!(post(json!([user("hello"), answer, user("hello")])).await, (2, 1), "said again");
    assert_eq!(post(json!([user("hello"), answer, user("hello")])).await, (2, 2));
    assert_eq!(post(json!([user("hello"), answer, user("think")])).await, (3, 2), "other words");
    let without_answers = json!([user("hello"), user("hello"), user("think")]);
    assert_eq!(post(without_answers).await, (4, 2), "brings another conversation");
    assert_eq!(post(json!([user("think")])).await, (5, 2), "brings none");
}

#[tokio::test]
async fn the_same_text_with_another_file_is_a_new_message() {
    let home = Home::instant();
    let server = home.start();
    let count = async |session: &str, kind: &str| {
        let log = log::kinds(&server.log(session).await);
        log.iter().filter(|it| *it == kind).count()
    };
    let files = ["data:text/plain;base64,YQ==", "data:text/plain;base64,Yg=="];
    let links = ["https://example.com/a", "https://example.com/b"];
    for (session, [one, other]) in [("files", files), ("links", links)] {
        let post = async |url: &str| post_file(&server, session, url).await;
        post(one).await;
        post(one).await;
        assert_eq!(count(session, "history_rewound").await, 1, "reload()");
        assert_eq!(count(session, "user_message").await, 1);
        post(other).await;
        assert_eq!(count(session, "user_message").await, 2);
    }
}

#[tokio::test]
async fn editing_a_message_on_the_page_keeps_its_links() {
    let home = Home::instant();
    let server = home.start();
    let link = json!({ "type": "file", "mediaType": "image/png", "url": "https://example.com/" });
    let text = |it: &str| json!({ "type": "text", "text": it });
    let message = json!({ "id": "u1", "role": "user", "parts": [text("hello"), link] });
    chat(&server, json!({ "id": "c", "messages": [message] })).await;
    let user_message = async || {
        let log = server.log("c").await;
        let records = log.iter().map(|it| serde_json::to_value(it).unwrap());
        records.filter(|it| it["type"] == "user_message").collect::<Vec<Value>>()
    };
    let message_id = user_message().await[0]["messageId"].clone();
    let mut page = Watcher::connect(&server).await;
    let edit = json!({ "type": "edit_message", "sessionId": "c", "messageId": message_id, "text": "think" });
    page.send(edit).await;
    page.until("ack").await;
    let user_message = user_message().await;
    assert_eq!(user_message.len(), 2);
    assert_eq!(user_message[1]["sent"], json!({ "parts": [link, text("think")] }));
}

async fn post_file(server: &Server, session: &str, url: &str) {
    let file = json!({ "name": "a.txt", "contentType": "text/plain", "url": url });
    let user_message =
        json!({ "role": "user", "content": "hello", "experimental_attachments": [file] });
    let body = json!({ "id": session, "messages": [user_message] });
    let (status, response) = server.post("/api/chat/v4/demo", body).await;
    assert_eq!(status, StatusCode::OK, "{response}");
}

#[tokio::test]
async fn authentication_errors_are_plain_text() {
    let home = Home::instant();
    let server = home.start();
    let address = |path: &str| format!("{}{path}", server.base);
    for path in ["/api/chat", "/api/chat/v4", "/api/chat/c/stream", "/api/agui/demo", "/api/agui"] {
        let refused = tools::http_client().post(address(path)).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(refused.headers()["content-type"], "text/plain; charset=utf-8", "{path}");
        let why = refused.text().await.unwrap();
        assert!(!why.is_empty() && !why.starts_with('{'), "{why}");
    }
    let other = tools::http_client().post(address("/api/chats")).send().await.unwrap();
    assert_eq!(other.headers()["content-type"], "application/json");
}

/// Checks that the folded stream, completed from the history as readers do, equals the history.
#[tokio::test]
async fn contract_events_add_up_to_the_contract_messages() {
    let home = Home::instant();
    let server = home.start();
    for text in ["time in Paris and Tokyo", "break", "run echo hi > made.txt"] {
        let session = server.create_session().await;
        server.send(&session, text).await;
        if text.starts_with("run") {
            watch_until(&server, &session, |it| !it.summary.open_approvals.is_empty()).await;
            server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await;
        }
        watch_until(&server, &session, is_quiet).await;
        let events = contract_events(&server, &session, 0).await;
        let events: Vec<Value> = events.into_iter().map(|(_, it)| it).collect();
        let path = format!("/api/sessions/{session}/messages?format=contract");
        let kept = server.get(&path).await;
        check_contract(&events, kept["messages"].as_array().unwrap());
    }
}

fn check_contract(events: &[Value], kept: &[Value]) {
    let of = |kind: &'static str| events.iter().filter(move |it| it["type"] == kind);
    let response: Vec<Value> =
        of("agent.step.completed").map(|it| it["payload"]["content"].clone()).collect();
    let role = |it: &&Value, role: &str| it["role"] == role;
    let steps = kept.iter().filter(|it| role(it, "assistant")).map(|it| it["content"].clone());
    // An interrupted step has no `completed` event; its text is only in the history.
    let steps: Vec<Value> = steps.collect();
    assert_eq!(steps[..response.len()], response, "{kept:?}");
    let started = of("agent.tool.started").map(|it| it["payload"]["tool_call_id"].clone());
    let started: std::collections::BTreeSet<String> =
        started.map(|it| format!("tool_{}", it.as_str().unwrap())).collect();
    let tools: Vec<&Value> = kept.iter().filter(|it| role(it, "tool")).collect();
    let ids: std::collections::BTreeSet<String> =
        tools.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(started, ids);
    for ended in of("agent.tool.completed").map(|it| &it["payload"]) {
        let id = format!("tool_{}", ended["tool_call_id"].as_str().unwrap());
        let tool = tools.iter().find(|it| it["id"] == id).unwrap();
        for field in ["tool_result", "tool_error"] {
            assert_eq!(tool["metadata"][field], ended[field], "{tool}");
        }
    }
    assert_eq!(of("agent.tool.completed").count(), tools.len(), "every call has its end");
    let status = of("agent.status").next_back().unwrap()["payload"]["status"].clone();
    let marks = kept.iter().filter(|it| role(it, "status")).count();
    assert_eq!(marks > 0, status != "completed", "{kept:?}");
}
