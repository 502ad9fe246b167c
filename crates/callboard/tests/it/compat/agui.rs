//! AG-UI over HTTP, checked with the strictest known client. The client libraries themselves are
//! tested in `e2e/agui*.test.mjs`.

use ::formats::agui::testing::Client;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::log;
use crate::support::program::{Home, Server};
use crate::support::stand_in::{playing, session};
use crate::support::watcher::{is_quiet, watch_until};

fn user_message(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "content": text })
}

/// Runs the thread once. Checks that the client accepts the stream and then has the stored
/// messages.
async fn run(server: &Server, client: &mut Client, thread: &str, more: Value) -> Vec<Value> {
    let mut body = json!({ "threadId": thread, "runId": "run", "messages": client.messages });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, response) = server.post("/api/agui", body).await;
    let response = response.as_str().unwrap();
    assert_eq!(status, StatusCode::OK, "{response}");
    client.receive(response);
    let kept = server.get(&format!("/api/sessions/{thread}/messages?format=agui")).await;
    assert_eq!(Value::from(client.messages.clone()), kept["messages"]);
    let frames = response.split("\n\n").filter_map(|it| it.strip_prefix("data: "));
    frames.map(|it| serde_json::from_str(it).unwrap()).collect()
}

async fn send(server: &Server, client: &mut Client, thread: &str, text: &str) -> Vec<Value> {
    let id = format!("u{}", client.messages.len());
    client.messages.push(user_message(&id, text));
    run(server, client, thread, json!({})).await
}

#[tokio::test]
async fn program_agents_answer_over_agui() {
    let home = playing("while :; do hear_user; text Hello; result; done", "");
    let server = home.start();
    let thread = session(&server).await;
    let mut client = Client::default();
    for _ in 0..2 {
        send(&server, &mut client, &thread, "hello").await;
    }
    assert_eq!(client.messages.len(), 4);
}

#[tokio::test]
async fn a_repeated_request_replays_the_run() {
    let home = Home::instant();
    let server = home.start();
    let mut client = Client::default();
    let first = send(&server, &mut client, "t", "time in Paris").await;
    let mut other = Client::with(vec![user_message("u0", "time in Paris")]);
    assert_eq!(run(&server, &mut other, "t", json!({})).await, first);
    let kinds = log::kinds(&server.log("t").await);
    assert_eq!(kinds.iter().filter(|it| *it == "run_start").count(), 1);
}

#[tokio::test]
async fn a_late_decision_still_gets_the_outcome() {
    let home = Home::instant();
    let server = home.start();
    let mut client = Client::default();
    let asked = send(&server, &mut client, "t", "run echo hi > made.txt").await;
    let interrupt = asked.last().unwrap()["outcome"]["interrupts"][0].clone();
    let call = interrupt["toolCallId"].as_str().unwrap();
    let path = format!("/api/sessions/t/calls/{call}/approval");
    server.post(&path, json!({ "decision": "accepted" })).await;
    watch_until(&server, "t", is_quiet).await;
    let decision = json!({ "interruptId": interrupt["id"], "status": "cancelled" });
    let response = run(&server, &mut client, "t", json!({ "resume": [decision] })).await;
    assert_eq!(response[1]["type"], "TOOL_CALL_RESULT");
    assert!(
        !response[1]["content"].as_str().unwrap().contains("error"),
        "the first decision counts"
    );
}
