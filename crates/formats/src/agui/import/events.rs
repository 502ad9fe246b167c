//! Import of AG-UI's events, of any number of runs.
//!
//! A run that waited for its client is several runs there: it continues where it is requested again without a new
//! message. The events do not contain times, the way a call ended, and decisions about it.

use std::collections::HashSet;

use serde_json::{Value, json};
use transcript::{ErrorCode, ErrorInfo, RunStatus};

use super::{message, result};
use crate::import::{Beginning, Ending, Entry, List, LogBuilder, Setting, as_text, items};
use crate::ui::import::data;

pub(crate) const EVENTS: List =
    List { of: "events", tag: "type", words: &[], fields: &[], read: import };

fn import(events: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let mut builder = LogBuilder::new(setting);
    let mut hearing = Hearing {
        builder: &mut builder,
        told: Vec::new(),
        open: HashSet::new(),
        known: HashSet::new(),
    };
    items(events).iter().for_each(|it| hearing.hear(it));
    hearing.tell_all();
    builder.into_entries()
}

struct Hearing<'r, 'a> {
    builder: &'r mut LogBuilder<'a>,
    /// Parts that were read but not imported yet, in the order in which they began. Several parts
    /// may be open at the same time.
    told: Vec<Told>,
    /// Parts that have begun and not ended, as kind and id.
    open: HashSet<(Kind, String)>,
    /// Parts and results that were read, as kind and id. Lists of messages may repeat them.
    known: HashSet<(Kind, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// A text part or a message, which has the id of its text.
    Text,
    Thinking,
    Call,
    /// The result of a tool call, identified by the id of the call.
    Result,
}

enum Told {
    Text { id: String, role: String, text: String },
    Thinking { id: String, text: String },
    Call { id: String, name: String, arguments: String },
    Result(Value),
    Custom(Value),
}

impl Told {
    fn key(&self) -> Option<(Kind, &str)> {
        match self {
            Self::Text { id, .. } => Some((Kind::Text, id)),
            Self::Thinking { id, .. } => Some((Kind::Thinking, id)),
            Self::Call { id, .. } => Some((Kind::Call, id)),
            Self::Result(_) | Self::Custom(_) => None,
        }
    }

    /// Returns the text or arguments to which deltas are appended, if the part has this kind and
    /// id.
    fn grown(&mut self, kind: Kind, id: &str) -> Option<&mut String> {
        let is_it = self.key() == Some((kind, id));
        match self {
            Self::Text { text, .. } | Self::Thinking { text, .. } if is_it => Some(text),
            Self::Call { arguments, .. } if is_it => Some(arguments),
            _ => None,
        }
    }
}

impl Hearing<'_, '_> {
    fn hear(&mut self, event: &Value) {
        let message = as_text(event, "messageId").unwrap_or_default();
        let call = as_text(event, "toolCallId").unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "RUN_STARTED" => self.start(event),
            "RUN_FINISHED" => self.finish(event),
            "RUN_ERROR" => {
                self.tell_all();
                let error = Some(run_error(event));
                self.builder.end(Ending { error, ..Ending::of(RunStatus::Failed) });
            }
            "STEP_STARTED" => {
                self.tell_ended();
                self.builder.step();
            }
            "STEP_FINISHED" => {
                self.tell_ended();
                self.builder.end_step(None, None);
            }
            "TEXT_MESSAGE_START" => self.begin(text(event, message)),
            "REASONING_MESSAGE_START" => self.begin(thinking(message)),
            "TOOL_CALL_START" => self.begin(tool_call(event, call)),
            "TEXT_MESSAGE_CONTENT" => self.grow(text(event, message), event),
            "REASONING_MESSAGE_CONTENT" => self.grow(thinking(message), event),
            "TOOL_CALL_ARGS" => self.grow(tool_call(event, call), event),
            "TEXT_MESSAGE_CHUNK" => self.chunk(text(event, message), event),
            "REASONING_MESSAGE_CHUNK" => self.chunk(thinking(message), event),
            "TOOL_CALL_CHUNK" => self.chunk(tool_call(event, call), event),
            "TEXT_MESSAGE_END" => self.end(Kind::Text, message),
            "REASONING_MESSAGE_END" => self.end(Kind::Thinking, message),
            "TOOL_CALL_END" => self.end(Kind::Call, call),
            "TOOL_CALL_RESULT" => {
                self.end(Kind::Call, call);
                self.known.insert((Kind::Text, message.to_owned()));
                if call.is_empty() || self.known.insert((Kind::Result, call.to_owned())) {
                    self.told.push(Told::Result(event.clone()));
                }
            }
            "MESSAGES_SNAPSHOT" => {
                self.tell_ended();
                self.say_new(&event["messages"]);
            }
            "REASONING_START" | "REASONING_END" => (),
            _ => self.told.push(Told::Custom(event.clone())),
        }
    }

    fn start(&mut self, event: &Value) {
        self.tell_all();
        self.say_new(&event["input"]["messages"]);
        if !self.builder.is_in_run() {
            let id = as_text(event, "runId");
            self.builder.begin(&Beginning { id, ..Beginning::default() });
        }
    }

    /// Imports the messages of a list that were neither in an event nor in an earlier list.
    fn say_new(&mut self, messages: &Value) {
        for it in items(messages) {
            if self.insert_new(it) {
                message(it, self.builder);
            }
        }
    }

    /// Remembers the ids of a message and of its tool calls. Returns whether none of them was
    /// known.
    fn insert_new(&mut self, message: &Value) -> bool {
        let key = |kind, id: Option<&str>| Some((kind, id?.to_owned()));
        let id = as_text(message, "id");
        let own = match message["role"].as_str() {
            Some("tool") => key(Kind::Result, as_text(message, "toolCallId")),
            Some("reasoning") => key(Kind::Thinking, id),
            _ => key(Kind::Text, id),
        };
        let calls =
            items(&message["toolCalls"]).iter().map(|it| key(Kind::Call, as_text(it, "id")));
        let keys: Vec<(Kind, String)> = calls.chain([own]).flatten().collect();
        let is_new = !keys.iter().any(|it| self.known.contains(it));
        self.known.extend(keys);
        is_new
    }

    fn finish(&mut self, event: &Value) {
        self.tell_all();
        // It waits for its client.
        if event["outcome"]["type"] == "interrupt" || self.builder.has_open_calls() {
            return;
        }
        let is_stopped =
            event["result"]["status"] == "cancelled" || event["outcome"]["type"] == "cancelled";
        let status = if is_stopped { RunStatus::Cancelled } else { RunStatus::Completed };
        self.builder.end(Ending::of(status));
    }

    fn begin(&mut self, told: Told) {
        self.open.extend(told.key().map(|(kind, id)| (kind, id.to_owned())));
        self.add(told);
    }

    fn end(&mut self, kind: Kind, id: &str) {
        self.open.remove(&(kind, id.to_owned()));
    }

    fn add(&mut self, told: Told) {
        self.known.extend(told.key().map(|(kind, id)| (kind, id.to_owned())));
        self.told.push(told);
    }

    /// Appends a delta to a part, which begins if it is unknown. A delta of an unknown tool call is
    /// kept as a custom event, because the name of its tool is missing.
    fn grow(&mut self, begun: Told, event: &Value) {
        let Some((kind, id)) = begun.key() else { return };
        let is_there = self.told.iter_mut().any(|it| it.grown(kind, id).is_some());
        match kind {
            _ if is_there => self.push(kind, id, event),
            Kind::Call => self.told.push(Told::Custom(event.clone())),
            _ => {
                let id = id.to_owned();
                self.begin(begun);
                self.push(kind, &id, event);
            }
        }
    }

    /// Appends a `*_CHUNK` event to its part, which begins if it is unknown. Without an id, the
    /// event continues the last part of its kind.
    fn chunk(&mut self, begun: Told, event: &Value) {
        let Some((kind, id)) = begun.key() else { return };
        let keys = self.told.iter().rev().filter_map(Told::key);
        let last = keys.filter(|(it, _)| *it == kind).map(|(_, id)| id).next();
        let id = if id.is_empty() { last.unwrap_or_default() } else { id }.to_owned();
        if !self.told.iter_mut().any(|it| it.grown(kind, &id).is_some()) {
            self.add(begun);
        }
        self.push(kind, &id, event);
    }

    fn push(&mut self, kind: Kind, id: &str, event: &Value) {
        let delta = event["delta"].as_str().unwrap_or_default();
        if let Some(grown) = self.told.iter_mut().rev().find_map(|it| it.grown(kind, id)) {
            grown.push_str(delta);
        }
    }

    /// Imports all parts that have ended. Open parts remain in `told`.
    fn tell_ended(&mut self) {
        let open = std::mem::take(&mut self.open);
        let is_open =
            |it: &Told| it.key().is_some_and(|(kind, id)| open.contains(&(kind, id.to_owned())));
        let told = std::mem::take(&mut self.told);
        let (kept, ended): (Vec<Told>, Vec<Told>) = told.into_iter().partition(is_open);
        ended.into_iter().for_each(|it| self.tell(it));
        (self.told, self.open) = (kept, open);
    }

    fn tell_all(&mut self) {
        self.open.clear();
        self.tell_ended();
    }

    fn tell(&mut self, told: Told) {
        match told {
            Told::Text { id, role, text } if role == "assistant" => {
                self.builder.text_as(Some(&id), &text);
            }
            Told::Text { id, role, text } => {
                message(&json!({ "id": id, "role": role, "content": text }), self.builder);
            }
            Told::Thinking { id, text } => self.builder.thinking(Some(&id), &text, false),
            Told::Call { id, name, arguments } => {
                self.builder.call(Some(&id), &name, &arguments);
            }
            Told::Result(event) => {
                let text = match &event["content"] {
                    Value::String(text) => text.clone(),
                    pieces => {
                        let texts = items(pieces).iter().filter_map(|it| as_text(it, "text"));
                        texts.collect::<Vec<_>>().join("\n\n")
                    }
                };
                result(&event, &text, self.builder);
            }
            Told::Custom(event) => {
                let name = as_text(&event, "name").and_then(|it| it.strip_prefix("data-"));
                match name.filter(|_| event["type"] == "CUSTOM") {
                    Some(name) => data(&json!({ "data": event["value"] }), name, self.builder),
                    None => self.builder.unrecognized("event", &event.to_string()),
                }
            }
        }
    }
}

fn text(event: &Value, id: &str) -> Told {
    let role = as_text(event, "role").unwrap_or("assistant").to_owned();
    Told::Text { id: id.to_owned(), role, text: String::new() }
}

fn thinking(id: &str) -> Told {
    Told::Thinking { id: id.to_owned(), text: String::new() }
}

fn tool_call(event: &Value, id: &str) -> Told {
    let name = as_text(event, "toolCallName").unwrap_or_default().to_owned();
    Told::Call { id: id.to_owned(), name, arguments: String::new() }
}

fn run_error(event: &Value) -> ErrorInfo {
    let message = as_text(event, "message").unwrap_or("The run failed.");
    let code = serde_json::from_value(event["code"].clone()).unwrap_or(ErrorCode::UpstreamError);
    ErrorInfo::new(code, message)
}
