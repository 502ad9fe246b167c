//! Agents as models: what becomes of a request's messages. OpenAI's own clients are tried in
//! `e2e/openai.test.mjs`.

use reqwest::StatusCode;
use serde_json::{Value, json};
use transcript::{Event, Record};

use crate::program::{Home, Server};

fn message(role: &str, content: &str) -> Value {
    json!({ "role": role, "content": content })
}

/// The log of the one session there is after such a request.
async fn log_of(server: &Server, messages: Value) -> Vec<Record> {
    let body = json!({ "model": "demo", "messages": messages });
    let (status, answer) = server.post("/v1/chat/completions", body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let listed = server.get("/api/sessions").await;
    let [session] = listed["sessions"].as_array().unwrap().as_slice() else {
        panic!("one session: {listed}")
    };
    assert_eq!(session["archived"], true);
    assert_eq!(server.get("/api/sessions?archived=false").await["sessions"], json!([]));
    server.log(session["id"].as_str().unwrap()).await
}

#[tokio::test]
async fn whatever_comes_before_it_the_last_message_has_one_answer() {
    let (system, hello) = (message("system", "Be brief."), message("user", "hello"));
    let answer = message("assistant", "Yes?");
    let call =
        json!({ "id": "c", "type": "function", "function": { "name": "a", "arguments": "{}" } });
    let calling = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let result = json!({ "role": "tool", "tool_call_id": "c", "content": "x" });
    let cases = [
        (json!([hello]), 1),
        (json!([system, hello]), 1),
        (json!([hello, hello]), 1),
        (json!([hello, system, hello]), 1),
        (json!([system, hello, answer, hello]), 2),
        (json!([system, answer, system, hello, system, hello]), 2),
        (json!([hello, calling, result]), 2),
        (json!([hello, calling, result, answer, hello]), 2),
        (json!([calling, result, hello]), 2),
    ];
    for (messages, n_runs) in cases {
        let home = Home::instant();
        let server = home.start();
        let log = log_of(&server, messages.clone()).await;
        let runs = log.iter().filter(|it| matches!(it.event, Event::RunStart { .. }));
        assert_eq!(runs.count(), n_runs, "{messages}");
    }
}
