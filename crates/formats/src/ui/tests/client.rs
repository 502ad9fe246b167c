//! A client that folds chunks as the AI SDK does and takes no more than its first release of a major
//! version: it panics at what that would call an error.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::ui::Profile;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ready,
    Streaming,
    /// An error: what follows is not read.
    Failed,
}

#[derive(Debug)]
pub(super) struct Client {
    profile: Profile,
    pub(super) status: Status,
    id: Value,
    metadata: Option<Value>,
    parts: Vec<Value>,
    /// Open ones, by `text` or `reasoning` and their ids.
    words: HashMap<(&'static str, String), usize>,
    inputs: HashMap<String, String>,
    step_is_open: bool,
}

impl Client {
    pub(super) fn new(profile: Profile) -> Self {
        Self {
            profile,
            status: Status::Ready,
            id: Value::Null,
            metadata: None,
            parts: Vec::new(),
            words: HashMap::new(),
            inputs: HashMap::new(),
            step_is_open: false,
        }
    }

    /// With a message that it goes on with, if there is one.
    pub(super) fn with_message(profile: Profile, messages: &Value) -> Self {
        let mut client = Self::new(profile);
        if let Some(last) = messages.as_array().and_then(|it| it.last()) {
            client.id = last["id"].clone();
            client.parts = last["parts"].as_array().cloned().unwrap_or_default();
        }
        client
    }

    pub(super) fn message(&self) -> Value {
        let mut message = json!({ "id": self.id, "role": "assistant", "parts": self.parts });
        if let Some(metadata) = &self.metadata {
            message["metadata"] = metadata.clone();
        }
        message
    }

    /// The user decides about a call that the client was asked about.
    pub(super) fn decide(&mut self, call: &str, approved: bool, reason: Option<&str>) {
        let part = self.parts.iter_mut().find(|it| it["toolCallId"] == call);
        let Some(part) = part.filter(|it| it["state"] == "approval-requested") else { return };
        part["state"] = json!("approval-responded");
        part["approval"]["approved"] = json!(approved);
        if let Some(reason) = reason {
            part["approval"]["reason"] = json!(reason);
        }
    }

    pub(super) fn take(&mut self, chunks: Vec<Value>) {
        for chunk in chunks {
            assert_ne!(self.status, Status::Failed, "nothing is read after an error: {chunk}");
            self.check_fields(&chunk);
            self.fold(&chunk);
        }
    }

    fn check_fields(&self, chunk: &Value) {
        let kind = chunk["type"].as_str().expect("a type");
        for (name, value) in chunk.as_object().unwrap() {
            let may_be_null = ["input", "output", "data", "messageMetadata"];
            assert!(!value.is_null() || may_be_null.contains(&name.as_str()), "{chunk}");
        }
        for name in ["id", "messageId", "toolCallId", "toolName", "delta", "inputTextDelta"] {
            let value = chunk.get(name);
            assert!(value.is_none_or(Value::is_string), "`{name}` is no text: {chunk}");
        }
        let profile = self.profile;
        let (needed, allowed) =
            fields(kind, profile).unwrap_or_else(|| panic!("{profile:?} does not know {kind}"));
        for name in needed {
            assert!(chunk.get(name).is_some(), "`{name}` is missing: {chunk}");
        }
        for name in chunk.as_object().unwrap().keys().filter(|it| *it != "type") {
            let is_known = needed.contains(&name.as_str()) || allowed.contains(&name.as_str());
            assert!(is_known, "{profile:?} does not know `{name}`: {chunk}");
        }
        if let Some(reason) = chunk["finishReason"].as_str() {
            let known = ["stop", "length", "content-filter", "tool-calls", "error", "other"];
            assert!(known.contains(&reason), "{chunk}");
        }
    }

    fn fold(&mut self, chunk: &Value) {
        let kind = chunk["type"].as_str().unwrap();
        assert!(
            self.status == Status::Streaming || kind == "start",
            "nothing before the start and after the end of a response: {chunk}"
        );
        self.status = Status::Streaming;
        match kind {
            "start" => {
                self.id = chunk.get("messageId").unwrap_or(&self.id).clone();
                self.merge_metadata(chunk);
            }
            "start-step" => {
                assert!(!self.step_is_open, "one step at a time");
                self.step_is_open = true;
                self.parts.push(json!({ "type": "step-start" }));
            }
            "finish-step" => {
                assert!(self.words.is_empty(), "text is open at the end of its step");
                assert!(std::mem::take(&mut self.step_is_open), "no step is open");
            }
            "text-start" => self.start_words("text", chunk),
            "text-delta" => self.grow_words("text", chunk),
            "text-end" => self.end_words("text", chunk),
            "reasoning-start" => self.start_words("reasoning", chunk),
            "reasoning-delta" => self.grow_words("reasoning", chunk),
            "reasoning-end" => self.end_words("reasoning", chunk),
            "tool-input-start" => {
                let id = chunk["toolCallId"].as_str().unwrap().to_owned();
                self.inputs.insert(id, String::new());
                let fields = [("state", json!("input-streaming"))];
                self.update_tool(chunk, fields.into());
            }
            "tool-input-delta" => {
                let input = self.inputs.get_mut(chunk["toolCallId"].as_str().unwrap());
                let delta = chunk["inputTextDelta"].as_str().unwrap();
                input.expect("an input that has started").push_str(delta);
            }
            "tool-input-available" => {
                let input = chunk["input"].clone();
                let state = ("state", json!("input-available"));
                self.update_tool(chunk, [state, ("input", input)].into());
            }
            "tool-approval-request" => {
                let approval = json!({ "id": chunk["approvalId"] });
                let part = self.tool(chunk);
                part["state"] = json!("approval-requested");
                part["approval"] = approval;
            }
            "tool-approval-response" => {
                let mut parts = self.parts.iter_mut();
                let part = parts.find(|it| it["approval"]["id"] == chunk["approvalId"]);
                let part = part.expect("a known approval");
                part["state"] = json!("approval-responded");
                part["approval"]["approved"] = chunk["approved"].clone();
                if let Some(reason) = chunk.get("reason") {
                    part["approval"]["reason"] = reason.clone();
                }
            }
            "tool-output-available" => {
                let part = self.tool(chunk);
                part["state"] = json!("output-available");
                part["output"] = chunk["output"].clone();
            }
            "tool-output-error" => {
                let part = self.tool(chunk);
                part["state"] = json!("output-error");
                part["errorText"] = chunk["errorText"].clone();
            }
            "tool-output-denied" => {
                let part = self.tool(chunk);
                assert_eq!(part["approval"]["approved"], false, "denied without a decision");
                part["state"] = json!("output-denied");
            }
            "message-metadata" => self.merge_metadata(chunk),
            "finish" => {
                self.merge_metadata(chunk);
                assert!(self.words.is_empty() && !self.step_is_open, "{chunk}");
                self.status = Status::Ready;
            }
            "abort" => self.status = Status::Ready,
            "error" => self.status = Status::Failed,
            "source-url" | "source-document" | "file" => self.parts.push(chunk.clone()),
            _ if kind.starts_with("data-") => self.replace_data(chunk),
            other => panic!("unknown chunk {other}"),
        }
    }

    fn merge_metadata(&mut self, chunk: &Value) {
        let Some(news) = chunk.get("messageMetadata") else { return };
        merge(self.metadata.get_or_insert(json!({})), news);
    }

    fn start_words(&mut self, kind: &'static str, chunk: &Value) {
        self.words.insert((kind, chunk["id"].to_string()), self.parts.len());
        let mut part = json!({ "type": kind, "text": "", "state": "streaming" });
        if kind == "reasoning" {
            part["id"] = chunk["id"].clone();
        }
        self.parts.push(part);
    }

    fn grow_words(&mut self, kind: &'static str, chunk: &Value) {
        let idx = self.words.get(&(kind, chunk["id"].to_string())).expect("words that started");
        let text = self.parts[*idx]["text"].as_str().unwrap().to_owned();
        self.parts[*idx]["text"] = json!(text + chunk["delta"].as_str().unwrap());
        self.note_metadata(*idx, chunk);
    }

    fn end_words(&mut self, kind: &'static str, chunk: &Value) {
        let idx = self.words.remove(&(kind, chunk["id"].to_string())).expect("words that started");
        self.parts[idx]["state"] = json!("done");
        self.note_metadata(idx, chunk);
    }

    fn note_metadata(&mut self, idx: usize, chunk: &Value) {
        if let Some(metadata) = chunk.get("providerMetadata") {
            self.parts[idx]["providerMetadata"] = metadata.clone();
        }
    }

    fn update_tool(&mut self, chunk: &Value, fields: Vec<(&str, Value)>) {
        let known = self.parts.iter().position(|it| it["toolCallId"] == chunk["toolCallId"]);
        let idx = known.unwrap_or_else(|| {
            let kind = format!("tool-{}", chunk["toolName"].as_str().unwrap());
            self.parts.push(json!({ "type": kind, "toolCallId": chunk["toolCallId"] }));
            self.parts.len() - 1
        });
        let part = self.parts[idx].as_object_mut().unwrap();
        part.extend(fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }

    fn tool(&mut self, chunk: &Value) -> &mut Value {
        let mut parts = self.parts.iter_mut();
        parts.find(|it| it["toolCallId"] == chunk["toolCallId"]).expect("a known call")
    }

    fn replace_data(&mut self, chunk: &Value) {
        let is_same = |it: &Value| {
            it["type"] == chunk["type"] && it["id"] == chunk["id"] && it.get("id").is_some()
        };
        match self.parts.iter().position(is_same) {
            Some(idx) => self.parts[idx] = chunk.clone(),
            None => self.parts.push(chunk.clone()),
        }
    }
}

fn merge(into: &mut Value, news: &Value) {
    match (into, news) {
        (Value::Object(into), Value::Object(news)) => {
            for (name, value) in news {
                merge(into.entry(name).or_insert(Value::Object(Map::new())), value);
            }
        }
        (into, news) => *into = news.clone(),
    }
}

type Fields = &'static [&'static str];

/// Returns the fields besides `type` that the first release of each version accepts, as far as Callboard sends
/// them: the required and the optional ones.
fn fields(kind: &str, profile: Profile) -> Option<(Fields, Fields)> {
    let v6 = profile != Profile::V5;
    let v7 = profile == Profile::V7;
    Some(match kind {
        "start" => (&[], &["messageId", "messageMetadata"]),
        "start-step" | "finish-step" => (&[], &[]),
        "text-start" | "text-end" | "reasoning-start" | "reasoning-end" => {
            (&["id"], &["providerMetadata"])
        }
        "text-delta" | "reasoning-delta" => (&["id", "delta"], &["providerMetadata"]),
        "tool-input-start" => (&["toolCallId", "toolName"], &[]),
        "tool-input-delta" => (&["toolCallId", "inputTextDelta"], &[]),
        "tool-input-available" => (&["toolCallId", "toolName", "input"], &[]),
        "tool-output-available" => (&["toolCallId", "output"], &[]),
        "tool-output-error" => (&["toolCallId", "errorText"], &[]),
        "tool-approval-request" if v6 => (&["approvalId", "toolCallId"], &[]),
        "tool-output-denied" if v6 => (&["toolCallId"], &[]),
        "tool-approval-response" if v7 => (&["approvalId", "approved"], &["reason"]),
        "message-metadata" => (&["messageMetadata"], &[]),
        "finish" if v6 => (&[], &["finishReason", "messageMetadata"]),
        "finish" => (&[], &["messageMetadata"]),
        "abort" if v7 => (&[], &["reason"]),
        "abort" => (&[], &[]),
        "error" => (&["errorText"], &[]),
        "source-url" => (&["sourceId", "url"], &["title", "providerMetadata"]),
        "source-document" => {
            (&["sourceId", "mediaType", "title"], &["filename", "providerMetadata"])
        }
        "file" => (&["url", "mediaType"], &["providerMetadata"]),
        _ if kind.starts_with("data-") => (&["data"], &["id", "transient"]),
        _ => return None,
    })
}
