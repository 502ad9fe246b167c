//! Valid and invalid requests of clients.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::incoming::{Decided, File};
use crate::ui::{Request, Trigger, request};

fn read(messages: Value) -> Request {
    request(&json!({ "id": "chat", "messages": messages, "trigger": "submit-message" })).unwrap()
}

fn message(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] })
}

#[test]
fn request_with_a_user_message() {
    let old =
        json!({ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": "before" }] });
    let file = json!({ "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA==", "filename": "a.png" });
    let new = json!({ "id": "m2", "role": "user", "parts": [file, { "type": "text", "text": "look" }, { "type": "data-x", "data": 1 }] });
    let message = read(json!([old, new.clone()])).message.unwrap();
    assert_eq!((message.id.as_deref(), message.text.as_str()), (Some("m2"), "look"));
    let url = "data:image/png;base64,AA==".to_owned();
    assert_eq!(
        message.files,
        [File { media_type: "image/png".into(), name: Some("a.png".into()), url }]
    );
    let alone = request(&json!({ "id": "chat", "message": new })).unwrap();
    assert_eq!(alone.message, Some(message));
}

#[test]
fn a_client_decides_and_gives_results() {
    let part = |state: &str, more: Value| {
        let mut part =
            json!({ "type": "tool-rm", "toolCallId": "c1", "state": state, "input": {} });
        part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        part
    };
    let parts = json!([
        { "type": "step-start" },
        part("approval-responded", json!({ "approval": { "id": "approval_c1", "approved": false, "reason": "no" } })),
        part("output-available", json!({ "output": { "t": 1 } })),
        part("output-error", json!({ "errorText": "boom" })),
        part("input-available", json!({})),
    ]);
    let answer = json!({ "id": "a1", "role": "assistant", "parts": parts });
    let call = || "c1".to_owned();
    let decided = [
        Decided::Approval {
            call: call(),
            approved: false,
            reason: Some("no".into()),
            arguments: None,
        },
        Decided::Output { call: call(), output: json!({ "t": 1 }) },
        Decided::Error { call: call(), error: "boom".into() },
    ];
    let alone = read(json!([answer]));
    assert_eq!((alone.message, alone.decided), (None, decided.to_vec()));
    let next = |id: &str| message(id, "And now?");
    let with_more = read(json!([answer, next("u2"), next("u3")]));
    assert_eq!(with_more.message.unwrap().id.as_deref(), Some("u3"));
    assert_eq!(with_more.decided, decided);
    let later = json!({ "id": "a2", "role": "assistant", "parts": [] });
    assert_eq!(read(json!([answer, later, next("u2")])).decided, []);
}

#[test]
fn an_answer_is_wanted_anew() {
    let body =
        json!({ "id": "chat", "messages": [], "trigger": "regenerate-message", "messageId": "r1" });
    let read = request(&body).unwrap();
    assert_eq!((read.trigger, read.message), (Trigger::Regenerate, None));
    assert_eq!(read.message_id.as_deref(), Some("r1"));
}

#[test]
fn bad_requests_get_a_reason() {
    let bad = [
        json!(7),
        json!({}),
        json!({ "messages": 7 }),
        json!({ "messages": [] }),
        json!({ "messages": [7] }),
        json!({ "messages": [{ "role": "user" }] }),
        json!({ "messages": [{ "role": "robot", "parts": [] }] }),
        json!({ "messages": [{ "role": "user", "parts": [] }] }),
        json!({ "messages": [{ "role": "user", "parts": [{ "type": "text" }] }] }),
        json!({ "messages": [{ "role": "user", "parts": [{ "type": "file", "mediaType": "a/b" }] }] }),
        json!({ "messages": [{ "role": "assistant", "parts": [{ "type": "tool-x", "toolCallId": "c", "state": "approval-responded" }] }] }),
        json!({ "messages": [], "trigger": "resume" }),
        json!({ "id": 7, "message": { "role": "user", "parts": [{ "type": "text", "text": "x" }] } }),
    ];
    let whys: Vec<String> = bad.iter().map(|it| request(it).unwrap_err().to_string()).collect();
    expect![[r#"
        The body is no JSON object.
        Neither `messages` nor `message` is there.
        `messages` is no array.
        There is no message to answer.
        `messages[0]` is no object.
        `messages[0].parts` is no array.
        `messages[0].role` is none of "user", "assistant" and "system".
        `messages[0]` has neither text nor files.
        `messages[0].parts[0].text` is no text.
        `messages[0].parts[0].url` is no text.
        `messages[0].parts[0].approval.approved` is no boolean.
        `trigger` is neither "submit-message" nor "regenerate-message".
        `id` is no text.
    "#]]
    .assert_eq(&(whys.join("\n") + "\n"));
}

proptest! {
    #[test]
    fn no_body_is_too_odd(body in crate::tests::any_json()) {
        let _ = request(&body);
        let _ = crate::ui_v4::request(&body);
    }
}
