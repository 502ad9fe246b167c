//! The OpenAI-compatible API, and how it treats the messages of a request. OpenAI's own clients are
//! tested in `e2e/openai.test.mjs`.

use reqwest::StatusCode;
use serde_json::{Value, json};
use transcript::{Event, Record};

use crate::support::program::{Home, Server};

fn message(role: &str, content: &str) -> Value {
    json!({ "role": role, "content": content })
}

/// Sends such a request and returns the log of the only session.
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
async fn the_last_message_is_answered_once_after_any_history() {
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

/// Lets the demo agent call a client tool, in a session without a name. Returns the messages up to
/// the result.
async fn called(server: &Server) -> Vec<Value> {
    let asked = message("user", "use the client tool pick");
    let calling = complete(server, std::slice::from_ref(&asked)).await;
    assert_eq!(calling["finish_reason"], "tool_calls");
    let calling = calling["message"].clone();
    let id = &calling["tool_calls"][0]["id"];
    let result = json!({ "role": "tool", "tool_call_id": id, "content": "teal" });
    vec![asked, calling, result]
}

async fn complete(server: &Server, messages: &[Value]) -> Value {
    let tools = json!([{ "type": "function", "function": { "name": "pick" } }]);
    let body = json!({ "model": "demo", "messages": messages, "tools": tools });
    let (status, answer) = server.post("/v1/chat/completions", body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer["choices"][0].clone()
}

/// Returns the final statuses of the runs of all sessions, oldest first. An open run has an empty
/// text.
async fn runs(server: &Server) -> Vec<Vec<String>> {
    let listed = server.get("/api/sessions").await;
    let mut sessions = Vec::new();
    for session in listed["sessions"].as_array().unwrap().iter().rev() {
        let id = session["id"].as_str().unwrap();
        let log = server.log(id).await;
        let mut runs = Vec::new();
        for record in &log {
            match &record.event {
                Event::RunStart { .. } => runs.push(String::new()),
                Event::RunFinish { status, .. } => {
                    *runs.last_mut().unwrap() = format!("{status:?}");
                }
                _ => (),
            }
        }
        sessions.push((log[0].at, runs));
    }
    sessions.sort();
    sessions.into_iter().map(|(_, runs)| runs).collect()
}

#[tokio::test]
async fn results_go_to_the_run_that_waits_for_them() {
    let home = Home::instant();
    let server = home.start();
    let messages = called(&server).await;
    assert_eq!(runs(&server).await, [[""]]);
    let answer = complete(&server, &messages).await;
    assert!(answer["message"]["content"].as_str().unwrap().contains("teal"), "{answer}");
    assert_eq!(runs(&server).await, [["Completed"]]);
    // The second time no run waits for the results.
    let again = complete(&server, &messages).await;
    assert!(again["message"]["content"].as_str().unwrap().contains("teal"), "{again}");
    assert_eq!(runs(&server).await[0], ["Completed"]);
    assert_eq!(runs(&server).await.len(), 2);
}

#[tokio::test]
async fn a_run_ends_if_its_conversation_continues_elsewhere() {
    let home = Home::instant();
    let server = home.start();
    let mut messages = called(&server).await;
    messages.push(message("user", "hello"));
    let answer = complete(&server, &messages).await;
    assert_eq!(answer["finish_reason"], "stop");
    let [first, second] = &runs(&server).await[..] else { panic!("two sessions") };
    assert_eq!(*first, ["Cancelled"]);
    assert_eq!(second.last().unwrap(), "Completed");
}

#[tokio::test]
async fn results_do_not_go_to_another_agents_run() {
    let home =
        Home::new("[demo]\npace = \"instant\"\n[[agents]]\nid = \"other\"\nkind = \"demo\"\n");
    let server = home.start();
    let messages = called(&server).await;
    let body = json!({ "model": "other", "messages": messages });
    let (status, answer) = server.post("/v1/chat/completions", body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(runs(&server).await[0], [""]);
}

/// The client repeats a request because it got no response.
#[tokio::test]
async fn a_retried_request_is_handled_once() {
    let home = Home::instant();
    let server = home.start();
    let send = async |text: &str, header: (&'static str, &str)| {
        let body = json!({ "model": "demo", "messages": [message("user", text)] });
        let headers = [("x-callboard-session", "trip"), header];
        let response = server.post_with("/v1/chat/completions", &headers, body).await;
        assert_eq!(response.status(), StatusCode::OK);
        response.text().await.unwrap()
    };
    let n_messages = async || {
        let is_user_message = |it: &Record| matches!(it.event, Event::UserMessage { .. });
        server.log("trip").await.iter().filter(|it| is_user_message(it)).count()
    };
    let (first, again) = (("x-stainless-retry-count", "0"), ("x-stainless-retry-count", "1"));
    let first_answer = send("hello", first).await;
    let second_answer = send("hello", again).await;
    let words = |it: &str| -> Value {
        serde_json::from_str::<Value>(it).unwrap()["choices"][0]["message"].clone()
    };
    assert_eq!(words(&first_answer), words(&second_answer));
    assert_eq!(n_messages().await, 1);
    send("hello", first).await;
    assert_eq!(n_messages().await, 2, "the same words may be said twice on purpose");
    send("time in Paris", again).await;
    assert_eq!(n_messages().await, 3, "the first attempt never arrived");
    send("think", ("idempotency-key", "k1")).await;
    send("think", ("idempotency-key", "k1")).await;
    assert_eq!(n_messages().await, 4);
    send("think", ("idempotency-key", "k2")).await;
    assert_eq!(n_messages().await, 5);
}
