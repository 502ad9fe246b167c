//! The strictest AG-UI client, for tests with logs of any origin: it accepts only events that every version
//! accepts without a warning, and stores what the newest versions store.

use std::collections::HashSet;

use serde_json::{Value, json};
use transcript::{Attachment, Record, ResponseId, Transcript};

use super::{Stream, Version, messages};
use crate::incoming::Known;

/// A test client that checks AG-UI events and folds them into messages. It panics where any version
/// of the real clients would fail.
#[derive(Default)]
pub struct Client {
    /// The messages that the client has, in the form of AG-UI.
    pub messages: Vec<Value>,
    run_is_open: bool,
    has_failed: bool,
    /// Kinds and ids of the open steps, texts, thinking blocks and tool calls.
    open: HashSet<(&'static str, String)>,
    interrupts: Vec<Value>,
}

impl Client {
    /// Creates a client that already has these messages.
    pub fn with(messages: Vec<Value>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Applies events in the form of server-sent events.
    pub fn receive(&mut self, frames: &str) {
        for frame in frames.split("\n\n").filter(|it| !it.is_empty()) {
            let data = frame.lines().filter_map(|it| it.strip_prefix("data: "));
            let data: Vec<&str> = data.collect();
            assert!(data.len() < 2 && !frame.contains('\r'), "two events in a frame: {frame:?}");
            self.take(data.iter().map(|it| serde_json::from_str(it).expect("JSON")).collect());
        }
    }

    /// Applies events that are parsed already.
    pub fn take(&mut self, events: Vec<Value>) {
        for event in events {
            assert!(!self.has_failed, "nothing comes after an error: {event}");
            check_fields(&event);
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
                    // The call is in a snapshot. Version 0.0.45 would add it again.
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

    /// Returns the index of the message with a tool call; `None` if there is none.
    fn owner(&self, call: &str) -> Option<usize> {
        self.messages.iter().position(|message| {
            let calls = message["toolCalls"].as_array();
            calls.is_some_and(|it| it.iter().any(|it| it["id"] == call))
        })
    }

    /// Returns the index for a new tool result: after the message with the call and its earlier
    /// results.
    fn place_of_result(&self, call: &str) -> usize {
        let Some(owner) = self.owner(call) else { return self.messages.len() };
        let after = &self.messages[owner + 1..];
        owner + 1 + after.iter().take_while(|it| it["role"] == "tool").count()
    }

    /// Merges a snapshot into the messages, as versions since 0.0.46 do. Version 0.0.45 replaces
    /// its messages with the snapshot.
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

    /// Returns the parts of the run that the client has, as its next request shows them.
    fn has(&self) -> Known {
        let body = json!({ "threadId": "th", "runId": "run2", "messages": self.messages });
        super::request(&body).unwrap().known
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

/// Panics if an event lacks a required text or has an unknown field or a null. Some versions fail
/// at null, and version 1.0 reports unknown fields.
fn check_fields(event: &Value) {
    let (texts, others): (&[&str], &[&str]) = match event["type"].as_str().expect("a type") {
        "RUN_STARTED" => (&["threadId", "runId"], &[]),
        "RUN_FINISHED" => (&["threadId", "runId"], &["result", "outcome"]),
        "RUN_ERROR" => (&["message"], &["code"]),
        "STEP_STARTED" | "STEP_FINISHED" => (&["stepName"], &[]),
        "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START" => (&["messageId", "role"], &[]),
        "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => (&["messageId", "delta"], &[]),
        "TOOL_CALL_START" => (&["toolCallId", "toolCallName"], &["parentMessageId"]),
        "TOOL_CALL_ARGS" => (&["toolCallId", "delta"], &[]),
        "TOOL_CALL_END" => (&["toolCallId"], &[]),
        "TOOL_CALL_RESULT" => (&["messageId", "toolCallId", "content"], &["role"]),
        "CUSTOM" => (&["name"], &["value"]),
        "MESSAGES_SNAPSHOT" => (&[], &["messages"]),
        // Not ours: it is in a vector.
        "REASONING_ENCRYPTED_VALUE" => (&["entityId", "encryptedValue"], &["subtype"]),
        _ => (&["messageId"], &[]),
    };
    let fields = event.as_object().expect("an object");
    for (name, value) in fields.iter().filter(|(name, _)| *name != "type") {
        let is_known = texts.contains(&name.as_str()) || others.contains(&name.as_str());
        assert!(is_known && !value.is_null(), "{name} of {event}");
    }
    assert!(texts.iter().all(|it| event[it].is_string()), "{event}");
}

fn append(value: &mut Value, event: &Value) {
    *value = json!(value.as_str().unwrap().to_owned() + event["delta"].as_str().unwrap());
}

/// Creates the AG-UI stream of a run, with fixed ids of the client.
pub fn stream(run: &ResponseId) -> Stream {
    Stream::new(run.clone(), "th", "run1")
}

/// A test client that follows a run, record by record. When a response has ended, it sends the next
/// request after `later` further records.
pub struct RunClient<'a> {
    log: &'a [Record],
    run: &'a ResponseId,
    later: usize,
    n_sent: usize,
    stream: Stream,
    /// The client that follows the run.
    pub client: Client,
}

impl<'a> RunClient<'a> {
    /// Creates a client without any messages, which follows the run in this log.
    pub fn new(log: &'a [Record], run: &'a ResponseId, later: usize) -> Self {
        Self { log, run, later, n_sent: 0, stream: stream(run), client: Client::default() }
    }

    /// Gives the client the next records. Returns the number of records that it has; `None` at the
    /// end.
    pub fn advance(&mut self) -> Option<usize> {
        let Self { log, client, stream, .. } = self;
        if self.n_sent == log.len() || client.has_failed {
            return None;
        }
        let n_more = if stream.is_over() { 1 + self.later } else { 1 };
        let until = log.len().min(self.n_sent + n_more);
        let events = match stream.is_over() {
            false => stream.replay(&log[self.n_sent..until]),
            true => {
                *stream = Stream::new(self.run.clone(), "th", "run2");
                stream.replay_unknown(&log[..until], &client.has())
            }
        };
        self.n_sent = until;
        let has_news = !events.is_empty();
        client.take(events);
        assert!(!has_news || stream.is_over() != client.run_is_open);
        Some(until)
    }
}

/// Returns a client that has followed a whole run. It sends each further request after `later`
/// records.
pub fn folded(log: &[Record], run: &ResponseId, later: usize) -> Client {
    let mut run_client = RunClient::new(log, run, later);
    while run_client.advance().is_some() {}
    run_client.client
}

/// Returns the AG-UI messages of a run as an export contains them.
pub fn kept(log: &[Record], run: &ResponseId) -> Value {
    let mut transcript = Transcript::whole();
    transcript.extend(log);
    let answer = transcript.message(run.as_str());
    answer.map(|it| messages(it, Version::V1, &no_url)).unwrap_or_default().into()
}

/// Returns an empty URL for every attachment.
pub fn no_url(_: &Attachment) -> String {
    String::new()
}

/// Returns a client that had the messages `had`, reconnected to the run after `happened` records,
/// and followed the rest.
pub fn reconnected(log: &[Record], run: &ResponseId, had: &[Value], happened: usize) -> Client {
    let mut client = Client::with(had.to_vec());
    let mut stream = stream(run);
    let known = client.known();
    stream.rejoin(known, Vec::new());
    client.take(stream.replay(&log[..happened]));
    assert_eq!(stream.is_over(), !client.run_is_open);
    let mut run_client = RunClient { log, run, later: 0, n_sent: happened, stream, client };
    while run_client.advance().is_some() {}
    run_client.client
}
