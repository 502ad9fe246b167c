//! Front ends of others: what they are told, whenever they come, and what they may not do. The clients
//! themselves are tried in `e2e/chat*.test.mjs`.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::log;
use crate::program::{Home, Server};
use crate::stand_in::{playing, session};
use crate::watcher::{is_quiet, watch_until};

fn said(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] })
}

/// The chunks of a response.
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

/// What a reader is told who has everything up to that record, until it is told that the run ended.
async fn contract_events(server: &Server, session: &str, after: u64) -> Vec<(u64, Value)> {
    let path = format!("/api/sessions/{session}/contract-events?after={after}");
    let mut response = server.open(&path).await;
    let mut text = String::new();
    let is_end = |it: &(u64, Value)| it.1["payload"]["status"] == "completed";
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
    Some((field("id: ")?.parse().ok()?, serde_json::from_str(field("data: ")?).ok()?))
}

#[tokio::test]
async fn a_message_that_is_sent_twice_is_answered_once_and_told_twice() {
    let home = Home::instant();
    let server = home.start();
    let body = json!({ "id": "c", "messages": [said("u1", "time in Paris")] });
    let (_, first) = chat(&server, body.clone()).await;
    let (_, again) = chat(&server, body).await;
    let (first, again) = (chunks(&first), chunks(&again));
    assert_eq!(first[0]["messageId"], again[0]["messageId"]);
    assert_eq!(first.last(), again.last());
    let log = log::kinds(&server.log("c").await);
    assert_eq!(log.iter().filter(|it| *it == "run_start").count(), 1);
}

#[tokio::test]
async fn a_decision_that_somebody_else_made_is_no_reason_to_hear_nothing() {
    let home = Home::instant();
    let server = home.start();
    let body = json!({ "id": "c", "messages": [said("u1", "run echo hi > made.txt")] });
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
async fn what_a_client_has_not_run_it_cannot_give_the_result_of() {
    let home = Home::instant();
    let server = home.start();
    let body = json!({ "id": "c", "messages": [said("u1", "use the client tool pick")] });
    let (_, told) = chat(&server, body).await;
    let told = chunks(&told);
    let error = told.iter().find(|it| it["type"] == "tool-output-error").unwrap();
    let call = error["toolCallId"].as_str().unwrap();
    let path = format!("/api/sessions/c/calls/{call}/result");
    let (status, body) = server.post(&path, json!({ "output": 1 })).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{body}");
}

#[tokio::test]
async fn a_program_cannot_go_back() {
    let home = playing("while :; do hear_user; text Hello; result; done", "");
    let server = home.start();
    let id = session(&server).await;
    let first = json!({ "id": id, "messages": [said("u1", "hello")] });
    let (_, told) = server.post("/api/chat", first).await;
    assert_eq!(kinds(&chunks(&told)).last(), Some(&"finish"), "{told}");
    for body in [
        json!({ "id": id, "trigger": "regenerate-message", "messages": [said("u1", "hello")] }),
        json!({ "id": id, "messageId": "u1", "messages": [said("u1", "other words")] }),
    ] {
        let (status, why) = server.post("/api/chat", body).await;
        assert_eq!(status, StatusCode::CONFLICT, "{why}");
        assert!(why.as_str().unwrap().contains("cannot go back"), "{why}");
    }
}

#[tokio::test]
async fn contract_events_go_on_after_any_of_them() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "time in Paris and Tokyo").await;
    watch_until(&server, &session, is_quiet).await;
    let all = contract_events(&server, &session, 0).await;
    assert!(all.len() > 5, "{all:?}");
    for n in 1..all.len() {
        let (after, _) = all[n - 1];
        let rest: Vec<_> = all.iter().filter(|(seq, _)| *seq > after).cloned().collect();
        if rest.is_empty() {
            break;
        }
        assert_eq!(contract_events(&server, &session, after).await, rest, "after {after}");
    }
    let (status, _) =
        server.request(Method::GET, "/api/sessions/nobody/contract-events", None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
