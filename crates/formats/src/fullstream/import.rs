//! Import of `fullStream` events of one run, or of messages of `format=fullstream`.
//!
//! They do not contain times other than the ends of steps, durations of calls, and actions of sub-agents.

use std::collections::HashMap;

use serde_json::{Value, json};
use transcript::{CallId, ErrorCode, ErrorInfo, MessageRole, RunStatus, Usage};

use crate::import::{
    Beginning, CallResult, Ending, Entry, Holds, List, LogBuilder, Setting, arguments_text,
    as_text, error_info, items,
};
use crate::ui::import::data;

pub(crate) const MESSAGES: List = List {
    of: "messages",
    tag: "role",
    words: &["user", "assistant", "system"],
    fields: &[("content", &[Holds::Text]), ("events", &[Holds::List])],
    read: import,
};

pub(crate) const EVENTS: List =
    List { of: "events", tag: "type", words: &[], fields: &[], read: import };

/// Imports a list of runs and messages, or of the `fullStream` events of one run, as the log of a
/// new session.
pub fn import(stream: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let list = items(stream);
    let mut builder = LogBuilder::new(setting);
    if !list.is_empty() && list.iter().all(|it| it.get("role").is_none()) {
        run(&json!({ "events": list }), &mut builder);
        return builder.into_entries();
    }
    for message in list {
        builder.at(&message["createdAt"]);
        let text = message["content"].as_str().unwrap_or_default();
        match message["role"].as_str() {
            Some("user") => {
                builder.input_message(as_text(message, "id"), MessageRole::User, text, &[])
            }
            Some("system") => {
                builder.input_message(as_text(message, "id"), MessageRole::System, text, &[])
            }
            Some("assistant") => run(message, &mut builder),
            _ => builder.unrecognized("message", &message.to_string()),
        }
    }
    builder.into_entries()
}

fn run(message: &Value, builder: &mut LogBuilder<'_>) {
    let (agent, model) = (as_text(message, "agent"), as_text(message, "model"));
    builder.begin(&Beginning { id: as_text(message, "id"), agent, model });
    let mut reader =
        EventReader { builder, pending: Vec::new(), calls: HashMap::new(), ending: None };
    for event in items(&message["events"]) {
        reader.handle(event);
    }
    reader.import_all();
    let ending = reader.ending.take().unwrap_or_else(|| Ending::of(RunStatus::Completed));
    let duration_ms = message["durationMs"].as_u64();
    builder.end(Ending { duration_ms, ..ending });
}

struct EventReader<'r, 'a> {
    builder: &'r mut LogBuilder<'a>,
    /// Texts, thinking and data parts that were not imported yet, in the order in which they began.
    pending: Vec<Words>,
    /// Tool calls by their ids in the stream.
    calls: HashMap<String, ReadCall>,
    ending: Option<Ending>,
}

struct ReadCall {
    id: CallId,
    /// Arguments of the tool call as they streamed, as JSON text.
    input: String,
}

struct Words {
    kind: &'static str,
    id: Value,
    text: String,
    discarded: bool,
    has_ended: bool,
}

impl EventReader<'_, '_> {
    fn handle(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "start-step" => {
                self.import_all();
                self.builder.step();
            }
            "finish-step" => {
                self.import_all();
                self.builder.at(&event["response"]["timestamp"]);
                let raw = as_text(event, "rawFinishReason");
                let reason = raw.or_else(|| as_text(event, "finishReason"));
                self.builder.end_step(reason, usage(&event["usage"]));
            }
            "text-start" => self.begin("text", event),
            "text-delta" => self.grow("text", event),
            "text-end" => self.end("text", event),
            "reasoning-start" => self.begin("reasoning", event),
            "reasoning-delta" => self.grow("reasoning", event),
            "reasoning-end" => self.end("reasoning", event),
            "tool-input-start" => self.start_call(event, "id", None),
            "tool-input-delta" => {
                let call = as_text(event, "id").and_then(|id| self.calls.get_mut(id));
                if let (Some(call), Some(delta)) = (call, event["delta"].as_str()) {
                    call.input.push_str(delta);
                }
            }
            "tool-call" => self.write_call(event),
            "tool-approval-response" => self.decision(event),
            "tool-result" if event["preliminary"] != true => {
                self.result(event, CallResult::Output(event["output"].clone()));
            }
            "tool-error" => self.result(event, CallResult::Failed(error_info(&event["error"]))),
            "tool-output-denied" => {
                let refused = || ErrorInfo::new(ErrorCode::ToolDenied, "The call was refused.");
                let error = event.get("error").map_or_else(refused, error_info);
                self.result(event, CallResult::Failed(error));
            }
            "finish" => {
                let usage = usage(&event["totalUsage"]);
                self.ending.get_or_insert_with(|| Ending::of(RunStatus::Completed)).usage = usage;
            }
            "abort" => {
                let usage = usage(&event["totalUsage"]);
                self.ending = Some(Ending { usage, ..Ending::of(RunStatus::Cancelled) });
            }
            "error" => {
                let error = Some(error_info(&event["error"]));
                self.ending = Some(Ending { error, ..Ending::of(RunStatus::Failed) });
            }
            "raw" => self.raw(&event["rawValue"]),
            // Repeats of other events, and events without content.
            "start" | "tool-input-end" | "tool-result" | "tool-approval-request" | "ping" => (),
            _ => self.builder.unrecognized("fullStream", &event.to_string()),
        }
    }

    fn begin(&mut self, kind: &'static str, event: &Value) {
        let (id, text) = (event["id"].clone(), String::new());
        self.pending.push(Words { kind, id, text, discarded: false, has_ended: false });
    }

    fn open(&mut self, kind: &str, event: &Value) -> Option<&mut Words> {
        let mut pending = self.pending.iter_mut().rev();
        pending.find(|it| it.kind == kind && it.id == event["id"] && !it.has_ended)
    }

    /// Appends a delta to a text or thinking, which begins if it is unknown: older streams have
    /// only deltas.
    fn grow(&mut self, kind: &'static str, event: &Value) {
        let delta = as_text(event, "text").or_else(|| as_text(event, "delta")).unwrap_or_default();
        if self.open(kind, event).is_none() {
            self.begin(kind, event);
        }
        if let Some(words) = self.open(kind, event) {
            words.text.push_str(delta);
        }
    }

    fn end(&mut self, kind: &'static str, event: &Value) {
        let discarded = event["providerMetadata"]["callboard"]["discarded"] == true;
        if let Some(words) = self.open(kind, event) {
            (words.discarded, words.has_ended) = (discarded, true);
        }
        self.import_ended();
    }

    fn import_ended(&mut self) {
        while self.pending.first().is_some_and(|it| it.has_ended) {
            let words = self.pending.remove(0);
            self.import_words(&words);
        }
    }

    fn import_words(&mut self, words: &Words) {
        match words.kind {
            "text" => self.builder.text(&words.text, None, words.discarded),
            "raw" => self.note(&words.id),
            _ => self.builder.thinking(None, &words.text, words.discarded),
        }
    }

    fn import_all(&mut self) {
        for words in std::mem::take(&mut self.pending) {
            self.import_words(&words);
        }
    }

    /// Starts a tool call. Open texts are imported before it, because they led to the call.
    fn start_call(&mut self, event: &Value, id_field: &str, arguments: Option<&str>) {
        self.import_all();
        let id = as_text(event, id_field);
        let name = as_text(event, "toolName").unwrap_or_default();
        let call = self.builder.start_call(id, name, arguments);
        let list = ReadCall { id: call, input: String::new() };
        self.calls.insert(id.unwrap_or_default().to_owned(), list);
    }

    fn call(&mut self, event: &Value, arguments: Option<&str>) -> Option<CallId> {
        let name = as_text(event, "toolCallId").unwrap_or_default();
        if !self.calls.contains_key(name) {
            self.start_call(event, "toolCallId", arguments);
        }
        self.calls.get(name).map(|it| it.id.clone())
    }

    /// Completes the arguments of a tool call. The streamed text is kept, unless the event has a
    /// different value.
    fn write_call(&mut self, event: &Value) {
        let written = arguments_text(&event["input"]);
        let Some(call) = self.call(event, Some(&written)) else { return };
        let streamed = as_text(event, "toolCallId").and_then(|id| self.calls.get(id));
        let streamed = streamed.map(|it| it.input.clone()).unwrap_or_default();
        let is_same = read_arguments(&streamed) == read_arguments(&written);
        let arguments = if is_same { streamed } else { written };
        self.builder.write_call(&call, &arguments, "");
    }

    fn decision(&mut self, event: &Value) {
        let call = as_text(event, "toolCallId").and_then(|id| self.calls.get(id));
        let call = call.map(|it| it.id.clone());
        if let (Some(call), Some(approved)) = (call, event["approved"].as_bool()) {
            self.builder.decided(&call, approved, as_text(event, "reason"));
        }
    }

    fn result(&mut self, event: &Value, came: CallResult) {
        if let Some(call) = self.call(event, None) {
            self.builder.result(&call, came);
        }
    }

    fn raw(&mut self, value: &Value) {
        self.pending.push(Words {
            kind: "raw",
            id: value.clone(),
            text: String::new(),
            discarded: false,
            has_ended: true,
        });
        self.import_ended();
    }

    fn note(&mut self, value: &Value) {
        match value["type"].as_str().and_then(|it| it.strip_prefix("data-")) {
            Some(name) => data(value, name, self.builder),
            None => self.builder.unrecognized("fullStream", &value.to_string()),
        }
    }
}

/// Parses the arguments of a tool call, to compare them. Empty text is an empty object, and invalid
/// JSON is a string.
fn read_arguments(text: &str) -> Value {
    let text = if text.trim().is_empty() { "{}" } else { text };
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

fn usage(counts: &Value) -> Option<Usage> {
    let count = |name: &str| counts[name].as_u64();
    let (input, output) = (count("inputTokens"), count("outputTokens"));
    if input.is_none() && output.is_none() {
        return None;
    }
    let (input_tokens, output_tokens) = (input.unwrap_or(0), output.unwrap_or(0));
    Some(Usage {
        input_tokens,
        output_tokens,
        total_tokens: count("totalTokens").unwrap_or(input_tokens.saturating_add(output_tokens)),
        cached_tokens: count("cachedInputTokens"),
        reasoning_tokens: count("reasoningTokens"),
    })
}
