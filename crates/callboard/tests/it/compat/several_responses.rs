//! Runs that need their client several times: each response has only the part that the client
//! lacks, in every protocol.

use ::formats::agui::testing::Client;
use expect_test::{Expect, expect};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::agents::model_agent::start;
use crate::support::model::Model;
use crate::support::program::Server;

/// One response of the model.
enum Step<'a> {
    Calls(&'a [(&'a str, Value)]),
    Says(&'a str),
}

async fn play(model: &mut Model, step: Step<'_>) {
    let mut asked = model.asked().await;
    let calls = match step {
        Step::Says(text) => return asked.answer(text).await,
        Step::Calls(calls) => calls,
    };
    asked.begin().await;
    for (idx, (name, arguments)) in calls.iter().enumerate() {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        let id = format!("call_{idx}");
        let call = json!({ "index": idx, "id": id, "type": "function", "function": function });
        asked.send_delta(json!({ "tool_calls": [call] })).await;
    }
    asked.finish("tool_calls").await;
}

fn run(command: &str) -> (&'static str, Value) {
    ("shell", json!({ "command": command }))
}

const ASKING: &str = "tools = [\"shell\"]";

fn data(response: &Value) -> Vec<Value> {
    let frames = response.as_str().unwrap_or_default().split("\n\n");
    let data = frames.filter_map(|it| it.strip_prefix("data: ")).filter(|it| *it != "[DONE]");
    data.map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// Returns the types of the chunks, with the numbers of their calls.
fn in_short(response: &Value) -> String {
    let of_call = |chunk: &Value| {
        let id = chunk["toolCallId"].as_str()?.rsplit_once('.')?.1.to_owned();
        Some(format!(":{id}"))
    };
    let words =
        data(response).into_iter().filter(|it| it["type"] != "tool-input-delta").map(|it| {
            let kind = it["type"].as_str().unwrap();
            format!("{kind}{}", of_call(&it).unwrap_or_default())
        });
    words.collect::<Vec<_>>().join(" ")
}

/// A chat of the AI SDK, whose last message is the stored answer.
struct Chat<'a> {
    server: &'a Server,
    tools: Value,
}

impl Chat<'_> {
    async fn post(&self, message: &Value) -> Value {
        self.post_all(&[message]).await
    }

    async fn post_all(&self, messages: &[&Value]) -> Value {
        let body = json!({ "id": "c", "messages": messages, "tools": self.tools });
        let (status, response) = self.server.post("/api/chat", body).await;
        assert_eq!(status, StatusCode::OK, "{response}");
        response
    }

    async fn send(&self, text: &str) -> Value {
        self.post(&user("u1", text)).await
    }

    async fn kept(&self) -> Vec<Value> {
        let kept = self.server.get("/api/sessions/c/messages?format=ui").await;
        kept["messages"].as_array().unwrap().clone()
    }

    async fn last(&self) -> Value {
        self.kept().await.last().unwrap().clone()
    }

    /// Returns the last message with these decisions about its open approvals.
    async fn decided(&self, answers: &[bool]) -> Value {
        let mut message = self.last().await;
        let parts = message["parts"].as_array_mut().unwrap();
        let asked = parts.iter_mut().filter(|it| it["state"] == "approval-requested");
        for (part, approved) in asked.zip(answers) {
            part["state"] = json!("approval-responded");
            part["approval"]["approved"] = json!(approved);
        }
        message
    }

    /// Returns the last message with results for its first `n_calls` calls.
    async fn ran(&self, n_calls: usize) -> Value {
        let mut message = self.last().await;
        let parts = message["parts"].as_array_mut().unwrap();
        for part in parts.iter_mut().filter(|it| it["state"] == "input-available").take(n_calls) {
            part["state"] = json!("output-available");
            part["output"] = json!("done");
        }
        message
    }
}

fn user(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] })
}

#[track_caller]
fn check(response: &[Value], expect: Expect) {
    let lines: Vec<String> = response.iter().map(in_short).collect();
    expect.assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn a_run_may_request_approval_twice() {
    let mut model = Model::start().await;
    let (_home, server) = start(&model, ASKING);
    let chat = Chat { server: &server, tools: Value::Null };
    let (a, b) = ([run("touch a")], [run("touch b")]);
    let (first, ()) = tokio::join!(chat.send("go"), play(&mut model, Step::Calls(&a)));
    let decided = chat.decided(&[true]).await;
    let (second, ()) = tokio::join!(chat.post(&decided), play(&mut model, Step::Calls(&b)));
    let decided = chat.decided(&[true]).await;
    let (third, ()) = tokio::join!(chat.post(&decided), play(&mut model, Step::Says("Done.")));
    // A repeated request gets the same response.
    let again = chat.post(&decided).await;
    assert_eq!(in_short(&again), in_short(&third));
    check(
        &[first, second, third],
        expect![[r#"
        start start-step tool-input-start:1 tool-input-available:1 tool-approval-request:1 finish-step finish
        start tool-output-available:1 start-step tool-input-start:2 tool-input-available:2 tool-approval-request:2 finish-step finish
        start tool-output-available:2 start-step text-start text-delta text-end finish-step finish"#]],
    );
}

#[tokio::test]
async fn several_decisions_arrive_in_one_request() {
    let mut model = Model::start().await;
    let (_home, server) = start(&model, ASKING);
    let chat = Chat { server: &server, tools: Value::Null };
    let both = [run("touch a"), run("touch b")];
    let (first, ()) = tokio::join!(chat.send("go"), play(&mut model, Step::Calls(&both)));
    let decided = chat.decided(&[false, true]).await;
    let (second, ()) = tokio::join!(chat.post(&decided), play(&mut model, Step::Says("Done.")));
    check(
        &[first, second],
        expect![[r#"
        start start-step tool-input-start:1 tool-input-start:2 tool-input-available:1 tool-input-available:2 tool-approval-request:1 tool-approval-request:2 finish-step finish
        start tool-output-denied:1 tool-output-available:2 start-step text-start text-delta text-end finish-step finish"#]],
    );
}

/// Clients that send nothing automatically keep decisions and results until the next message.
#[tokio::test]
async fn decisions_may_arrive_with_the_next_message() {
    let decided = |state: &str, field: &str, value: Value| {
        let state = state.to_owned();
        let field = field.to_owned();
        move |part: &mut Value| {
            part["state"] = json!(state);
            part[&field] = value.clone();
        }
    };
    let answered = |approved: bool| {
        decided("approval-responded", "approval", json!({ "id": "x", "approved": approved }))
    };
    let (shell, pick) = (run("touch a"), ("pick", json!({})));
    for (call, decide, outcome) in [
        (&shell, answered(true), "output-available"),
        (&shell, answered(false), "output-denied"),
        (&pick, decided("output-available", "output", json!("red")), "output-available"),
        (&pick, decided("output-error", "errorText", json!("none left")), "output-error"),
    ] {
        let mut model = Model::start().await;
        let (_home, server) = start(&model, ASKING);
        let chat = Chat { server: &server, tools: json!({ "pick": {} }) };
        let calls = [call.clone()];
        let (_, ()) = tokio::join!(chat.send("go"), play(&mut model, Step::Calls(&calls)));
        let mut answer = chat.last().await;
        decide(answer["parts"].as_array_mut().unwrap().last_mut().unwrap());
        let next = user("u2", "And now?");
        let messages = [&answer, &next];
        let (response, ()) = tokio::join!(chat.post_all(&messages), async {
            play(&mut model, Step::Says("Done.")).await;
            play(&mut model, Step::Says("Nothing.")).await;
        });
        let words: Vec<Value> = data(&response).iter().map(|it| it["delta"].clone()).collect();
        assert!(words.contains(&json!("Nothing.")), "the new message is answered: {response}");
        assert!(!words.contains(&json!("Done.")), "and only that: {response}");
        let kept = chat.kept().await;
        assert_eq!(kept.len(), 4);
        assert_eq!(kept[1]["parts"][1]["state"], outcome, "{}", kept[1]);
    }
}

/// The client gets more calls than may run in parallel.
#[tokio::test]
async fn a_client_may_send_its_results_in_parts() {
    let mut model = Model::start().await;
    let (_home, server) = start(&model, "parallel_tools = 2\ntools = []");
    let chat = Chat { server: &server, tools: json!({ "pick": {} }) };
    let calls: Vec<_> = (0..3).map(|_| ("pick", json!({}))).collect();
    let (first, ()) = tokio::join!(chat.send("go"), play(&mut model, Step::Calls(&calls)));
    let some = chat.ran(2).await;
    let second = chat.post(&some).await;
    let all = chat.ran(3).await;
    let (third, ()) = tokio::join!(chat.post(&all), play(&mut model, Step::Says("Done.")));
    let again = chat.post(&all).await;
    assert_eq!(in_short(&again), in_short(&third));
    check(
        &[first, second, third],
        expect![[r#"
        start start-step tool-input-start:1 tool-input-start:2 tool-input-start:3 tool-input-available:1 tool-input-available:2 tool-input-available:3 finish-step finish
        start finish
        start start-step text-start text-delta text-end finish-step finish"#]],
    );
}

#[tokio::test]
async fn the_openai_endpoint_sends_each_call_once() {
    let mut model = Model::start().await;
    let (_home, server) = start(&model, "tools = []");
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let tools = json!([tool("left"), tool("right")]);
    let mut messages = vec![json!({ "role": "user", "content": "go" })];
    let ask = async |messages: &[Value]| {
        let body = json!({ "model": "m", "messages": messages, "tools": tools });
        let (status, response) = server.post("/v1/chat/completions", body).await;
        assert_eq!(status, StatusCode::OK, "{response}");
        response["choices"][0]["message"].clone()
    };
    for name in ["left", "right"] {
        let calls = [(name, json!({}))];
        let (response, ()) = tokio::join!(ask(&messages), play(&mut model, Step::Calls(&calls)));
        let [call] = response["tool_calls"].as_array().unwrap().as_slice() else {
            panic!("{response}")
        };
        assert_eq!(call["function"]["name"], name);
        let result = json!({ "role": "tool", "tool_call_id": call["id"], "content": "gone" });
        messages.extend([response, result]);
    }
    let (response, ()) = tokio::join!(ask(&messages), play(&mut model, Step::Says("Done.")));
    assert_eq!(response, json!({ "role": "assistant", "content": "Done." }));
}

/// Makes one run over AG-UI and returns the types of its events.
async fn run_agui(server: &Server, client: &mut Client) -> String {
    let tools =
        json!([{ "name": "left", "description": "" }, { "name": "right", "description": "" }]);
    let body =
        json!({ "threadId": "t", "runId": "r", "messages": client.messages, "tools": tools });
    let (status, response) = server.post("/api/agui/m", body).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    client.receive(response.as_str().unwrap());
    let kinds = data(&response).into_iter().map(|it| it["type"].as_str().unwrap().to_owned());
    kinds.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn ag_ui_accepts_results_one_by_one() {
    let mut model = Model::start().await;
    let (_home, server) = start(&model, "tools = []");
    let user = json!({ "id": "u1", "role": "user", "content": "go" });
    let mut client = Client::with(vec![user]);
    let both = [("left", json!({})), ("right", json!({}))];
    let (first, ()) =
        tokio::join!(run_agui(&server, &mut client), play(&mut model, Step::Calls(&both)));
    let calls = client.messages[1]["toolCalls"].as_array().unwrap().clone();
    let result = |idx: usize| {
        let (id, call) = (format!("mine{idx}"), &calls[idx]["id"]);
        json!({ "id": id, "role": "tool", "toolCallId": call, "content": "gone" })
    };
    client.messages.push(result(0));
    let second = run_agui(&server, &mut client).await;
    client.messages.push(result(1));
    let (third, ()) =
        tokio::join!(run_agui(&server, &mut client), play(&mut model, Step::Says("Done.")));
    expect![[r#"
        RUN_STARTED STEP_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_END STEP_FINISHED RUN_FINISHED
        RUN_STARTED RUN_FINISHED
        RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED"#]].assert_eq(&[first, second, third].join("\n"));
}
