//! Conversations in foreign formats are imported as sessions: completely or not at all.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::import::programs::post;
use crate::support::log::check_log;
use crate::support::program::{Home, Server, output};
use crate::support::watcher::{is_quiet, watch_until};

/// A file in each format, among them the examples of the format documents. All have the same
/// conversation: a question, a tool call after some commentary, and the answer.
pub(crate) fn files() -> Vec<(&'static str, Value)> {
    let call = json!({ "id": "call_123", "type": "function", "function": { "name": "get_weather", "arguments": "{\"city\":\"Paris\"}" } });
    let asked = "What's the weather in Paris?";
    let (before, answer) = ("I'll check the weather", "The weather in Paris is 20°C");
    let row = |id: &str, entity: &str, content: Value| json!({ "id": id, "entity": entity, "content": content, "isComplete": true });
    let mut calling = row("2", "AI_TOOL", json!(before));
    calling["toolCalls"] =
        json!([{ "id": "call_123", "name": "get_weather", "arguments": "{\"city\":\"Paris\"}" }]);
    let chat = |calls: Value, field: &str| {
        json!([
            { "role": "user", "content": asked },
            { "role": "assistant", "content": before, field: calls },
            { "role": "tool", "toolCallId": "call_123", "tool_call_id": "call_123", "content": "{temp: 20}" },
            { "role": "assistant", "content": answer },
        ])
    };
    let ours = json!({ "id": "call_123", "name": "get_weather", "args": { "city": "Paris" }, "status": "completed", "result": "{temp: 20}", "commentary": before });
    let event = |kind: &str| json!({ "type": kind });
    let delta = |text: &str| json!({ "type": "text-delta", "text": text });
    let tool_call = json!({ "type": "tool-call", "toolCallId": "call_123", "toolName": "get_weather", "input": { "city": "Paris" } });
    let result = json!({ "type": "tool-result", "toolCallId": "call_123", "output": "{temp: 20}" });
    let events = json!([
        event("start-step"),
        delta(before),
        tool_call,
        result,
        event("finish-step"),
        event("start-step"),
        delta(answer),
        event("finish-step"),
    ]);
    vec![
        // Messages as they were stored before commentary had a field of its own.
        (
            "callboard",
            json!([
                { "id": "1", "role": "user", "content": asked },
                { "id": "2", "role": "assistant", "content": format!("{before}\n\n{answer}"), "toolCalls": [ours] },
            ]),
        ),
        (
            "ui",
            json!([
                { "id": "1", "role": "user", "parts": [{ "type": "text", "text": asked }] },
                { "id": "2", "role": "assistant", "parts": [
                    { "type": "step-start" },
                    { "type": "text", "text": before },
                    { "type": "tool-get_weather", "toolCallId": "call_123", "state": "output-available", "input": { "city": "Paris" }, "output": "{temp: 20}" },
                    { "type": "step-start" },
                    { "type": "text", "text": answer },
                ] },
            ]),
        ),
        (
            "ui-v4",
            json!([
                row("1", "USER", json!(asked)),
                calling,
                row("3", "TOOL", json!({ "tool_call_id": "call_123", "content": "{temp: 20}" })),
                row("4", "AI_MESSAGE", json!(answer)),
            ]),
        ),
        ("agui", chat(json!([call]), "toolCalls")),
        ("openai", chat(json!([call]), "tool_calls")),
        ("openai-stored", chat(json!(json!([call]).to_string()), "toolCalls")),
        (
            "fullstream",
            json!([{ "id": "1", "role": "user", "content": asked }, { "id": "2", "role": "assistant", "events": events }]),
        ),
        (
            "contract",
            json!([
                { "id": "1", "role": "user", "content": asked },
                { "id": "a.1", "role": "assistant", "content": before, "metadata": { "tool_calls": [{ "id": "call_123", "name": "get_weather", "args": { "city": "Paris" } }] } },
                { "id": "tool_call_123", "role": "tool", "content": "20", "metadata": { "tool_call_id": "call_123", "tool_name": "get_weather", "tool_result": "{temp: 20}" } },
                { "id": "a.2", "role": "assistant", "content": answer },
            ]),
        ),
    ]
}

/// Checks the conversation of [`files`].
fn check(messages: &[Value], format: &str) {
    let [asked, answer] = messages else { panic!("{format}: {messages:?}") };
    assert_eq!(asked["content"], "What's the weather in Paris?", "{format}");
    assert_eq!(answer["content"], "The weather in Paris is 20°C", "{format}");
    let calls = answer["toolCalls"].as_array().unwrap();
    assert_eq!(calls.len(), 1, "{format}");
    let expected = json!({ "id": "call_123", "name": "get_weather", "args": { "city": "Paris" }, "summary": "city: 'Paris'", "status": "completed", "result": "{temp: 20}", "commentary": "I'll check the weather" });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(calls[0][field], *value, "{format}: {field}");
    }
}

async fn messages(server: &Server, session: &str, format: &str) -> Vec<Value> {
    let page = server.get(&format!("/api/sessions/{session}/messages?format={format}")).await;
    page["messages"].as_array().unwrap().clone()
}

/// One file becomes one session, by HTTP and by the command, with a server and without one.
#[tokio::test]
async fn a_file_in_any_format_becomes_a_session() {
    let (home, other) = (Home::instant(), Home::instant());
    let server = home.start();
    let mut sessions = Vec::new();
    for (format, file) in files() {
        let (status, made) = post(&server, &format!("format={format}"), file.to_string()).await;
        assert_eq!(status, StatusCode::CREATED, "{format}: {made}");
        assert_eq!(made["addedTurns"], 1, "{format}");
        assert_eq!(
            (&made["agent"], &made["title"]),
            (&json!("demo"), &json!("What's the weather in Paris?"))
        );
        let id = made["id"].as_str().unwrap().to_owned();
        assert!(id.starts_with(&format!("{format}-")), "{id}");
        check(&messages(&server, &id, "callboard").await, format);
        check_log(&server.log(&id).await, |_| false);
        let (status, again) = post(&server, &format!("format={format}"), file.to_string()).await;
        assert_eq!((status, &again["id"]), (StatusCode::CREATED, &json!(id)));
        assert_eq!(again["addedTurns"], 0);

        let import = |home: &Home| {
            std::fs::write(home.workspace().join("talk.json"), file.to_string()).unwrap();
            output(home.command().args(["import", "--format", format, "talk.json"]))
        };
        let (ok, output, why) = import(&home);
        assert!(ok && output.starts_with(&format!("{id}: nothing new")), "{output}{why}");
        let (ok, output, why) = import(&other);
        assert!(ok && output.starts_with(&format!("{id}: 1 turn added")), "{output}{why}");
        let (ok, output, why) = import(&other);
        assert!(ok && output.starts_with(&format!("{id}: nothing new")), "{output}{why}");
        sessions.push((id, format));
    }
    let other = other.start();
    for (id, format) in &sessions {
        check(&messages(&other, id, "callboard").await, format);
        server.send(id, "time in Lima").await;
        let transcript = watch_until(&server, id, is_quiet).await;
        assert!(
            transcript.messages.last().unwrap().run().unwrap().content().contains("In Lima it is")
        );
    }
}

/// An exported conversation can be imported, and its export is the same.
#[tokio::test]
async fn exported_messages_can_be_imported() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    for text in ["list the files, then read a.txt", "fail", "time in Lima and Paris"] {
        server.send(&session, text).await;
        watch_until(&server, &session, is_quiet).await;
    }
    for format in ["ui", "ui-v4", "openai-stored", "fullstream", "contract"] {
        let once = messages(&server, &session, format).await;
        let file = json!({ "messages": once }).to_string();
        let (status, made) = post(&server, &format!("format={format}&title=Copy"), file).await;
        assert_eq!((status, &made["title"]), (StatusCode::CREATED, &json!("Copy")), "{made}");
        let twice = messages(&server, made["id"].as_str().unwrap(), format).await;
        assert_eq!(json!(twice), json!(once), "{format}");
    }
    let export = server.get(&format!("/api/sessions/{session}/export?format=json")).await;
    let (_, made) = post(&server, "format=auto&agent=demo&id=mine", export.to_string()).await;
    assert_eq!((&made["id"], &made["title"]), (&json!("mine"), &export["session"]["title"]));
    let words =
        |messages: &[Value]| messages.iter().map(|it| it["content"].clone()).collect::<Vec<_>>();
    let before = messages(&server, &session, "callboard").await;
    assert_eq!(words(&messages(&server, "mine", "callboard").await), words(&before));
}

#[tokio::test]
async fn an_invalid_list_of_calls_is_exported_unchanged() {
    let home = Home::instant();
    let server = home.start();
    let kept = json!([
        { "id": "u", "role": "user", "content": "x", "timestamp": 5 },
        { "id": "a.step1", "role": "assistant", "content": "", "timestamp": 6, "toolCalls": "search(weather" },
    ]);
    let (_, made) = post(&server, "format=openai-stored", kept.to_string()).await;
    let id = made["id"].as_str().unwrap();
    assert_eq!(json!(messages(&server, id, "openai-stored").await), kept);
    let (_, page) = server.get_bytes(&format!("/s/{id}")).await;
    assert!(String::from_utf8(page).unwrap().contains("search(weather"));
}

#[tokio::test]
async fn import_errors_say_where_they_are() {
    let home = Home::instant();
    let server = home.start();
    let good = json!({ "role": "user", "content": "x" });
    for (query, file, why) in [
        ("format=ui", "nonsense".to_owned(), "The file is no JSON"),
        ("format=ui", "{\"role\":\"user\"}\n{".to_owned(), "Line 2 is no JSON"),
        ("format=ui", "7".to_owned(), "The file is no list of messages."),
        ("format=ui", "[]".to_owned(), "There are no messages in it."),
        ("format=ui-v4", "{}".to_owned(), "The file is no list of messages or rows."),
        ("format=ui", json!({ "messages": 7 }).to_string(), "`messages` is no list."),
        ("format=openai", json!([good, 7]).to_string(), "`messages[1]` is no object."),
        ("format=openai", json!([good, {}]).to_string(), "`messages[1].role` is no text."),
        (
            "format=openai",
            json!([good, { "role": "robot" }]).to_string(),
            "`messages[1].role` is \"robot\", which is none of",
        ),
        (
            "format=openai",
            json!([{ "role": "user", "content": 7 }]).to_string(),
            "`messages[0].content` is no text and no list.",
        ),
        (
            "format=ui",
            json!([{ "role": "user", "parts": [{}, 7] }]).to_string(),
            "`messages[0].parts[1]` is no object.",
        ),
        ("format=ui&id=%2F", json!([good]).to_string(), "a session id is"),
        ("format=ui&agent=nobody", json!([good]).to_string(), "nobody"),
        ("format=claude&title=x", String::new(), "omit `agent` and `title`"),
        ("format=robot", json!([good]).to_string(), "\"robot\" is none of: auto, claude"),
        ("format=auto", json!([good]).to_string(), "something else, name its format"),
    ] {
        let (status, refused) = post(&server, query, file).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}: {refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{query}: {message}");
    }
    let twice = json!([good]).to_string();
    post(&server, "format=openai&id=mine", twice.clone()).await;
    let (status, _) = post(&server, "format=openai&id=mine", twice).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(server.get("/api/sessions").await["sessions"].as_array().unwrap().len(), 1);
}

/// A damaged file is refused or becomes a valid session; the server never fails.
#[tokio::test]
async fn damaged_files_are_refused_or_valid_sessions() {
    let home = Home::instant();
    let server = home.start();
    for (format, file) in files() {
        let text: Vec<char> = file.to_string().chars().collect();
        for (n, at) in (0..text.len()).step_by(text.len() / 12).enumerate() {
            let instead = ["", "}", "[", "\"", "null", "9e99", "\\u0000", "-1"][n % 8];
            let (head, tail) = (text[..at].iter(), text[at + 1..].iter());
            let broken: String =
                head.copied().chain(instead.chars()).chain(tail.copied()).collect();
            let (status, answer) = post(&server, &format!("format={format}"), broken).await;
            match status {
                StatusCode::BAD_REQUEST => assert_eq!(answer["error"]["code"], "invalid_request"),
                StatusCode::CREATED => {
                    let id = answer["id"].as_str().unwrap();
                    check_log(&server.log(id).await, |_| false);
                    server.get_bytes(&format!("/s/{id}")).await;
                }
                _ => panic!("{format} at {at}: {status} {answer}"),
            }
        }
    }
    for time in ["9223372036854775807", "-9223372036854775808", "1e300", "\"9999-99-99T99:99:99Z\""]
    {
        let file = format!(r#"[{{"role":"user","content":"x","timestamp":{time}}}]"#);
        let (status, made) = post(&server, "format=openai-stored", file).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        server.get_bytes(&format!("/s/{}", made["id"].as_str().unwrap())).await;
    }
}

#[tokio::test]
async fn the_page_offers_every_documented_format() {
    let home = Home::instant();
    let server = home.start();
    let document = server.get("/api/openapi.json").await;
    let parameters = &document["paths"]["/api/sessions/import"]["post"]["parameters"];
    let format = parameters.as_array().unwrap().iter().find(|it| it["name"] == "format").unwrap();
    let schema = &format["schema"];
    let named = schema["$ref"].as_str().map_or(schema, |it| document.pointer(&it[1..]).unwrap());
    let words = named["enum"].as_array().unwrap();
    assert!(words.len() > 10, "{words:?}");
    let (_, page) = server.get_bytes("/").await;
    let page = String::from_utf8(page).unwrap();
    for word in words {
        assert!(page.contains(&format!("<option value={word}>")), "{word}");
    }
}
