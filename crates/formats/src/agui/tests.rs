//! Events folded by a client are the messages of a snapshot, and the strictest client takes them.

use std::collections::HashSet;

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::logs::any_log;
use transcript::{Event, Record, ResponseId};

use super::*;
use crate::tests::logs::{corpus, read, sound_log, spoken_log};
use crate::tests::{finished_runs, whole};

/// Checks and folds events as the clients do, and panics where one of them would fail.
#[derive(Default)]
struct Client {
    messages: Vec<Value>,
    run_is_open: bool,
    has_failed: bool,
    /// Kinds and ids of what is open.
    open: HashSet<(&'static str, String)>,
    interrupts: Vec<Value>,
}

impl Client {
    fn take(&mut self, events: Vec<Value>) {
        for event in events {
            assert!(!self.has_failed, "nothing comes after an error: {event}");
            let fields = event.as_object().unwrap();
            assert!(fields.values().all(|it| !it.is_null()), "{event}");
            assert_ne!(event.get("delta"), Some(&json!("")), "version 0.0.45 fails at it");
            self.fold(&event);
        }
    }

    fn fold(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap();
        let begins = ["RUN_STARTED", "RUN_ERROR"].contains(&kind);
        assert!(self.run_is_open || begins, "outside any run: {event}");
        let id = |field: &str| event[field].as_str().expect("an id").to_owned();
        match kind {
            "RUN_STARTED" => {
                assert!(!self.run_is_open, "a second run");
                assert!(event["threadId"].is_string() && event["runId"].is_string());
                (self.run_is_open, self.interrupts) = (true, Vec::new());
            }
            "RUN_FINISHED" => {
                assert!(self.open.is_empty(), "still open: {:?}", self.open);
                self.run_is_open = false;
                if let Some(outcome) = event.get("outcome") {
                    assert_eq!(outcome["type"], "interrupt", "the one that all versions take");
                    self.interrupts = outcome["interrupts"].as_array().unwrap().clone();
                    assert!(!self.interrupts.is_empty());
                }
            }
            "RUN_ERROR" => {
                id("message");
                (self.run_is_open, self.has_failed) = (false, true);
            }
            "STEP_STARTED" => self.start("step", id("stepName")),
            "STEP_FINISHED" => self.end("step", id("stepName")),
            "TEXT_MESSAGE_START" => {
                self.start("text", id("messageId"));
                self.message(&event["messageId"], "assistant", Some(""));
            }
            "TEXT_MESSAGE_CONTENT" => self.append("text", event),
            "TEXT_MESSAGE_END" => self.end("text", id("messageId")),
            "REASONING_START" => self.start("span", id("messageId")),
            "REASONING_MESSAGE_START" => {
                assert_eq!(event["role"], "reasoning");
                self.start("reasoning", id("messageId"));
                self.message(&event["messageId"], "reasoning", Some(""));
            }
            "REASONING_MESSAGE_CONTENT" => self.append("reasoning", event),
            "REASONING_MESSAGE_END" => self.end("reasoning", id("messageId")),
            "REASONING_END" => self.end("span", id("messageId")),
            "TOOL_CALL_START" => {
                self.start("call", id("toolCallId"));
                let parent = event.get("parentMessageId").unwrap_or(&event["toolCallId"]);
                let function = json!({ "name": id("toolCallName"), "arguments": "" });
                let call =
                    json!({ "id": event["toolCallId"], "type": "function", "function": function });
                if self.owner(&id("toolCallId")).is_some() {
                    // Of a snapshot: it goes on. Version 0.0.45 would have it twice.
                    return;
                }
                let message = self.message(parent, "assistant", None);
                match message.get_mut("toolCalls").and_then(Value::as_array_mut) {
                    Some(calls) => calls.push(call),
                    None => message["toolCalls"] = json!([call]),
                }
            }
            "TOOL_CALL_ARGS" => {
                assert!(self.open.contains(&("call", id("toolCallId"))), "{event}");
                let calls = self.messages.iter_mut().filter_map(|it| it.get_mut("toolCalls"));
                let mut calls = calls.flat_map(|it| it.as_array_mut().unwrap());
                let call = calls.find(|it| it["id"] == event["toolCallId"]).unwrap();
                append(&mut call["function"]["arguments"], event);
            }
            "TOOL_CALL_END" => self.end("call", id("toolCallId")),
            "TOOL_CALL_RESULT" => {
                assert!(event["content"].is_string());
                let result = json!({
                    "id": id("messageId"),
                    "role": "tool",
                    "toolCallId": id("toolCallId"),
                    "content": event["content"],
                });
                self.messages.insert(self.place_of_result(&id("toolCallId")), result);
            }
            "MESSAGES_SNAPSHOT" => self.merge(event["messages"].as_array().unwrap()),
            "CUSTOM" => assert!(event["name"].is_string() && event.get("value").is_some()),
            // Not ours: it is in a vector.
            "REASONING_ENCRYPTED_VALUE" => {
                let value = event["encryptedValue"].clone();
                self.message(&event["entityId"], "reasoning", None)["encryptedValue"] = value;
            }
            other => panic!("not every version knows {other}"),
        }
    }

    /// The message with that call.
    fn owner(&self, call: &str) -> Option<usize> {
        self.messages.iter().position(|message| {
            let calls = message["toolCalls"].as_array();
            calls.is_some_and(|it| it.iter().any(|it| it["id"] == call))
        })
    }

    /// Behind the message with the call, and behind the results that are there already.
    fn place_of_result(&self, call: &str) -> usize {
        let Some(owner) = self.owner(call) else { return self.messages.len() };
        let after = &self.messages[owner + 1..];
        owner + 1 + after.iter().take_while(|it| it["role"] == "tool").count()
    }

    /// As versions since 0.0.46 do; 0.0.45 takes the snapshot as it is.
    fn merge(&mut self, snapshot: &[Value]) {
        let is_thought = |it: &Value| it["role"] == "reasoning";
        let of_snapshot = |id: &Value| snapshot.iter().find(|it| it["id"] == *id);
        let has_thoughts = snapshot.iter().any(is_thought);
        let old = std::mem::take(&mut self.messages).into_iter();
        let kept = old.filter_map(|message| match of_snapshot(&message["id"]) {
            Some(newer) => Some(newer.clone()),
            None => (is_thought(&message) && !has_thoughts).then_some(message),
        });
        self.messages = kept.collect();
        for message in snapshot {
            if !self.messages.iter().any(|it| it["id"] == message["id"]) {
                self.messages.push(message.clone());
            }
        }
    }

    fn known(&self) -> Vec<String> {
        self.messages.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    }

    fn start(&mut self, kind: &'static str, id: String) {
        assert!(self.open.insert((kind, id.clone())), "{kind} {id} is open already");
    }

    fn end(&mut self, kind: &'static str, id: String) {
        assert!(self.open.remove(&(kind, id.clone())), "{kind} {id} is not open");
    }

    fn append(&mut self, kind: &'static str, event: &Value) {
        let id = event["messageId"].as_str().unwrap();
        assert!(self.open.contains(&(kind, id.to_owned())), "{event}");
        let message = self.messages.iter_mut().find(|it| it["id"] == id);
        append(&mut message.unwrap()["content"], event);
    }

    fn message(&mut self, id: &Value, role: &str, content: Option<&str>) -> &mut Value {
        let known = self.messages.iter().position(|it| it["id"] == *id);
        let idx = known.unwrap_or_else(|| {
            let mut message = json!({ "id": id, "role": role });
            if let Some(content) = content {
                message["content"] = json!(content);
            }
            self.messages.push(message);
            self.messages.len() - 1
        });
        &mut self.messages[idx]
    }
}

fn append(value: &mut Value, event: &Value) {
    *value = json!(value.as_str().unwrap().to_owned() + event["delta"].as_str().unwrap());
}

fn stream(run: &ResponseId) -> Stream {
    Stream::new(run.clone(), "th", "run1")
}

/// Tells these records one by one.
fn tell(stream: &mut Stream, client: &mut Client, log: &[Record]) {
    for record in log {
        let events = stream.apply(record);
        let has_news = !events.is_empty();
        client.take(events);
        assert!(!has_news || stream.is_over() != client.run_is_open);
        if stream.is_over() && !client.has_failed {
            stream.next_run("run2");
            assert!(!stream.is_over());
        }
    }
}

fn folded(log: &[Record], run: &ResponseId) -> Client {
    let mut client = Client::default();
    tell(&mut stream(run), &mut client, log);
    client
}

fn kept(log: &[Record], run: &ResponseId) -> Value {
    whole(log).message(run.as_str()).map(|it| messages(it, Version::V1, &no_url)).unwrap().into()
}

fn no_url(_: &transcript::Attachment) -> String {
    String::new()
}

fn check_law(log: &[Record]) {
    for (run, _) in finished_runs(log) {
        assert_eq!(Value::from(folded(log, &run).messages), kept(log, &run), "{run}");
    }
}

/// A client was told so much, went away, and comes back when so much has happened.
fn comes_back(log: &[Record], run: &ResponseId, told: usize, happened: usize) -> Client {
    let before = folded(&log[..told], run);
    let mut client = Client { messages: before.messages, ..Client::default() };
    let mut again = stream(run);
    let known = client.known();
    client.take(again.rejoin(&log[..happened], &known, Vec::new()));
    assert_eq!(again.is_over(), !client.run_is_open);
    if !client.has_failed {
        if again.is_over() {
            again.next_run("run2");
        }
        tell(&mut again, &mut client, &log[happened..]);
    }
    client
}

fn check_returns(log: &[Record], runs: impl IntoIterator<Item = ResponseId>) {
    for run in runs {
        let begins = log.iter().position(|it| it.response_id.as_ref() == Some(&run));
        let begins = begins.unwrap_or(log.len());
        for told in begins..=log.len() {
            for happened in told.max(begins + 1)..=log.len() {
                let client = comes_back(log, &run, told, happened);
                assert_eq!(Value::from(client.messages), kept(log, &run), "{told} {happened}");
            }
        }
    }
}

#[test]
fn a_client_may_go_and_come_back_at_any_time() {
    for (_, log) in corpus().into_iter().filter(|(name, _)| *name != "odd") {
        check_returns(&log, finished_runs(&log).into_iter().map(|(run, _)| run));
    }
}

#[test]
fn a_conversation_streamed_is_its_snapshot() {
    for (_, log) in corpus().into_iter().filter(|(name, _)| *name != "odd") {
        check_law(&log);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_random_run_streamed_is_its_snapshot(log in sound_log(60)) {
        check_law(&log);
    }

    #[test]
    fn a_client_may_come_back_to_a_random_run(log in spoken_log(20)) {
        check_returns(&log, finished_runs(&log).into_iter().map(|(run, _)| run));
    }

    #[test]
    fn the_strictest_client_takes_any_log(log in any_log(60)) {
        for run in ["r1", "r2"].map(ResponseId::new) {
            folded(&log, &run);
        }
    }

    #[test]
    fn no_body_is_too_odd(body in crate::tests::any_json()) {
        let _ = request(&body);
    }
}

#[test]
fn the_client_of_these_tests_is_like_the_real_one() {
    for line in include_str!("../../fixtures/agui/folded.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let events = case["events"].as_array().unwrap().clone();
        let folded = std::panic::catch_unwind(move || {
            let mut client = Client::default();
            client.take(events);
            client.messages
        });
        match (folded, case["ok"].as_bool().unwrap()) {
            (Ok(messages), true) => {
                assert_eq!(Value::from(messages), case["messages"], "{}", case["name"]);
            }
            (Err(_), false) => (),
            (_, ok) => panic!("{}: the real one says {ok}", case["name"]),
        }
    }
}

const ASKS: &str = r#"
    r1 {"type":"run_start","agent":"demo","trigger":"user"}
    r1 {"type":"step_start","index":0}
    r1 {"type":"thinking_done","partId":"p9","text":"Hm."}
    r1 {"type":"text_done","partId":"p0","text":"Let me look."}
    r1 {"type":"tool_call_start","callId":"c1","toolName":"rm","executor":"server"}
    r1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"p\":1}","validation":"pending"}
    r1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":true}}
    r1 {"type":"tool_approval_resolved","callId":"c1","decision":"accepted","by":"user"}
    r1 {"type":"tool_result","callId":"c1","toolName":"rm","ok":true,"result":"removed"}
    r1 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
    r1 {"type":"notice","level":"info","text":"n"}
    r1 {"type":"run_finish","status":"failed","error":{"code":"upstream_error","message":"gone"}}
"#;

#[test]
fn an_approval_takes_two_runs() {
    let log = read(ASKS);
    let mut stream = Stream::new(ResponseId::new("r1"), "th", "run1");
    let mut lines = String::new();
    for record in &log {
        for event in stream.apply(record) {
            lines += &format!("{event}\n");
        }
        if matches!(record.event, Event::ToolApprovalRequested { .. }) {
            stream.next_run("run2");
        }
    }
    expect![[r#"
        {"type":"RUN_STARTED","threadId":"th","runId":"run1"}
        {"type":"STEP_STARTED","stepName":"step 1"}
        {"type":"REASONING_START","messageId":"p9"}
        {"type":"REASONING_MESSAGE_START","messageId":"p9","role":"reasoning"}
        {"type":"REASONING_MESSAGE_CONTENT","messageId":"p9","delta":"Hm."}
        {"type":"REASONING_MESSAGE_END","messageId":"p9"}
        {"type":"REASONING_END","messageId":"p9"}
        {"type":"TEXT_MESSAGE_START","messageId":"p0","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"p0","delta":"Let me look."}
        {"type":"TEXT_MESSAGE_END","messageId":"p0"}
        {"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"rm","parentMessageId":"p0"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"p\":1}"}
        {"type":"TOOL_CALL_END","toolCallId":"c1"}
        {"type":"STEP_FINISHED","stepName":"step 1"}
        {"type":"RUN_FINISHED","threadId":"th","runId":"run1","outcome":{"type":"interrupt","interrupts":[{"id":"approval_c1","reason":"tool_call","message":"May rm run?","toolCallId":"c1","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"},"reason":{"type":"string"},"editedArgs":{"type":"object"}},"required":["approved"]}}]}}
        {"type":"RUN_STARTED","threadId":"th","runId":"run2"}
        {"type":"TOOL_CALL_RESULT","messageId":"result_c1","toolCallId":"c1","content":"removed","role":"tool"}
        {"type":"CUSTOM","name":"data-notice","value":{"level":"info","text":"n"}}
        {"type":"RUN_ERROR","message":"gone","code":"upstream_error"}
    "#]].assert_eq(&lines);
}

#[test]
fn what_clients_send() {
    let read = |body: Value| {
        let mut whole = json!({ "threadId": "th", "runId": "r2" });
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        request(&whole).map(|it| (it.given, it.decided))
    };
    let user = |content: Value| json!({ "messages": [{ "id": "u1", "role": "user", "content": content }] });
    let resume = |status: &str, payload: Value| json!({ "resume": [{ "interruptId": "approval_c1", "status": status, "payload": payload }] });
    let image = json!({ "type": "image", "source": { "type": "data", "value": "AA==", "mimeType": "image/png" } });
    let binary = json!({ "type": "binary", "mimeType": "image/png", "url": "http://x" });
    let read_well = [
        read(user(json!("hi"))),
        read(user(json!([{ "type": "text", "text": "hi" }, image, binary]))),
        read(resume("resolved", json!({ "approved": true, "editedArgs": { "p": 2 } }))),
        read(resume("cancelled", json!({ "reason": "no" }))),
        read(
            json!({ "messages": [{ "role": "assistant" }, { "role": "tool", "toolCallId": "c2", "content": "done" }] }),
        ),
        read(json!({ "messages": [
            { "role": "assistant" }, { "role": "tool", "toolCallId": "c2", "error": "no" },
            { "role": "user", "content": "and" },
        ] })),
        read(json!({})),
    ];
    let lines: Vec<String> = read_well.map(|it| format!("{:?}", it.unwrap())).into();
    expect![[r#"
        (Said(Said { id: Some("u1"), text: "hi", files: [] }), [])
        (Said(Said { id: Some("u1"), text: "hi", files: [File { media_type: "image/png", name: None, url: "data:image/png;base64,AA==" }, File { media_type: "image/png", name: None, url: "http://x" }] }), [])
        (Nothing, [Approval { call: "c1", approved: true, reason: None, arguments: Some(Object {"p": Number(2)}) }])
        (Nothing, [Approval { call: "c1", approved: false, reason: Some("no"), arguments: None }])
        (Nothing, [Output { call: "c2", output: String("done") }])
        (Said(Said { id: None, text: "and", files: [] }), [Error { call: "c2", error: "no" }])
        (Nothing, [])
    "#]].assert_eq(&(lines.join("\n") + "\n"));
    let bad = [
        request(&json!(7)).map(|it| (it.given, it.decided)),
        request(&json!({})).map(|it| (it.given, it.decided)),
        read(json!({ "messages": 7 })),
        read(user(json!(7))),
        read(user(json!(" "))),
        read(user(json!([{ "type": "smell" }]))),
        read(user(json!([{ "type": "image", "source": { "type": "file", "value": "x" } }]))),
        read(resume("resolved", json!({}))),
        read(resume("maybe", json!({}))),
        read(json!({ "resume": [{ "interruptId": "x", "status": "cancelled" }] })),
        read(json!({ "tools": [{}] })),
    ];
    let whys: Vec<String> = bad.map(|it| it.unwrap_err().to_string()).into();
    expect![[r#"
        The body is no JSON object.
        `threadId` is no text.
        `messages` is no array.
        `messages[0].content` is neither text nor array.
        `messages[0]` has neither text nor files.
        `messages[0].content[0].type` is no kind of content.
        `messages[0].content[0].source.type` is neither "data" nor "url".
        `resume[0].payload.approved` is no boolean.
        `resume[0].status` is neither "resolved" nor "cancelled".
        `resume[0].interruptId` is none that was given out here.
        `tools[0]` has no name of 1 to 64 letters, digits, '_' or '-'.
    "#]]
    .assert_eq(&(whys.join("\n") + "\n"));
}
