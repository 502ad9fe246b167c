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
    let mut reader = EventReader {
        builder: &mut builder,
        pending: Vec::new(),
        open: HashSet::new(),
        known: HashSet::new(),
    };
    items(events).iter().for_each(|it| reader.handle(it));
    reader.import_all();
    builder.into_entries()
}

struct EventReader<'r, 'a> {
    builder: &'r mut LogBuilder<'a>,
    /// Parts that were read but not imported yet, in the order in which they began. Several parts
    /// may be open at the same time.
    pending: Vec<Item>,
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

enum Item {
    Text { id: String, role: String, text: String },
    Thinking { id: String, text: String },
    Call { id: String, name: String, arguments: String },
    Result(Value),
    Custom(Value),
}

impl Item {
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

impl EventReader<'_, '_> {
    fn handle(&mut self, event: &Value) {
        let message = as_text(event, "messageId").unwrap_or_default();
        let call = as_text(event, "toolCallId").unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "RUN_STARTED" => self.start(event),
            "RUN_FINISHED" => self.finish(event),
            "RUN_ERROR" => {
                self.import_all();
                let error = Some(run_error(event));
                self.builder.end(Ending { error, ..Ending::of(RunStatus::Failed) });
            }
            "STEP_STARTED" => {
                self.import_ended();
                self.builder.step();
            }
            "STEP_FINISHED" => {
                self.import_ended();
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
                    self.pending.push(Item::Result(event.clone()));
                }
            }
            "MESSAGES_SNAPSHOT" => {
                self.import_ended();
                self.import_new(&event["messages"]);
            }
            "REASONING_START" | "REASONING_END" => (),
            _ => self.pending.push(Item::Custom(event.clone())),
        }
    }

    fn start(&mut self, event: &Value) {
        self.import_all();
        self.import_new(&event["input"]["messages"]);
        if !self.builder.is_in_run() {
            let id = as_text(event, "runId");
            self.builder.begin(&Beginning { id, ..Beginning::default() });
        }
    }

    /// Imports the messages of a list that were neither in an event nor in an earlier list.
    fn import_new(&mut self, messages: &Value) {
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
        self.import_all();
        // It waits for its client.
        if event["outcome"]["type"] == "interrupt" || self.builder.has_open_calls() {
            return;
        }
        let is_stopped =
            event["result"]["status"] == "cancelled" || event["outcome"]["type"] == "cancelled";
        let status = if is_stopped { RunStatus::Cancelled } else { RunStatus::Completed };
        self.builder.end(Ending::of(status));
    }

    fn begin(&mut self, pending: Item) {
        self.open.extend(pending.key().map(|(kind, id)| (kind, id.to_owned())));
        self.add(pending);
    }

    fn end(&mut self, kind: Kind, id: &str) {
        self.open.remove(&(kind, id.to_owned()));
    }

    fn add(&mut self, pending: Item) {
        self.known.extend(pending.key().map(|(kind, id)| (kind, id.to_owned())));
        self.pending.push(pending);
    }

    /// Appends a delta to a part, which begins if it is unknown. A delta of an unknown tool call is
    /// kept as a custom event, because the name of its tool is missing.
    fn grow(&mut self, begun: Item, event: &Value) {
        let Some((kind, id)) = begun.key() else { return };
        let is_there = self.pending.iter_mut().any(|it| it.grown(kind, id).is_some());
        match kind {
            _ if is_there => self.push(kind, id, event),
            Kind::Call => self.pending.push(Item::Custom(event.clone())),
            _ => {
                let id = id.to_owned();
                self.begin(begun);
                self.push(kind, &id, event);
            }
        }
    }

    /// Appends a `*_CHUNK` event to its part, which begins if it is unknown. Without an id, the
    /// event continues the last part of its kind.
    fn chunk(&mut self, begun: Item, event: &Value) {
        let Some((kind, id)) = begun.key() else { return };
        let keys = self.pending.iter().rev().filter_map(Item::key);
        let last = keys.filter(|(it, _)| *it == kind).map(|(_, id)| id).next();
        let id = if id.is_empty() { last.unwrap_or_default() } else { id }.to_owned();
        if !self.pending.iter_mut().any(|it| it.grown(kind, &id).is_some()) {
            self.add(begun);
        }
        self.push(kind, &id, event);
    }

    fn push(&mut self, kind: Kind, id: &str, event: &Value) {
        let delta = event["delta"].as_str().unwrap_or_default();
        if let Some(grown) = self.pending.iter_mut().rev().find_map(|it| it.grown(kind, id)) {
            grown.push_str(delta);
        }
    }

    /// Imports all parts that have ended. Open parts remain in `pending`.
    fn import_ended(&mut self) {
        let open = std::mem::take(&mut self.open);
        let is_open =
            |it: &Item| it.key().is_some_and(|(kind, id)| open.contains(&(kind, id.to_owned())));
        let pending = std::mem::take(&mut self.pending);
        let (kept, ended): (Vec<Item>, Vec<Item>) = pending.into_iter().partition(is_open);
        ended.into_iter().for_each(|it| self.import_item(it));
        (self.pending, self.open) = (kept, open);
    }

    fn import_all(&mut self) {
        self.open.clear();
        self.import_ended();
    }

    fn import_item(&mut self, pending: Item) {
        match pending {
            Item::Text { id, role, text } if role == "assistant" => {
                self.builder.text_as(Some(&id), &text);
            }
            Item::Text { id, role, text } => {
                message(&json!({ "id": id, "role": role, "content": text }), self.builder);
            }
            Item::Thinking { id, text } => self.builder.thinking(Some(&id), &text, false),
            Item::Call { id, name, arguments } => {
                self.builder.call(Some(&id), &name, &arguments);
            }
            Item::Result(event) => {
                let text = match &event["content"] {
                    Value::String(text) => text.clone(),
                    pieces => {
                        let texts = items(pieces).iter().filter_map(|it| as_text(it, "text"));
                        texts.collect::<Vec<_>>().join("\n\n")
                    }
                };
                result(&event, &text, self.builder);
            }
            Item::Custom(event) => {
                let name = as_text(&event, "name").and_then(|it| it.strip_prefix("data-"));
                match name.filter(|_| event["type"] == "CUSTOM") {
                    Some(name) => data(&json!({ "data": event["value"] }), name, self.builder),
                    None => self.builder.unrecognized("event", &event.to_string()),
                }
            }
        }
    }
}

fn text(event: &Value, id: &str) -> Item {
    let role = as_text(event, "role").unwrap_or("assistant").to_owned();
    Item::Text { id: id.to_owned(), role, text: String::new() }
}

fn thinking(id: &str) -> Item {
    Item::Thinking { id: id.to_owned(), text: String::new() }
}

fn tool_call(event: &Value, id: &str) -> Item {
    let name = as_text(event, "toolCallName").unwrap_or_default().to_owned();
    Item::Call { id: id.to_owned(), name, arguments: String::new() }
}

fn run_error(event: &Value) -> ErrorInfo {
    let message = as_text(event, "message").unwrap_or("The run failed.");
    let code = serde_json::from_value(event["code"].clone()).unwrap_or(ErrorCode::UpstreamError);
    ErrorInfo::new(code, message)
}
