//! Messages of the contract as events.
//!
//! Not contained: arguments that are no object, codes of errors, denials of calls, actions of sub-agents, usage
//! and times of runs.

mod pairs;

use serde_json::Value;
use transcript::{
    CancelReason, ErrorCode, ErrorInfo, Event, Level, MessageRole, RunStatus, SteerState,
};

use self::pairs::Pairs;
use super::from_transcript::{CALL_STATUSES, ENDING, RUNNING, WAITING};
use super::{ContinuationInfo, Message, Role, StatusType, ToolCallInfo};
use crate::import::{
    Beginning, CallResult, Ending, Entry, Holds, List, LogBuilder, Remarks, Setting, as_text,
    items, run_of_status, run_of_step,
};

pub(crate) const MESSAGES: List = List {
    of: "messages",
    tag: "role",
    words: &["user", "assistant", "tool", "status"],
    fields: &[("content", &[Holds::Text]), ("metadata", &[Holds::Object])],
    read: import,
};

/// Imports a list of messages of `format=contract` as the log of a new session.
pub fn import(messages: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let messages = items(messages);
    let mut import = MessageImport {
        messages,
        pairs: Pairs::of(messages),
        names_runs: messages.iter().any(is_step_of_ours),
        builder: LogBuilder::new(setting),
        cut_off: None,
        failure: None,
    };
    for (idx, value) in messages.iter().enumerate() {
        match serde_json::from_value::<Message>(with_defaults(value, setting)) {
            Ok(message) => import.message(&message, idx),
            Err(_) => import.builder.unrecognized("message", &value.to_string()),
        }
    }
    import.end();
    import.builder.into_entries()
}

fn is_step_of_ours(message: &Value) -> bool {
    message["role"] == "assistant"
        && as_text(message, "id").is_some_and(|it| run_of_step(it).is_some())
}

struct MessageImport<'a> {
    messages: &'a [Value],
    pairs: Pairs,
    /// Whether the ids of step messages contain their run, which is only so in Callboard's exports.
    names_runs: bool,
    builder: LogBuilder<'a>,
    /// Reason why the open run was cut off, from its status messages; `None` if it was not.
    cut_off: Option<CancelReason>,
    /// Error of the open run, if it failed. The run is ended when the next one begins, because more
    /// of its status messages may follow.
    failure: Option<ErrorInfo>,
}

impl MessageImport<'_> {
    fn message(&mut self, message: &Message, idx: usize) {
        let (messages, later) = (self.messages, &self.messages[idx + 1..]);
        let at = Value::String(message.timestamp.to_string());
        match message.role {
            Role::User if self.builder.is_steered(later) => {
                self.builder.at(&at);
                self.builder.steered(Some(&message.id), &message.content, SteerState::Seen);
            }
            Role::User => {
                self.end();
                self.builder.at(&at);
                self.builder.input_message(
                    Some(&message.id),
                    MessageRole::User,
                    &message.content,
                    &[],
                );
            }
            Role::Assistant => {
                if self.failure.is_some() || !self.builder.continues_run(Some(&message.id)) {
                    self.end();
                }
                self.builder.at(&at);
                self.builder.step_of(Some(&message.id));
                if !message.content.is_empty() {
                    self.builder.text(&message.content, None, false);
                }
                for (nth, call) in message.metadata.tool_calls.iter().enumerate() {
                    let result = self.pairs.result_of(idx, nth).and_then(|it| messages.get(it));
                    self.call(call, result);
                }
            }
            Role::Tool if self.pairs.is_result(idx) => (),
            Role::Tool => self.orphan(message, &messages[idx]),
            Role::Status => self.status(message, later, &at),
        }
    }

    fn call(&mut self, info: &ToolCallInfo, tool: Option<&Value>) {
        let arguments =
            info.args.clone().map_or_else(String::new, |it| Value::Object(it).to_string());
        let summary = info.args_summary.as_deref().unwrap_or_default();
        if let Some(tool) = tool {
            self.builder.at(&tool["timestamp"]);
        }
        let id = info.id.as_deref();
        let call = self.builder.start_call(id, &info.name, Some(&arguments));
        self.builder.write_call(&call, &arguments, summary);
        if let Some((came, remarks)) = tool.and_then(came) {
            self.builder.result_with(&call, came, remarks);
        }
    }

    /// Imports a tool result whose tool call is in no message.
    fn orphan(&mut self, message: &Message, value: &Value) {
        let Some((came, remarks)) = came(value) else { return };
        let id = message.metadata.tool_call_id.as_deref();
        let name = message.metadata.tool_name.as_deref().unwrap_or_default();
        let call = self.builder.call(id, name, "");
        self.builder.result_with(&call, came, remarks);
    }

    fn status(&mut self, message: &Message, later: &[Value], at: &Value) {
        if CALL_STATUSES.iter().any(|it| message.id.starts_with(it)) {
            return;
        }
        if message.metadata.status_type == Some(StatusType::Thinking) {
            return self.thinking(message, later, at);
        }
        // A run without messages.
        let is_other =
            |run: &&str| !self.builder.is_in(run) && (self.names_runs || !self.builder.is_in_run());
        let new_run = run_of_status(&message.id).filter(is_other);
        if new_run.is_some() {
            self.end();
        }
        self.builder.at(at);
        if let Some(run) = new_run {
            self.builder.begin(&Beginning { id: Some(run), ..Beginning::default() });
        }
        self.aside(message);
    }

    /// Adds thinking to the run of the assistant message that follows it.
    fn thinking(&mut self, message: &Message, later: &[Value], at: &Value) {
        let mut of_run = later.iter().take_while(|it| it["role"] != "user");
        let next = of_run.find(|it| it["role"] == "assistant").and_then(|it| as_text(it, "id"));
        if self.failure.is_some() || (next.is_some() && !self.builder.continues_run(next)) {
            self.end();
        }
        self.builder.at(at);
        if !self.builder.is_in_run() {
            let id = next.map(|it| run_of_step(it).unwrap_or(it));
            self.builder.begin(&Beginning { id, ..Beginning::default() });
        }
        self.builder.thinking(None, &message.content, false);
    }

    fn aside(&mut self, message: &Message) {
        match (&message.metadata.continuation, message.metadata.status_type) {
            (Some(info), _) => self.continuation(info),
            (None, Some(StatusType::Error))
                if ends_a_run(&message.id) && self.builder.is_in_run() =>
            {
                let error = ErrorInfo::new(ErrorCode::InternalError, message.content.clone());
                self.failure = Some(error);
            }
            (None, kind) => {
                let is_error = kind == Some(StatusType::Error);
                let level = if is_error { Level::Error } else { Level::Info };
                self.builder.push(Event::Notice { level, text: message.content.clone() });
            }
        }
    }

    fn continuation(&mut self, info: &ContinuationInfo) {
        let cut_off = match info.stop_reason.as_str() {
            "user_requested" => Some(CancelReason::UserCancel),
            "time_limit" => Some(CancelReason::Timeout),
            "stop_requested" => Some(CancelReason::Import),
            _ => None,
        };
        self.cut_off = cut_off.or(self.cut_off);
        self.builder.push(Event::Continuation {
            should_continue: info.should_continue,
            stop_reason: info.stop_reason.clone(),
            resolved_by: info.resolved_by.clone(),
            evaluations: Vec::new(),
        });
    }

    fn end(&mut self) {
        let (reason, error) = (self.cut_off.take(), self.failure.take());
        self.builder.end(match (error, reason) {
            (Some(error), _) => Ending { error: Some(error), ..Ending::of(RunStatus::Failed) },
            (None, Some(_)) => Ending { reason, ..Ending::of(RunStatus::Cancelled) },
            (None, None) => Ending::of(RunStatus::Completed),
        });
    }
}

/// Returns whether an error message with this id ended its run. Only Callboard's exports have other
/// errors, with other ids.
fn ends_a_run(id: &str) -> bool {
    id.starts_with("status_error_") || !id.starts_with("status_")
}

/// Returns the outcome of a tool call from its tool message; `None` if it is open. Without a result
/// or an error, the message's content is the result, unless it is a placeholder such as "Running".
fn came(tool: &Value) -> Option<(CallResult, Remarks)> {
    let metadata = &tool["metadata"];
    let duration_ms = metadata["tool_duration_ms"].as_u64();
    let content = as_text(tool, "content").map(str::to_owned);
    let came = match (as_text(metadata, "tool_error"), metadata.get("tool_result")) {
        (Some(error), _) => CallResult::Failed(ErrorInfo::new(ErrorCode::ToolError, error)),
        (None, Some(result)) => CallResult::Output(result.clone()),
        (None, None) => {
            let content = content.clone()?;
            let is_placeholder = [RUNNING, WAITING, ENDING].contains(&content.as_str());
            (!is_placeholder).then_some(CallResult::Output(Value::String(content)))?
        }
    };
    Some((came, Remarks { summary: content, duration_ms, of_failure: None }))
}

/// Adds the id, content and timestamp, which messages of other programs may lack.
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
