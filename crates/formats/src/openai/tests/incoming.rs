//! Requests that are accepted, and requests that are refused.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::incoming::Decided;
use crate::openai::{Request, request};
use crate::tests::any_json;

const PICTURE: &str = "data:image/png;base64,AA==";

fn ask(messages: Value, fields: Value) -> Value {
    let mut body = json!({ "model": "demo", "messages": messages });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

fn read(messages: Value) -> Request {
    request(&ask(messages, json!({}))).unwrap()
}

fn calls(n: usize) -> Value {
    let call = |n| json!({ "id": format!("c{n}"), "type": "function", "function": { "name": "a", "arguments": "{}" } });
    json!({ "role": "assistant", "content": null, "tool_calls": (1..=n).map(call).collect::<Vec<_>>() })
}

fn result(id: &str, content: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": content })
}

fn user(content: &str) -> Value {
    json!({ "role": "user", "content": content })
}

proptest! {
    #[test]
    fn nothing_is_too_odd_to_be_refused(body in any_json(), message in any_json()) {
        let _ = request(&body);
        let _ = request(&ask(json!([message.clone(), message]), json!({})));
    }
}

#[test]
fn the_end_is_new() {
    let pieces = json!([
        { "type": "text", "text": "look" },
        { "type": "image_url", "image_url": { "url": PICTURE } },
        { "type": "file", "file": { "filename": "a.txt", "file_data": "data:text/plain;base64,AA==" } },
    ]);
    let messages = json!([
        { "role": "developer", "content": "Be brief." },
        { "role": "user", "content": pieces },
    ]);
    let asked =
        json!({ "stream": true, "stream_options": { "include_usage": true }, "temperature": 0 });
    let read = request(&ask(messages, asked)).unwrap();
    assert!(read.stream && read.include_usage);
    let message = read.message.unwrap();
    assert_eq!((read.model.as_str(), message.text.as_str()), ("demo", "look"));
    let kinds: Vec<&str> = message.files.iter().map(|it| it.media_type.as_str()).collect();
    assert_eq!(kinds, ["image/png", "text/plain"]);
    assert_eq!(message.files[1].name.as_deref(), Some("a.txt"));
    assert_eq!(read.before, json!([{ "role": "developer", "content": "Be brief." }]));
}

#[test]
fn results_are_new_until_the_assistant_has_spoken() {
    let output = |call: &str, output: Value| Decided::Output { call: call.to_owned(), output };
    let (first, second) = (result("c1", "{\"a\":1}"), result("c2", "{ \"a\": 1 }"));
    let as_given = [output("c1", json!({ "a": 1 })), output("c2", json!("{ \"a\": 1 }"))];
    let messages = json!([user("x"), calls(2), first, second]);
    let at_the_end = read(messages.clone());
    assert_eq!((at_the_end.message, &at_the_end.before), (None, &messages));
    assert_eq!(at_the_end.results, as_given);
    let with_message = read(json!([user("x"), calls(2), first, second, user("and?")]));
    assert_eq!(with_message.message.unwrap().text, "and?");
    assert_eq!((with_message.before, with_message.results), (messages, as_given.to_vec()));
    let answered = json!([user("x"), calls(1), first, { "role": "assistant", "content": "So." }, user("and?")]);
    assert_eq!(read(answered).results, []);
    assert_eq!(read(json!([first])).results, as_given[..1], "the session has the rest");
}

#[test]
fn tools_of_the_client() {
    let tool = json!({ "type": "function", "function": { "name": "pick", "parameters": { "type": "object" } } });
    let asked = |choice: Value| {
        let fields = json!({ "tools": [tool.clone()], "tool_choice": choice });
        request(&ask(json!([user("x")]), fields)).unwrap().tools.len()
    };
    assert_eq!((asked(Value::Null), asked(json!("auto")), asked(json!("none"))), (1, 1, 0));
}

#[test]
fn what_is_refused() {
    let hello = || json!([user("x")]);
    let pieces = |piece: Value| json!([{ "role": "user", "content": [piece] }]);
    let bad = [
        json!(7),
        json!({}),
        json!({ "model": "m" }),
        ask(json!([]), json!({})),
        ask(json!([{ "role": "assistant", "content": "x" }]), json!({})),
        ask(json!([user(" ")]), json!({})),
        ask(json!([7, user("x")]), json!({})),
        ask(json!([{ "role": "user" }]), json!({})),
        ask(json!([{ "role": "tool", "content": "x" }]), json!({})),
        ask(
            pieces(
                json!({ "type": "image_url", "image_url": { "url": "https://a.example/b.png" } }),
            ),
            json!({}),
        ),
        ask(pieces(json!({ "type": "file", "file": { "file_id": "f" } })), json!({})),
        ask(pieces(json!({ "type": "input_audio", "input_audio": {} })), json!({})),
        ask(json!([calls(2), result("c1", "x")]), json!({})),
        ask(json!([calls(1), user("x")]), json!({})),
        ask(hello(), json!({ "stream": "yes" })),
        ask(hello(), json!({ "n": 2 })),
        ask(hello(), json!({ "response_format": { "type": "json_object" } })),
        ask(hello(), json!({ "modalities": ["text", "audio"] })),
        ask(hello(), json!({ "logprobs": true })),
        ask(hello(), json!({ "functions": [] })),
        ask(hello(), json!({ "tool_choice": "required" })),
        ask(hello(), json!({ "tools": [{ "type": "function", "function": {} }] })),
    ];
    let whys = bad.iter().map(|body| {
        let why = request(body).unwrap_err();
        format!("{}: {why}\n", why.param.as_deref().unwrap_or("-"))
    });
    expect![[r#"
        -: The body is no JSON object.
        model: `model` is missing: it is the name of an agent.
        messages: `messages` is no array.
        messages: `messages` is empty.
        messages: The last of `messages` is neither a user's nor a tool's.
        messages: The last of `messages` says nothing.
        messages[0].role: `messages[0].role` is none of "system", "developer", "user", "assistant" and "tool".
        messages[0].content: `messages[0].content` is neither a text nor an array.
        messages[0].tool_call_id: `messages[0].tool_call_id` is missing: it names the call that this came of.
        messages[0].content[0]: `messages[0].content[0]` does not hold its file: Callboard fetches none, so send it as a `data:` address.
        messages[0].content[0]: `messages[0].content[0]` does not hold its file: Callboard fetches none, so send it as a `data:` address.
        messages[0].content[0]: `messages[0].content[0]` is neither a text, an image nor a file.
        messages: The call "c2" has no result: each needs a message of the role "tool".
        messages: The call "c1" has no result: each needs a message of the role "tool".
        stream: `stream` is no boolean.
        n: `n` cannot be had here: an agent gives one answer: leave `n` out, or ask again.
        response_format: `response_format` cannot be had here: an agent answers in text: say in a message how it should look.
        modalities: `modalities` cannot be had here: an agent answers in text.
        logprobs: `logprobs` cannot be had here: agents do not tell how likely their words are.
        functions: `functions` cannot be had here: functions are declared under `tools`.
        tool_choice: `tool_choice` cannot be had here: an agent chooses its tools itself: "auto" and "none" are understood.
        tools: `tools[0].function` has no name of 1 to 64 letters, digits, '_' or '-'.
    "#]].assert_eq(&whys.collect::<String>());
}
