//! Messages of the contract as events.
//!
//! They do not say: what an agent thought, arguments that are no object, the code of an error, whether
//! a call was refused, what a sub-agent did, usage and times of runs.

use serde_json::Value;
use transcript::{ErrorCode, ErrorInfo, Event, Level, RunStatus, SaidBy, SteerState};

use super::{Message, Role, ToolCallInfo};
use crate::import::{
    Beginning, Came, Ending, Entry, Holds, List, Retelling, Setting, as_text, items, run_of_status,
};

pub(crate) const MESSAGES: List = List {
    of: "messages",
    tag: "role",
    words: &["user", "assistant", "tool", "status"],
    fields: &[("content", &[Holds::Text]), ("metadata", &[Holds::Object])],
    read: import,
};

pub fn import(messages: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let messages = items(messages);
    let mut telling = Telling { retelling: Retelling::new(setting), status: RunStatus::Completed };
    for (idx, value) in messages.iter().enumerate() {
        let (before, later) = (&messages[..idx], &messages[idx + 1..]);
        match serde_json::from_value::<Message>(with_defaults(value, setting)) {
            Ok(message) => telling.message(&message, before, later),
            Err(_) => telling.retelling.unrecognized("message", &value.to_string()),
        }
    }
    telling.end();
    telling.retelling.into_entries()
}

struct Telling<'a> {
    retelling: Retelling<'a>,
    /// How the run ends, as its status messages tell.
    status: RunStatus,
}

impl Telling<'_> {
    fn message(&mut self, message: &Message, before: &[Value], later: &[Value]) {
        let at = Value::String(message.timestamp.to_string());
        match message.role {
            Role::User if self.retelling.is_steered(later) => {
                self.retelling.at(&at);
                self.retelling.steered(Some(&message.id), &message.content, SteerState::Seen);
            }
            Role::User => {
                self.end();
                self.retelling.at(&at);
                self.retelling.said(Some(&message.id), SaidBy::User, &message.content, &[]);
            }
            Role::Assistant => {
                if !self.retelling.goes_on(Some(&message.id)) {
                    self.end();
                }
                self.retelling.at(&at);
                self.retelling.step_of(Some(&message.id));
                if !message.content.is_empty() {
                    self.retelling.text(&message.content, None, false);
                }
                for call in &message.metadata.tool_calls {
                    self.call(call, later);
                }
            }
            Role::Tool => self.orphan(message, before),
            Role::Status => {
                // Of a run that has said nothing.
                let new_run = run_of_status(&message.id).filter(|run| !self.retelling.is_in(run));
                if new_run.is_some() {
                    self.end();
                }
                self.retelling.at(&at);
                if let Some(run) = new_run {
                    self.retelling.begin(&Beginning { id: Some(run), ..Beginning::default() });
                }
                self.aside(message);
            }
        }
    }

    fn call(&mut self, info: &ToolCallInfo, later: &[Value]) {
        let arguments =
            info.args.clone().map_or_else(String::new, |it| Value::Object(it).to_string());
        let summary = info.args_summary.as_deref().unwrap_or_default();
        let tool = later.iter().take_while(|it| it["role"] != "assistant").find(|it| {
            it["role"] == "tool" && it["metadata"]["tool_call_id"].as_str() == info.id.as_deref()
        });
        if let Some(tool) = tool {
            self.retelling.at(&tool["timestamp"]);
        }
        let id = info.id.as_deref();
        let call = self.retelling.start_call(id, &info.name);
        self.retelling.write_call(&call, &arguments, summary);
        let metadata = tool.map(|it| &it["metadata"]);
        if let Some((came, duration_ms)) = metadata.and_then(came) {
            self.retelling.result(&call, came, duration_ms);
        }
    }

    /// A result whose call no message has told of.
    fn orphan(&mut self, message: &Message, before: &[Value]) {
        let id = message.metadata.tool_call_id.as_deref();
        let calls = before.iter().rev().flat_map(|it| items(&it["metadata"]["tool_calls"]));
        let is_known = id.is_some() && calls.into_iter().any(|call| as_text(call, "id") == id);
        let metadata = serde_json::to_value(&message.metadata).unwrap_or_default();
        if !is_known && let Some((came, _)) = came(&metadata) {
            let name = message.metadata.tool_name.as_deref().unwrap_or_default();
            self.retelling.orphan(id, name, came);
        }
    }

    fn aside(&mut self, message: &Message) {
        match (&message.metadata.continuation, message.metadata.status_type) {
            (Some(said), _) => {
                let stopped = ["user_requested", "time_limit", "stop_requested"];
                if stopped.contains(&said.stop_reason.as_str()) {
                    self.status = RunStatus::Cancelled;
                }
                self.retelling.push(Event::Continuation {
                    should_continue: said.should_continue,
                    stop_reason: said.stop_reason.clone(),
                    resolved_by: said.resolved_by.clone(),
                    evaluations: Vec::new(),
                });
            }
            (None, Some(super::StatusType::Error)) if ends_a_run(&message.id) => {
                let error = ErrorInfo::new(ErrorCode::InternalError, message.content.clone());
                self.retelling.end(Ending { error: Some(error), ..Ending::of(RunStatus::Failed) });
            }
            (None, kind) => {
                let is_error = kind == Some(super::StatusType::Error);
                let level = if is_error { Level::Error } else { Level::Info };
                self.retelling.push(Event::Notice { level, text: message.content.clone() });
            }
        }
    }

    fn end(&mut self) {
        let status = std::mem::replace(&mut self.status, RunStatus::Completed);
        self.retelling.end(Ending::of(status));
    }
}

/// Whether an error is how a run ended. Others write no more of them than that; ours say it.
fn ends_a_run(id: &str) -> bool {
    id.starts_with("status_error_") || !id.starts_with("status_")
}

/// What came of a call, if anything did.
fn came(metadata: &Value) -> Option<(Came, u64)> {
    let duration_ms = metadata["tool_duration_ms"].as_u64().unwrap_or(0);
    match (as_text(metadata, "tool_error"), metadata.get("tool_result")) {
        (Some(error), _) => {
            let error = ErrorInfo::new(ErrorCode::ToolError, error);
            Some((Came::Failed(error), duration_ms))
        }
        (None, Some(result)) => Some((Came::Out(result.clone()), duration_ms)),
        (None, None) => None,
    }
}

/// Others leave out what is easily made.
fn with_defaults(message: &Value, setting: &Setting<'_>) -> Value {
    let mut message = message.clone();
    if let Some(fields) = message.as_object_mut() {
        fields.entry("id").or_insert_with(|| Value::String(String::new()));
        fields.entry("content").or_insert_with(|| Value::String(String::new()));
        let now = Value::String(setting.now.to_string());
        fields.entry("timestamp").or_insert(now);
    }
    message
}
