//! The JSON examples of the format documents, imported unchanged: the page shows what the document
//! says, and the export loses nothing.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::import::programs::post;
use crate::support::program::{Home, Server};

/// Imports a file and returns the id of its session.
async fn import(server: &Server, format: &str, file: &Value) -> String {
    let (status, made) = post(server, &format!("format={format}"), file.to_string()).await;
    assert_eq!(status, StatusCode::CREATED, "{format}: {made}");
    made["id"].as_str().unwrap().to_owned()
}

async fn messages(server: &Server, session: &str, query: &str) -> Vec<Value> {
    let page = server.get(&format!("/api/sessions/{session}/messages?{query}")).await;
    page["messages"].as_array().unwrap().clone()
}

/// Returns the conversation on a session's page, as HTML.
async fn conversation(server: &Server, session: &str) -> String {
    let (_, html) = server.get_bytes(&format!("/s/{session}")).await;
    let html = String::from_utf8(html).unwrap();
    let from = html.find("class=\"messages\"").expect("a list of messages");
    let to = html[from..].find("class=\"foot\"").map_or(html.len(), |it| from + it);
    html[from..to].to_owned()
}

/// Returns the text of a page, without tags.
fn words(html: &str) -> String {
    let mut words = String::new();
    let mut in_tag = false;
    for letter in html.chars() {
        match letter {
            '<' => in_tag = true,
            '>' => {
                in_tag = false;
                words.push(' ');
            }
            _ if in_tag => (),
            _ => words.push(letter),
        }
    }
    let words = words.replace("&#39;", "'").replace("&quot;", "\"").replace("&amp;", "&");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn shows(html: &str, expected: &[&str]) {
    let words = words(html);
    for it in expected {
        assert!(words.contains(it), "{it:?} is not in {words}");
    }
}

fn contract_example() -> Value {
    let example = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    json!([
        { "id": "u1", "role": "user", "content": "Which programs are there?", "timestamp": "2026-01-16T10:04:59.000Z" },
        example(include_str!("../../../../formats/fixtures/contract/assistant.json")),
        example(include_str!("../../../../formats/fixtures/contract/tool.json")),
        { "id": "msg_002", "role": "assistant", "content": "There are three.", "timestamp": "2026-01-16T10:05:01.500Z" },
        example(include_str!("../../../../formats/fixtures/contract/continuation.json")),
    ])
}

#[tokio::test]
async fn the_rendering_contracts_examples() {
    let home = Home::instant();
    let server = home.start();
    let session = import(&server, "contract", &contract_example()).await;

    let html = conversation(&server, &session).await;
    shows(
        &html,
        &[
            "SearchEntities (250ms)",
            "Args: query: 'dbplus', types: ['program']",
            "Result: Found 3 entities",
            "There are three.",
            "Agent stopped: steps limit",
        ],
    );
    assert!(!words(&html).contains("ended without a word"), "{}", words(&html));

    let out = messages(&server, &session, "format=contract").await;
    // Everything is returned, except that ids are derived from the run and the call.
    let mut expected = contract_example();
    expected[1]["id"] = json!("msg_001.step1");
    expected[2]["id"] = json!("tool_call_abc123");
    expected[3]["id"] = json!("msg_001.step2");
    expected[4]["id"] = json!("status_cont_msg_001");
    for message in expected.as_array_mut().unwrap() {
        let at = message["timestamp"].as_str().unwrap();
        let at = if at.contains('.') { at.to_owned() } else { at.replace('Z', ".000Z") };
        message["timestamp"] = json!(at);
    }
    assert_eq!(json!(out), expected);
}

#[tokio::test]
async fn a_tool_message_may_have_its_result_in_its_content() {
    let home = Home::instant();
    let server = home.start();
    let file = json!([
        { "id": "a", "role": "assistant", "content": "", "metadata": { "tool_calls": [{ "id": "c1", "name": "Find" }] } },
        { "id": "t", "role": "tool", "content": "Found 3 entities", "metadata": { "tool_call_id": "c1" } },
    ]);
    let session = import(&server, "contract", &file).await;
    let out = messages(&server, &session, "format=contract").await;
    assert_eq!(out[1]["content"], "Found 3 entities");
    assert_eq!(out[1]["metadata"]["tool_result"], "Found 3 entities");
    assert_eq!(out[1]["metadata"].get("tool_duration_ms"), None, "nobody measured it");
    assert!(!conversation(&server, &session).await.contains("0ms"));
}

#[tokio::test]
async fn a_summary_of_arguments_is_kept_beside_them() {
    let home = Home::instant();
    let server = home.start();
    for (given, kept) in
        [(json!("two files"), "two files"), (json!(""), "a: 1"), (json!(null), "a: 1")]
    {
        let call = json!({ "id": "c1", "name": "Find", "args": { "a": 1 }, "args_summary": given });
        let file = json!([
            { "id": "a", "role": "assistant", "content": "", "metadata": { "tool_calls": [call] } },
        ]);
        let session = import(&server, "contract", &file).await;
        let out = messages(&server, &session, "format=contract").await;
        let call = &out[0]["metadata"]["tool_calls"][0];
        assert_eq!((&call["args_summary"], &call["args"]), (&json!(kept), &json!({ "a": 1 })));
    }
}

/// The page shows each of these texts in several places.
#[tokio::test]
async fn long_lines_and_raw_texts_leave_a_page_small() {
    let home = Home::instant();
    let server = home.start();
    let long = "Many words. ".repeat(100_000);
    let call = json!({ "id": "c1", "name": "Find", "args_summary": long });
    let tool = |field: &str| {
        let mut metadata = json!({ "tool_call_id": "c1" });
        metadata[field] = json!(long);
        json!([
            { "id": "a", "role": "assistant", "content": "", "metadata": { "tool_calls": [call] } },
            { "id": "t", "role": "tool", "content": long, "metadata": metadata },
        ])
    };
    let stored =
        json!([{ "id": "a", "role": "assistant", "content": "", "toolCalls": format!("[{long}") }]);
    for (format, file) in [
        ("contract", tool("tool_result")),
        ("contract", tool("tool_error")),
        ("openai-stored", stored),
    ] {
        let session = import(&server, format, &file).await;
        let html = conversation(&server, &session).await;
        assert!(html.contains("Many words."), "{format}");
        assert!(html.len() < 100_000, "{format}: {} bytes", html.len());
    }
}

#[tokio::test]
async fn results_without_ids_are_matched_by_name() {
    let home = Home::instant();
    let server = home.start();
    for (calls, results) in [
        (json!([{ "name": "NoId", "args": { "a": 1 } }]), json!([{ "tool_name": "NoId" }])),
        (
            json!([{ "id": "c1", "name": "A" }, { "id": "c2", "name": "A" }, { "id": "c3", "name": "B" }]),
            json!([{ "tool_name": "A" }, { "tool_name": "B" }, { "tool_name": "A" }]),
        ),
        (json!([{ "name": "NoId" }]), json!([{ "tool_name": "NoId", "tool_call_id": "late" }])),
    ] {
        let n_calls = calls.as_array().unwrap().len();
        let mut file = vec![
            json!({ "id": "a", "role": "assistant", "content": "", "metadata": { "tool_calls": calls } }),
        ];
        for (n, metadata) in results.as_array().unwrap().iter().enumerate() {
            let mut metadata = metadata.clone();
            metadata["tool_result"] = json!({ "n": n });
            file.push(json!({ "id": format!("t{n}"), "role": "tool", "content": "", "metadata": metadata }));
        }
        let session = import(&server, "contract", &json!(file)).await;
        let answer = messages(&server, &session, "format=callboard").await.remove(0);
        let calls = answer["toolCalls"].as_array().unwrap();
        assert_eq!(calls.len(), n_calls, "{answer}");
        assert!(calls.iter().all(|it| it["status"] == "completed"), "{answer}");
    }
}

/// A stored message has text and calls: the text is the answer.
#[tokio::test]
async fn the_storage_format_of_tool_calls() {
    let home = Home::instant();
    let server = home.start();
    let stored = r#"[{"id":"call_123","type":"function","function":{"name":"search","arguments":"{\"query\":\"weather\"}"}}]"#;
    let file = |calls: &str| {
        json!([
            { "id": "u1", "role": "user", "content": "hi" },
            { "id": "a1", "role": "assistant", "content": "Here you are.", "toolCalls": calls },
        ])
    };
    let session = import(&server, "openai-stored", &file(stored)).await;
    let html = conversation(&server, &session).await;
    shows(&html, &["Here you are.", "\"name\": \"search\"", "\"query\": \"weather\""]);
    assert!(html.contains("aria-label=\"Tool call: search\""));
    let answer = messages(&server, &session, "format=callboard").await.remove(1);
    assert_eq!(answer["content"], "Here you are.");
    let out = messages(&server, &session, "format=openai-stored").await;
    assert_eq!(out[1]["toolCalls"], stored);
    assert_eq!(out[1]["content"], "Here you are.");

    for raw in ["[{\"id\":\"call_1\",", "{\"id\":1}", "7", "[null]"] {
        let session = import(&server, "openai-stored", &file(raw)).await;
        let html = conversation(&server, &session).await;
        shows(&html, &["Here you are.", "Tool calls:", raw]);
        assert!(html.contains("tool-call-badge--fallback"), "{raw}");
        let out = messages(&server, &session, "format=openai-stored").await;
        assert_eq!(out[1]["toolCalls"], raw);
    }
}

/// Database rows, among them incomplete and rejected ones.
#[tokio::test]
async fn the_rows_of_the_weather_example() {
    let home = Home::instant();
    let server = home.start();
    let rows: Value =
        serde_json::from_str(include_str!("../../../../formats/fixtures/ui_v4/weather.json"))
            .unwrap();
    let session = import(&server, "ui-v4", &rows).await;
    let html = conversation(&server, &session).await;
    shows(
        &html,
        &["I'll check the weather", "get_weather", "{temp: 20}", "The weather in Paris is 20°C"],
    );
    assert!(!words(&html).contains("0ms"), "{}", words(&html));
    let out = messages(&server, &session, "format=ui-v4&order=desc").await;
    let answer = out.iter().find(|it| it["role"] == "assistant").unwrap();
    assert_eq!(answer["annotations"][0]["validated"], "not_required");
    assert_eq!(answer["parts"][1]["toolInvocation"]["state"], "result");

    let mut rejected = rows.clone();
    rejected[1]["toolCalls"][0]["validated"] = json!(false);
    let session = import(&server, "ui-v4", &rejected).await;
    let answer = messages(&server, &session, "format=callboard").await.remove(1);
    assert_eq!(answer["toolCalls"][0]["state"], "denied");
    assert_eq!(answer["toolCalls"][0]["error"]["message"], "{temp: 20}");
    shows(&conversation(&server, &session).await, &["denied", "{temp: 20} tool_denied"]);
    for n in [2, 3] {
        let mut rows = json!(rejected.as_array().unwrap()[..n]);
        rows.as_array_mut().unwrap().last_mut().unwrap()["isComplete"] = json!(false);
        let session = import(&server, "ui-v4", &rows).await;
        let answer = messages(&server, &session, "format=callboard").await.remove(1);
        assert_eq!(answer["toolCalls"][0]["state"], "denied", "{rows}");
    }

    let mut cut = rows.as_array().unwrap()[..2].to_vec();
    cut[1]["isComplete"] = json!(false);
    let session = import(&server, "ui-v4", &json!(cut)).await;
    let answer = messages(&server, &session, "format=callboard").await.remove(1);
    assert_eq!((&answer["status"], &answer["interrupted"]), (&json!("cancelled"), &json!(true)));
    let html = conversation(&server, &session).await;
    shows(
        &html,
        &["I'll check the weather", "Interrupted (it was not complete when it was imported)"],
    );
    assert!(!words(&html).contains("by you"));
}

/// The list in the document: newest first, without dates, and one text only in `content`.
#[tokio::test]
async fn the_messages_of_the_weather_example() {
    let home = Home::instant();
    let server = home.start();
    let call = json!({
        "state": "result", "toolCallId": "call_123", "toolName": "get_weather",
        "args": { "city": "Paris" }, "result": "{temp: 20}",
    });
    let annotation =
        json!({ "toolCallId": "call_123", "validated": "not_required", "isComplete": true });
    let file = json!([
        { "role": "assistant", "content": "The weather in Paris is 20°C",
          "parts": [{ "type": "text", "text": "The weather in Paris is 20°C" }], "annotations": [{}] },
        { "role": "assistant", "content": "I'll check the weather",
          "parts": [{ "type": "tool-invocation", "toolInvocation": call }], "annotations": [annotation] },
        { "role": "user", "content": "What's the weather in Paris?" },
    ]);
    let session = import(&server, "ui-v4", &file).await;
    let all = words(&conversation(&server, &session).await);
    let places = file.as_array().unwrap().iter().rev().map(|it| {
        let text = it["content"].as_str().unwrap();
        all.find(text).unwrap_or_else(|| panic!("{text:?} is not in {all}"))
    });
    assert!(places.is_sorted(), "the oldest stands first in {all}");

    let out = messages(&server, &session, "format=ui-v4&order=desc").await;
    let calls_of = |it: &[Value]| -> Vec<(Value, Value)> {
        it.iter().map(|it| (it["role"].clone(), it["content"].clone())).collect()
    };
    assert_eq!(calls_of(&out), calls_of(file.as_array().unwrap()));
    let [text, invocation] = out[1]["parts"].as_array().unwrap().as_slice() else { panic!() };
    assert_eq!(text["text"], "I'll check the weather");
    for (name, value) in call.as_object().unwrap() {
        assert_eq!(&invocation["toolInvocation"][name], value, "{name}");
    }
    for (name, value) in annotation.as_object().unwrap() {
        assert_eq!(&out[1]["annotations"][0][name], value, "{name}");
    }
}

/// The steps of the commentary document, as a stream and as a stored message.
#[tokio::test]
async fn the_steps_of_the_commentary_document() {
    let home = Home::instant();
    let server = home.start();
    let events = json!([
        { "type": "start-step" },
        { "type": "text-delta", "text": "I'll search for your notes..." },
        { "type": "tool-call", "toolCallId": "c1", "toolName": "search_notes", "input": { "query": "lamp" } },
        { "type": "tool-result", "toolCallId": "c1", "output": { "notes": [1, 2, 3] } },
        { "type": "finish-step" },
        { "type": "start-step" },
        { "type": "text-delta", "text": "Found 3 notes. Let me read the first one..." },
        { "type": "tool-call", "toolCallId": "c2", "toolName": "get_note", "input": { "id": 1 } },
        { "type": "tool-result", "toolCallId": "c2", "output": "The lamp." },
        { "type": "finish-step" },
        { "type": "start-step" },
        { "type": "text-delta", "text": "Here's what I found: the lamp." },
        { "type": "finish-step" },
    ]);
    let session = import(&server, "fullstream", &events).await;
    let answer = messages(&server, &session, "format=callboard").await.remove(0);
    assert_eq!(answer["content"], "Here's what I found: the lamp.");
    assert_eq!(answer["toolCalls"][0]["commentary"], "I'll search for your notes...");
    assert_eq!(answer["toolCalls"][0]["resultSummary"], "Found 3 notes");
    assert_eq!(answer["toolCalls"][1]["commentary"], "Found 3 notes. Let me read the first one...");
    assert_eq!(answer.get("durationMs"), None);
    let html = conversation(&server, &session).await;
    shows(
        &html,
        &["Used 2 tools", "I'll search for your notes...", "Here's what I found: the lamp."],
    );

    let file = json!([answer]);
    let again = import(&server, "callboard", &file).await;
    let again = messages(&server, &again, "format=callboard").await.remove(0);
    for field in ["content", "toolCalls"] {
        let name = |it: &Value| match field {
            "content" => it[field].clone(),
            _ => it[field].as_array().unwrap().iter().map(|it| it["commentary"].clone()).collect(),
        };
        assert_eq!(name(&again), name(&answer));
    }
}

/// Clients of the event log rely on the event types: the start of a call has its arguments if they
/// are known, and there is one result with `ok` and either a result or an error.
#[tokio::test]
async fn the_events_of_the_chat_document() {
    let home = Home::instant();
    let server = home.start();
    let session = import(&server, "contract", &contract_example()).await;
    let calls = json!([{ "id": "c1", "type": "function", "function": { "name": "search_web", "arguments": "{\"query\":\"weather\"}" } }]);
    let stored = json!([{ "role": "assistant", "content": "", "toolCalls": calls }, { "role": "tool", "toolCallId": "c1", "content": "sunny" }]);
    let other = import(&server, "openai-stored", &stored).await;
    let events = json!([
        { "type": "tool-call", "toolCallId": "c1", "toolName": "search_web", "input": { "query": "weather" } },
        { "type": "tool-result", "toolCallId": "c1", "output": "sunny" },
    ]);
    let streamed = import(&server, "fullstream", &events).await;
    let known = Some("{\"query\":\"weather\"}");
    for (session, arguments) in [(&session, None), (&other, known), (&streamed, known)] {
        let log = server.get(&format!("/api/sessions/{session}/events")).await;
        let events = log["events"].as_array().unwrap().clone();
        let of = |kind: &str| events.iter().find(|it| it["type"] == kind).unwrap().clone();
        assert_eq!(of("tool_call_start").get("arguments").and_then(Value::as_str), arguments);
        let result = of("tool_result");
        assert_eq!(result["ok"], true);
        assert!(result.get("result").is_some() && result.get("error").is_none());
    }
}
