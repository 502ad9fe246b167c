//! Tool calls: their state machine, from the first event to the one result.

use serde::Serialize;
use serde_json::Value;

use super::excerpt::excerpt;
use super::result_summary::result_summary;
use crate::{
    ApprovalOptions, Attachment, Body, CallId, Decision, ErrorCode, ErrorInfo, Executor, Millis,
    Scope, Seq, Truncated, Validation,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub id: CallId,
    pub provider_call_id: Option<String>,
    /// Empty where the provider gave none; see [`Call::label`].
    pub name: String,
    /// From 1, in the order of the message's calls.
    pub number: u32,
    pub executor: Executor,
    pub arguments: Body,
    /// `tool_arguments_done` has come.
    pub arguments_done: bool,
    /// The arguments broke off; they were never run.
    pub arguments_incomplete: bool,
    pub summary: String,
    pub validation: Option<Validation>,
    pub provider_data: Option<Value>,
    pub approval: Option<Approval>,
    /// The earlier decision because of which nobody was asked.
    pub granted: Option<AppliedGrant>,
    /// The arguments as a person changed them before it was allowed; see [`Call::input`].
    pub edited: Option<Body>,
    /// The arguments that count as a value, in which long texts and lists are cut; none while they come, and
    /// where they cannot be read.
    pub input_value: Option<Value>,
    pub running_since: Option<Millis>,
    pub stdout: Body,
    pub stderr: Body,
    pub retries: Vec<Retry>,
    pub outcome: Option<CallOutcome>,
    pub state: CallState,
    /// Indexes of the texts that led to it.
    pub commentary: Vec<usize>,
}

/// The one state machine of a tool call. Other vocabularies are views of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    StreamingInput,
    AwaitingApproval,
    Queued,
    Running,
    Succeeded,
    Failed,
    Denied,
    Interrupted,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    pub options: Option<ApprovalOptions>,
    pub requested_at: Millis,
    pub resolved: Option<Resolution>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    pub at: Millis,
    pub decision: Decision,
    pub scope: Option<Scope>,
    /// What ran instead of what was proposed.
    pub arguments: Option<String>,
    pub feedback: Option<String>,
    /// Its scope, if that is more than this call; see [`crate::GrantScope`].
    pub covers: Option<String>,
    pub by: String,
}

/// A decision for more than once that a later call was allowed by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedGrant {
    pub scope: Scope,
    pub covers: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    pub at: Millis,
    pub attempt: u32,
    pub max_attempts: u32,
    pub error: ErrorInfo,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CallOutcome {
    /// The record that told of it.
    pub seq: Seq,
    pub at: Millis,
    pub ok: bool,
    /// The result's JSON text; none where there was none.
    pub result: Option<Body>,
    /// The same as a value, in which long texts and lists are cut.
    pub result_value: Option<Value>,
    /// Those that the result names.
    pub files: Vec<Attachment>,
    pub error: Option<ErrorInfo>,
    /// One-line summary for people: the given one, else one made from the result.
    pub summary: String,
    /// None where it is not known.
    pub duration_ms: Option<u64>,
    pub truncated: Option<Truncated>,
}

impl Call {
    /// The name, or "Call #N" where there is none.
    pub fn label(&self) -> String {
        if self.is_nameless() {
            format!("Call #{}", self.number)
        } else {
            self.name.trim().to_owned()
        }
    }

    /// A name of nothing but blanks is none.
    pub fn is_nameless(&self) -> bool {
        self.name.trim().is_empty()
    }

    /// What the tool gets: the arguments as a person changed them, else as the agent wrote them.
    pub fn input(&self) -> &Body {
        self.edited.as_ref().unwrap_or(&self.arguments)
    }

    pub fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    /// Adds excerpts of the printed output to the fields of a result, as a model gets them.
    pub fn with_output(&self, mut result: Value) -> Value {
        if let Some(fields) = result.as_object_mut() {
            for (name, body) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
                if !body.is_empty() {
                    fields.insert(name.to_owned(), body.excerpt().into());
                }
            }
        }
        result
    }

    pub fn waits_for_approval(&self) -> bool {
        self.is_open() && self.approval.as_ref().is_some_and(|it| it.resolved.is_none())
    }

    /// It is with the client, which has not said what came of it. One that is only written is not yet:
    /// the model may still call others beside it.
    pub fn waits_for_client(&self) -> bool {
        let is_handed_over = self.arguments_done && self.state == CallState::Running;
        is_handed_over && self.executor == Executor::Client
    }
}

impl CallState {
    /// The state that a result leads to. Nothing is guessed from words.
    pub(crate) fn after(ok: bool, error: Option<&ErrorInfo>) -> Self {
        match error.map(|it| &it.code) {
            _ if ok => Self::Succeeded,
            Some(ErrorCode::ToolDenied | ErrorCode::ApprovalTimeout) => Self::Denied,
            Some(ErrorCode::ToolInterrupted) => Self::Interrupted,
            _ => Self::Failed,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::StreamingInput => "streaming_input",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Interrupted => "interrupted",
        }
    }
}

pub(crate) fn new_call(id: &CallId, number: u32, commentary: Vec<usize>, body_edge: usize) -> Call {
    Call {
        id: id.clone(),
        provider_call_id: None,
        name: String::new(),
        number,
        executor: Executor::Agent,
        // Whole while they stream, so that arguments that break off can be closed with all that came.
        arguments: Body::keeping(usize::MAX),
        arguments_done: false,
        arguments_incomplete: false,
        summary: String::new(),
        validation: None,
        provider_data: None,
        approval: None,
        granted: None,
        edited: None,
        input_value: None,
        running_since: None,
        stdout: Body::keeping(body_edge),
        stderr: Body::keeping(body_edge),
        retries: Vec::new(),
        outcome: None,
        state: CallState::StreamingInput,
        commentary,
    }
}

impl Call {
    /// Enters a state on the way; one that the call has ended in, or been refused in, stays.
    pub(crate) fn move_to(&mut self, state: CallState) {
        let ended = self.outcome.is_some()
            || matches!(self.state, CallState::Denied | CallState::Interrupted);
        if !ended {
            self.state = state;
        }
    }

    /// Programs may say so before anybody has agreed; it runs when it is said again.
    pub(crate) fn run(&mut self, at: Millis) {
        if !self.waits_for_approval() {
            self.running_since.get_or_insert(at);
            self.move_to(CallState::Running);
        }
    }

    /// For a person, whatever was said of it before.
    pub(crate) fn wait(&mut self, approval: Approval) {
        self.approval = Some(approval);
        self.running_since = None;
        self.move_to(CallState::AwaitingApproval);
    }

    /// One decision wins: the first.
    pub(crate) fn resolve_approval(&mut self, resolution: Resolution, body_edge: usize) {
        let approval = self.approval.get_or_insert_with(|| Approval {
            options: None,
            requested_at: resolution.at,
            resolved: None,
        });
        if approval.resolved.is_some() {
            return;
        }
        let decision = resolution.decision;
        if let (Decision::Accepted, Some(arguments)) = (decision, &resolution.arguments) {
            let mut edited = Body::keeping(body_edge);
            edited.push(arguments);
            self.edited = Some(edited);
            self.input_value = readable(arguments, body_edge);
        }
        approval.resolved = Some(resolution);
        self.move_to(match decision {
            Decision::Accepted => CallState::Queued,
            Decision::Rejected | Decision::TimedOut => CallState::Denied,
            Decision::Withdrawn => CallState::Interrupted,
        });
    }

    /// The first result stands, whatever comes after it.
    pub(crate) fn end(
        &mut self,
        tool_name: &str,
        mut outcome: CallOutcome,
        result: Option<&Value>,
        output: Option<&str>,
    ) {
        if self.outcome.is_some() {
            return;
        }
        // Older versions wrote 0 for a call that never ran.
        let has_run = self.running_since.is_some();
        outcome.duration_ms = outcome.duration_ms.filter(|it| has_run || *it > 0);
        if self.name.is_empty() {
            tool_name.clone_into(&mut self.name);
        }
        if let Some(output) = output {
            self.stdout.set(output);
            self.stderr.set("");
        }
        if outcome.summary.trim().is_empty() {
            let error = outcome.error.as_ref().filter(|_| !outcome.ok);
            outcome.summary = result_summary(result, error, &self.stdout, &self.stderr);
        }
        self.state = CallState::after(outcome.ok, outcome.error.as_ref());
        self.outcome = Some(outcome);
    }

    pub(crate) fn arguments_are(&self, value: &Value) -> bool {
        self.arguments_done
            && self.arguments.whole().and_then(|text| as_json(&text)).as_ref() == Some(value)
    }
}

/// Arguments as a value, in excerpt.
pub(crate) fn readable(arguments: &str, edge: usize) -> Option<Value> {
    excerpt(&serde_json::from_str(arguments).ok()?, edge)
}

pub(crate) fn json_body(value: &Value, edge: usize) -> Body {
    let mut body = Body::keeping(edge);
    body.push(&value.to_string());
    body
}

/// A text that is a JSON object or array, and nothing else.
pub(crate) fn as_json(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}
