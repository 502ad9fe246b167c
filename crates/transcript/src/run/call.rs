//! Tool calls and their state machine, from the first event to the result.

use serde::Serialize;
use serde_json::Value;

use super::excerpt::excerpt;
use super::result_summary::result_summary;
use crate::{
    ApprovalOptions, Attachment, Body, CallId, Decision, ErrorCode, ErrorInfo, Executor, Millis,
    Scope, Seq, Truncated, Validation,
};

/// A tool call of an assistant message.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Id of the call.
    pub id: CallId,
    /// The provider's id for the call.
    pub provider_call_id: Option<String>,
    /// Name of the tool. Empty if the provider gave none; see [`Call::label`].
    pub name: String,
    /// Number of the call in its message, from 1.
    pub number: u32,
    /// The party that runs the tool.
    pub executor: Executor,
    /// Arguments as JSON text, as the agent wrote them.
    pub arguments: Body,
    /// Whether the arguments are complete.
    pub arguments_done: bool,
    /// Whether the arguments broke off, so that the call never ran.
    pub arguments_incomplete: bool,
    /// One-line summary of the arguments.
    pub summary: String,
    /// Whether a person must approve the call.
    pub validation: Option<Validation>,
    /// Data that the model's provider expects back unchanged.
    pub provider_data: Option<Value>,
    /// The approval request and its decision.
    pub approval: Option<Approval>,
    /// The grant that allowed the call without a request.
    pub granted: Option<AppliedGrant>,
    /// Arguments as a person edited them before approving the call; see [`Call::input`].
    pub edited: Option<Body>,
    /// Excerpt of [`Call::input`] as a value; `None` while the arguments are incomplete or if they cannot
    /// be parsed.
    pub input_value: Option<Value>,
    /// Time at which execution started.
    pub running_since: Option<Millis>,
    /// Standard output.
    pub stdout: Body,
    /// Standard error.
    pub stderr: Body,
    /// Retries so far.
    pub retries: Vec<Retry>,
    /// The result; `None` while the call is open.
    pub outcome: Option<CallOutcome>,
    /// State of the call.
    pub state: CallState,
    /// Indexes into [`crate::RunMessage::parts`] of the texts that explain the call.
    pub commentary: Vec<usize>,
}

/// The state of a tool call. States in foreign formats are derived from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The arguments are incomplete.
    StreamingInput,
    /// A person must decide about the call.
    AwaitingApproval,
    /// The call may run and has not started.
    Queued,
    /// The call runs.
    Running,
    /// The call succeeded.
    Succeeded,
    /// The call failed.
    Failed,
    /// The call was denied and never ran.
    Denied,
    /// The call was stopped before it finished.
    Interrupted,
}

/// An approval request and its decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// The choices of the person; `None` if only the decision was recorded.
    pub options: Option<ApprovalOptions>,
    /// Time of the request.
    pub requested_at: Millis,
    /// The decision; `None` while the request is open.
    pub resolved: Option<Resolution>,
}

/// A decision about a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// Time of the decision.
    pub at: Millis,
    /// The decision.
    pub decision: Decision,
    /// How long the decision holds.
    pub scope: Option<Scope>,
    /// Arguments as edited by the person.
    pub arguments: Option<String>,
    /// The person's message to the agent.
    pub feedback: Option<String>,
    /// Calls that a lasting decision covers; see [`crate::GrantScope`].
    pub covers: Option<String>,
    /// The person or program that decided.
    pub by: String,
}

/// A grant that allowed a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedGrant {
    /// How long the grant holds.
    pub scope: Scope,
    /// Calls that the grant covers; see [`crate::GrantScope`].
    pub covers: String,
}

/// A retry of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Time of the retry.
    pub at: Millis,
    /// Number of the attempt that starts.
    pub attempt: u32,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// The error of the attempt before.
    pub error: ErrorInfo,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallOutcome {
    /// The record that ended the call.
    pub seq: Seq,
    /// Time of the end.
    pub at: Millis,
    /// Whether the call succeeded.
    pub ok: bool,
    /// The result as JSON text.
    pub result: Option<Body>,
    /// Excerpt of the result as a value.
    pub result_value: Option<Value>,
    /// Files in the result.
    pub files: Vec<Attachment>,
    /// The error of a failed call.
    pub error: Option<ErrorInfo>,
    /// One-line summary for people: from the executor, or made from the result.
    pub summary: String,
    /// Duration in milliseconds; `None` if it was not measured.
    pub duration_ms: Option<u64>,
    /// Sizes, if the output was truncated.
    pub truncated: Option<Truncated>,
}

impl Call {
    /// Returns the name, or "Call #N" if there is none.
    pub fn label(&self) -> String {
        if self.is_nameless() {
            format!("Call #{}", self.number)
        } else {
            self.name.trim().to_owned()
        }
    }

    /// Returns whether the name is blank.
    pub fn is_nameless(&self) -> bool {
        self.name.trim().is_empty()
    }

    /// Returns the arguments for the tool: as edited by a person, or else as the agent wrote them.
    pub fn input(&self) -> &Body {
        self.edited.as_ref().unwrap_or(&self.arguments)
    }

    /// Returns whether the call has no result.
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

    /// Returns whether the call waits for a person's decision.
    pub fn waits_for_approval(&self) -> bool {
        self.is_open() && self.approval.as_ref().is_some_and(|it| it.resolved.is_none())
    }

    /// Returns whether the client runs the call and has not sent its result. Complete arguments are not
    /// enough: the call is handed over only when the model has written all calls of the step.
    pub fn waits_for_client(&self) -> bool {
        let is_handed_over = self.arguments_done && self.state == CallState::Running;
        is_handed_over && self.executor == Executor::Client
    }
}

impl CallState {
    /// Returns the state after a result, by its error code.
    pub(crate) fn after(ok: bool, error: Option<&ErrorInfo>) -> Self {
        match error.map(|it| &it.code) {
            _ if ok => Self::Succeeded,
            Some(ErrorCode::ToolDenied | ErrorCode::ApprovalTimeout) => Self::Denied,
            Some(ErrorCode::ToolInterrupted) => Self::Interrupted,
            _ => Self::Failed,
        }
    }

    /// Returns the state as it is in JSON.
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
    /// Enters a state, unless the call has ended or was refused.
    pub(crate) fn move_to(&mut self, state: CallState) {
        let ended = self.outcome.is_some()
            || matches!(self.state, CallState::Denied | CallState::Interrupted);
        if !ended {
            self.state = state;
        }
    }

    /// Marks the call as running. Ignored while it waits for approval, because some programs report the
    /// start too early; they report it again after the decision.
    pub(crate) fn mark_running(&mut self, at: Millis) {
        if !self.waits_for_approval() {
            self.running_since.get_or_insert(at);
            self.move_to(CallState::Running);
        }
    }

    /// Makes the call wait for a person, even if it was reported as running.
    pub(crate) fn request_approval(&mut self, approval: Approval) {
        self.approval = Some(approval);
        self.running_since = None;
        self.move_to(CallState::AwaitingApproval);
    }

    /// Records the decision about the call; only the first one counts.
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
            self.input_value = input_excerpt(arguments, body_edge);
        }
        approval.resolved = Some(resolution);
        self.move_to(match decision {
            Decision::Accepted => CallState::Queued,
            Decision::Rejected | Decision::TimedOut => CallState::Denied,
            Decision::Withdrawn => CallState::Interrupted,
        });
    }

    /// Records the result; only the first one counts.
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
        // Earlier versions wrote 0 for a call that never ran.
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

/// Returns the excerpt of arguments given as JSON text; `None` if they cannot be parsed.
pub(crate) fn input_excerpt(arguments: &str, edge: usize) -> Option<Value> {
    excerpt(&serde_json::from_str(arguments).ok()?, edge)
}

pub(crate) fn json_body(value: &Value, edge: usize) -> Body {
    let mut body = Body::keeping(edge);
    body.push(&value.to_string());
    body
}

/// Parses a text that is exactly one JSON object or array.
pub(crate) fn as_json(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}
