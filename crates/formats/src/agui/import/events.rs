//! Events of AG-UI as ours, of as many runs as there are.
//!
//! A run that needed its client is several there: it goes on where it is asked for again and nothing new is
//! said. They do not say: when anything happened, how a call ended, what was decided about it.

use std::collections::HashSet;

use serde_json::{Value, json};
use transcript::{ErrorCode, ErrorInfo, RunStatus};

use super::{message, result};
use crate::import::{Beginning, Ending, Entry, List, Retelling, Setting, as_text, items};
use crate::ui::import::data;

pub(crate) const EVENTS: List =
    List { of: "events", tag: "type", words: &[], fields: &[], read: import };

fn import(events: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let mut retelling = Retelling::new(setting);
    let mut hearing = Hearing { retelling: &mut retelling, told: Vec::new(), said: HashSet::new() };
    items(events).iter().for_each(|it| hearing.hear(it));
    hearing.tell_all();
    retelling.into_entries()
}

struct Hearing<'r, 'a> {
    retelling: &'r mut Retelling<'a>,
    /// Since the last step began or ended, in the order in which it began: several things may grow at once.
    told: Vec<Told>,
    /// By the ids of the messages.
    said: HashSet<String>,
}

enum Told {
    Text { id: String, role: String, text: String },
    Thinking { id: String, text: String },
    Call { id: String, name: String, arguments: String },
    Result(Value),
    Custom(Value),
}

impl Told {
    /// What grows, if it is that.
    fn grown(&mut self, of: &str) -> Option<&mut String> {
        match self {
            Self::Text { id, text, .. } | Self::Thinking { id, text } if id == of => Some(text),
            Self::Call { id, arguments, .. } if id == of => Some(arguments),
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
                self.retelling.end(Ending { error, ..Ending::of(RunStatus::Failed) });
            }
            "STEP_STARTED" => {
                self.tell_all();
                self.retelling.step();
            }
            "STEP_FINISHED" => {
                self.tell_all();
                self.retelling.end_step(None, None);
            }
            "TEXT_MESSAGE_START" => self.told.push(text(event, message)),
            "REASONING_MESSAGE_START" => self.told.push(thinking(message)),
            "TOOL_CALL_START" => self.told.push(tool_call(event, call)),
            "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => self.grow(message, event),
            "TOOL_CALL_ARGS" => self.grow(call, event),
            "TEXT_MESSAGE_CHUNK" => self.chunk(event, message, |id| text(event, id)),
            "REASONING_MESSAGE_CHUNK" => self.chunk(event, message, thinking),
            "TOOL_CALL_CHUNK" => self.chunk(event, call, |id| tool_call(event, id)),
            "TOOL_CALL_RESULT" => self.told.push(Told::Result(event.clone())),
            "MESSAGES_SNAPSHOT" => {
                self.tell_all();
                self.say_new(&event["messages"]);
            }
            "TEXT_MESSAGE_END" | "REASONING_MESSAGE_END" | "TOOL_CALL_END" => (),
            "REASONING_START" | "REASONING_END" => (),
            _ => self.told.push(Told::Custom(event.clone())),
        }
    }

    fn start(&mut self, event: &Value) {
        self.tell_all();
        self.say_new(&event["input"]["messages"]);
        if !self.retelling.is_in_run() {
            let id = as_text(event, "runId");
            self.retelling.begin(&Beginning { id, ..Beginning::default() });
        }
    }

    /// What others say besides the agent; what the agent said is told by its events.
    fn say_new(&mut self, messages: &Value) {
        for it in items(messages) {
            let is_new = as_text(it, "id").is_none_or(|id| self.said.insert(id.to_owned()));
            if is_new && matches!(it["role"].as_str(), Some("user" | "system" | "developer")) {
                message(it, self.retelling);
            }
        }
    }

    fn finish(&mut self, event: &Value) {
        self.tell_all();
        // It waits for its client.
        if event["outcome"]["type"] == "interrupt" || self.retelling.has_open_calls() {
            return;
        }
        let is_stopped =
            event["result"]["status"] == "cancelled" || event["outcome"]["type"] == "cancelled";
        let status = if is_stopped { RunStatus::Cancelled } else { RunStatus::Completed };
        self.retelling.end(Ending::of(status));
    }

    fn grow(&mut self, id: &str, event: &Value) {
        let delta = event["delta"].as_str().unwrap_or_default();
        if let Some(grown) = self.told.iter_mut().rev().find_map(|it| it.grown(id)) {
            grown.push_str(delta);
        }
    }

    /// A beginning and a piece in one. Without an id it goes on with the last.
    fn chunk(&mut self, event: &Value, id: &str, begin: impl Fn(&str) -> Told) {
        let last = self.told.last().and_then(Told::id).map(str::to_owned);
        let id = if id.is_empty() { last.unwrap_or_default() } else { id.to_owned() };
        if !self.told.iter_mut().any(|it| it.grown(&id).is_some()) {
            self.told.push(begin(&id));
        }
        self.grow(&id, event);
    }

    fn tell_all(&mut self) {
        for told in std::mem::take(&mut self.told) {
            self.tell(told);
        }
    }

    fn tell(&mut self, told: Told) {
        match told {
            Told::Text { id, role, text } if role == "assistant" => {
                self.retelling.text_as(Some(&id), &text);
            }
            Told::Text { id, role, text } => {
                self.say_new(&json!([{ "id": id, "role": role, "content": text }]));
            }
            Told::Thinking { id, text } => self.retelling.thinking(Some(&id), &text, false),
            Told::Call { id, name, arguments } => {
                self.retelling.call(Some(&id), &name, &arguments);
            }
            Told::Result(event) => {
                let text = match &event["content"] {
                    Value::String(text) => text.clone(),
                    pieces => {
                        let texts = items(pieces).iter().filter_map(|it| as_text(it, "text"));
                        texts.collect::<Vec<_>>().join("\n\n")
                    }
                };
                result(&event, &text, self.retelling);
            }
            Told::Custom(event) => {
                let name = as_text(&event, "name").and_then(|it| it.strip_prefix("data-"));
                match name.filter(|_| event["type"] == "CUSTOM") {
                    Some(name) => data(&json!({ "data": event["value"] }), name, self.retelling),
                    None => self.retelling.unrecognized("event", &event.to_string()),
                }
            }
        }
    }
}

impl Told {
    fn id(&self) -> Option<&str> {
        match self {
            Self::Text { id, .. } | Self::Thinking { id, .. } | Self::Call { id, .. } => Some(id),
            Self::Result(_) | Self::Custom(_) => None,
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
