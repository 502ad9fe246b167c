//! A model behind an API: its answers, its tools, its failures, and cancelling at any moment.

use futures_util::StreamExt;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::{CallState, Event, Message, RunMessage, RunStatus, Seq};

use crate::support::log::{check_log, kinds};
use crate::support::model::{Asked, Model};
use crate::support::program::{Home, Server, TOKEN};
use crate::support::watcher::{Watcher, is_quiet, watch_until};

/// Starts a server with one agent that uses this model.
pub(crate) fn start(model: &Model, more: &str) -> (Home, Server) {
    let base_url = &model.base_url;
    let home = Home::new(&format!(
        "demo = false\n[[agents]]\nid = \"m\"\nkind = \"openai\"\nbase_url = \"{base_url}\"\n\
         model = \"small\"\napi_key_env = \"MODEL_KEY\"\nsystem = \"Be brief.\"\n{more}"
    ));
    let mut command = home.command();
    command.env("MODEL_KEY", "key-of-the-tests").env("TEAM", "ours");
    let server = Server::start(command);
    (home, server)
}

pub(crate) async fn create_session(server: &Server) -> String {
    let (status, session) = server.post("/api/sessions", json!({})).await;
    assert_eq!(status, StatusCode::CREATED, "{session}");
    session["id"].as_str().unwrap().to_owned()
}

/// Waits until nothing runs and returns the last answer.
pub(crate) async fn last_answer(server: &Server, session: &str) -> RunMessage {
    let transcript = watch_until(server, session, is_quiet).await;
    check_log(&server.log(session).await, |_| false);
    transcript.messages.last().and_then(Message::run).unwrap().clone()
}

fn error(answer: &RunMessage) -> (&str, &str) {
    let error = answer.finish.as_ref().unwrap().error.as_ref().unwrap();
    (error.code.as_str(), &error.message)
}

#[track_caller]
fn check_strict(asked: &Asked) {
    assert_eq!(testkit::strict::check(asked.messages()), Ok(()), "{:#}", asked.body);
}

#[tokio::test]
async fn a_conversation_with_a_tool_call() {
    let mut model = Model::start().await;
    let (_home, server) = start(
        &model,
        "temperature = 0.5\nheaders = { x-team = \"env:TEAM\" }\ntools = [\"read_file\"]",
    );
    let session = create_session(&server).await;
    server.send(&session, "what is in a.txt?").await;

    let asked = model.asked().await;
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.headers["authorization"], "Bearer key-of-the-tests");
    assert_eq!(asked.headers["x-team"], "ours");
    assert_eq!((&asked.body["model"], &asked.body["temperature"]), (&json!("small"), &json!(0.5)));
    assert_eq!(asked.body["tools"].as_array().unwrap().len(), 1);
    check_strict(&asked);
    asked.call("read_file", &json!({ "path": "a.txt" })).await;

    let asked = model.asked().await;
    check_strict(&asked);
    let result = asked.messages().last().unwrap();
    assert_eq!((&result["role"], &result["tool_call_id"]), (&json!("tool"), &json!("call_1")));
    assert!(result["content"].as_str().unwrap().contains("alpha"), "{result}");
    asked.answer("Alpha and beta.").await;

    let answer = last_answer(&server, &session).await;
    assert_eq!(answer.content(), "Alpha and beta.");
    assert_eq!(answer.model.as_deref(), Some("small"));
    assert_eq!(answer.usage().unwrap().total_tokens, 20);
    assert_eq!(answer.calls().next().unwrap().state, CallState::Succeeded);
    let mut arguments_so_far = String::new();
    for record in server.log(&session).await {
        match record.event {
            Event::ToolCallStart { arguments, .. } => {
                arguments_so_far += &arguments.unwrap_or_default()
            }
            Event::ToolArgumentsDelta { delta, .. } => arguments_so_far += &delta,
            Event::ToolArgumentsDone { arguments, .. } => {
                assert_eq!(arguments_so_far, arguments, "once")
            }
            _ => (),
        }
    }
    assert_eq!(arguments_so_far, r#"{"path":"a.txt"}"#);
    assert_eq!(answer.continuation().unwrap().stop_reason, "completed");

    server.send(&session, "thanks").await;
    let asked = model.asked().await;
    check_strict(&asked);
    let roles: Vec<&str> = asked.messages().iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);
    asked.answer("Gladly.").await;
    last_answer(&server, &session).await;
}

/// The deltas of the answer that is stopped, each with the record that shows that it was received.
fn script() -> Vec<(Value, &'static str)> {
    let call = |index: u32, id: &str, name: &str, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "tool_calls": [{ "index": index, "id": id, "function": function }] })
    };
    vec![
        (json!({ "reasoning": "hm" }), "thinking_delta"),
        (json!({ "content": "Let me " }), "text_delta"),
        (json!({ "content": "look." }), "text_delta"),
        (call(0, "c0", "read_file", "{\"path\""), "tool_arguments_delta"),
        (call(0, "", "", ":\"a.txt\"}"), "tool_arguments_delta"),
        (call(1, "c1", "time", "{}"), "tool_arguments_delta"),
        (json!({ "content": "And" }), "text_delta"),
    ]
}

/// Plays the conversation up to its `n`th piece and stops it there.
async fn stop_at(n: usize) {
    let mut model = Model::start().await;
    let (_home, server) = start(&model, "");
    let session = create_session(&server).await;
    let mut watcher = Watcher::connect(&server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    server.send(&session, "look around").await;

    let open = play(&mut model, &mut watcher, n).await;
    watcher.send(json!({ "type": "cancel_output", "sessionId": session })).await;
    if let Some(asked) = open {
        asked.closed().await;
    }
    let answer = last_answer(&server, &session).await;
    assert_eq!(answer.finish.unwrap().status, RunStatus::Cancelled, "stopped at {n}");

    server.send(&session, "go on").await;
    let mut asked = model.asked().await;
    // The tools may have finished before the stop. The resulting request is never answered.
    while !asked.messages().last().unwrap()["content"].as_str().unwrap().contains("go on") {
        asked.closed().await;
        asked = model.asked().await;
    }
    check_strict(&asked);
    asked.answer("Fine.").await;
    assert_eq!(last_answer(&server, &session).await.content(), "Fine.");
    assert!(model.took_no_request(), "nothing is asked after the stop");
}

/// Plays `n` pieces and returns the request that is still open.
async fn play(model: &mut Model, watcher: &mut Watcher, n: usize) -> Option<Asked> {
    let script = script();
    let mut pieces = n;
    let mut is_next = || pieces.checked_sub(1).map(|left| pieces = left).is_some();
    let mut asked = model.asked().await;
    if !is_next() {
        return Some(asked);
    }
    asked.begin().await;
    for (delta, event) in script {
        if !is_next() {
            return Some(asked);
        }
        asked.send_delta(delta).await;
        watcher.until(event).await;
    }
    if !is_next() {
        return Some(asked);
    }
    asked.finish("tool_calls").await;
    watcher.until("tool_running").await;
    if !is_next() {
        return None;
    }
    let mut asked = model.asked().await;
    check_strict(&asked);
    for text in ["It ", "says"] {
        if !is_next() {
            return Some(asked);
        }
        if text == "It " {
            asked.begin().await;
        }
        asked.send_delta(json!({ "content": text })).await;
        watcher.until("text_delta").await;
    }
    Some(asked)
}

#[tokio::test]
async fn a_run_can_be_stopped_at_every_piece() {
    // Stops before the response, after its head, after each piece, and so on to the end.
    let moments = 0..script().len() + 6;
    futures_util::stream::iter(moments.map(stop_at)).buffer_unordered(4).collect::<()>().await;
}

#[tokio::test]
async fn a_busy_service_is_retried() {
    let mut model = Model::start().await;
    let (_home, server) = start(&model, "");
    let session = create_session(&server).await;
    server.send(&session, "hello").await;
    let first = model.asked().await;
    let body = first.body.clone();
    first.refuse("429 Too Many Requests", "retry-after: 0\r\n", "{\"error\":\"slow down\"}").await;
    // The second response has no body.
    let second = model.asked().await;
    second.refuse("503 Service Unavailable", "retry-after: 0\r\n", "").await;
    let third = model.asked().await;
    assert_eq!(third.body, body);
    third.answer("Hello.").await;
    let answer = last_answer(&server, &session).await;
    assert_eq!(answer.content(), "Hello.");
    let kinds = kinds(&server.log(&session).await);
    assert_eq!(kinds.iter().filter(|it| *it == "notice").count(), 2);
    assert_eq!(kinds.iter().filter(|it| *it == "step_start").count(), 1);
}

#[tokio::test]
async fn failures_are_reported() {
    let mut model = Model::start().await;
    let (_home, server) = start(&model, "retries = 0");
    let session = create_session(&server).await;

    server.send(&session, "one").await;
    let body = r#"{"error":{"message":"Invalid API Key","type":"authentication_error"}}"#;
    model.asked().await.refuse("401 Unauthorized", "", body).await;
    let answer = last_answer(&server, &session).await;
    let (code, message) = error(&answer);
    assert_eq!(code, "upstream_auth");
    assert!(message.contains("MODEL_KEY") && !message.contains("key-of-the-tests"), "{message}");

    server.send(&session, "two").await;
    let mut asked = model.asked().await;
    check_strict(&asked);
    asked.begin().await;
    asked.send_delta(json!({ "content": "half a" })).await;
    drop(asked);
    let answer = last_answer(&server, &session).await;
    assert_eq!((error(&answer).0, answer.content().as_str()), ("upstream_error", "half a"));

    server.send(&session, "three").await;
    let mut asked = model.asked().await;
    assert!(
        asked.messages()[1]["content"].as_str().unwrap().contains("one"),
        "it was never answered"
    );
    check_strict(&asked);
    asked.begin().await;
    asked.event(json!({ "error": { "message": "out of memory" } })).await;
    asked.closed().await;
    let answer = last_answer(&server, &session).await;
    assert!(error(&answer).1.contains("out of memory"));
}

#[tokio::test]
async fn an_unreachable_service_is_reported() {
    let mut model = Model::start().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    model.base_url = format!("http://{}/v1", taken.local_addr().unwrap());
    drop(taken);
    let (_home, server) = start(&model, "retries = 0");
    let session = create_session(&server).await;
    server.send(&session, "hello").await;
    let answer = last_answer(&server, &session).await;
    assert_eq!(error(&answer).0, "upstream_error");
    assert!(error(&answer).1.contains("cannot be reached"), "{:?}", error(&answer));
}

#[tokio::test]
async fn a_key_does_not_follow_redirects() {
    let mut model = Model::start().await;
    let mut other = Model::start().await;
    let (_home, server) = start(&model, "");
    let session = create_session(&server).await;
    server.send(&session, "hello").await;
    let location = format!("location: {}/chat/completions\r\n", other.base_url);
    model.asked().await.refuse("307 Temporary Redirect", &location, "").await;
    let answer = last_answer(&server, &session).await;
    assert!(error(&answer).1.contains("base_url"), "{:?}", error(&answer));
    assert!(other.took_no_request());
}

#[tokio::test]
async fn a_run_stopped_by_a_limit_can_be_continued() {
    let mut model = Model::start().await;
    let (_home, server) = start(&model, "max_steps = 1");
    let session = create_session(&server).await;
    server.send(&session, "what is in a.txt?").await;
    model.asked().await.call("read_file", &json!({ "path": "a.txt" })).await;
    let answer = last_answer(&server, &session).await;
    assert_eq!(answer.finish.as_ref().unwrap().status, RunStatus::Completed);
    let continuation = answer.continuation().unwrap();
    assert_eq!((continuation.should_continue, &*continuation.stop_reason), (false, "steps_limit"));
    assert!(model.took_no_request());

    let (status, _) = server.post(&format!("/api/sessions/{session}/continue"), json!({})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let asked = model.asked().await;
    check_strict(&asked);
    assert!(asked.messages().last().unwrap()["content"].as_str().unwrap().contains("alpha"));
    asked.answer("Alpha.").await;
    assert_eq!(last_answer(&server, &session).await.content(), "Alpha.");
}

#[tokio::test]
async fn an_agent_without_its_key_is_listed_with_the_problem() {
    let home = Home::new(
        "[[agents]]\nid = \"far\"\nkind = \"openai\"\nbase_url = \"https://127.0.0.1:1/v1\"\n\
         model = \"large\"\napi_key_env = \"CALLBOARD_TEST_NO_SUCH_KEY\"\n",
    );
    let server = home.start();
    let agents = server.get("/api/agents").await;
    assert_eq!(agents["agents"][0]["id"], "far");
    assert!(agents["agents"][0]["problem"].as_str().unwrap().contains("NO_SUCH_KEY"));
    assert!(agents["agents"][1].get("problem").is_none());
    let (_, session) = server.post("/api/sessions", json!({})).await;
    assert_eq!(session["agent"], "demo", "the first that can work");
    let (_, session) = server.post("/api/sessions", json!({ "agent": "far" })).await;
    let session = session["id"].as_str().unwrap();
    server.send(session, "hello").await;
    let answer = last_answer(&server, session).await;
    assert_eq!(error(&answer).0, "upstream_auth");
    let (ok, output, _) = crate::support::program::output(home.command().arg("doctor"));
    assert!(!ok && output.contains("NO_SUCH_KEY"), "{output}");
}

/// The port does not support TLS, so the handshake shows that encryption is used.
#[tokio::test]
async fn https_uses_tls() {
    let mut model = Model::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    model.base_url = format!("https://{}/v1", listener.local_addr().unwrap());
    let (_home, server) = start(&model, "retries = 0");
    let session = create_session(&server).await;
    server.send(&session, "hello").await;
    let (mut connection, _) = listener.accept().await.unwrap();
    let mut first = [0; 2];
    tokio::io::AsyncReadExt::read_exact(&mut connection, &mut first).await.unwrap();
    assert_eq!(first, [22, 3], "a TLS handshake begins");
    drop(connection);
    assert_eq!(error(&last_answer(&server, &session).await).0, "upstream_error");
}

#[tokio::test]
async fn attachments_are_sent_to_the_model() {
    let mut model = Model::start().await;
    let (_home, server) = start(&model, "");
    let session = create_session(&server).await;
    let picture = [137, 80, 78, 71];
    let put = tools::http_client().post(format!("{}/api/blobs", server.base)).bearer_auth(TOKEN);
    let blob: Value = put.body(picture.to_vec()).send().await.unwrap().json().await.unwrap();
    let attachment = json!({
        "blob": blob["blob"], "name": "p.png", "mediaType": "image/png", "size": picture.len(),
    });
    let message = json!({ "text": "what is this?", "attachments": [attachment] });
    let path = format!("/api/sessions/{session}/messages");
    let (status, answer) = server.request(Method::POST, &path, Some(message)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let asked = model.asked().await;
    check_strict(&asked);
    let url = &asked.messages()[1]["content"][1]["image_url"]["url"];
    assert_eq!(url, "data:image/png;base64,iVBORw==");
    asked.answer("A picture.").await;
    last_answer(&server, &session).await;
}

/// Backpressure slows a fast model down, and no text is lost.
#[tokio::test]
async fn a_fast_model_loses_no_text() {
    let mut model = Model::start().await;
    let (_home, server) = start(&model, "");
    let session = create_session(&server).await;
    server.send(&session, "tell me everything").await;
    let mut asked = model.asked().await;
    asked.begin().await;
    let word = "word ".repeat(200);
    for _ in 0..2000 {
        asked.send_delta(json!({ "content": word })).await;
    }
    asked.finish("stop").await;
    assert_eq!(last_answer(&server, &session).await.content(), word.repeat(2000));
}
