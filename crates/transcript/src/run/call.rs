//! Tool calls and their state machine, from the first event to the result.

use serde::Serialize;
use serde_json::Value;

use super::excerpt::excerpt;
use super::result_summary::result_summary;
use crate::{
    ApprovalOptions, Attachment, Body, CallId, Decision, ErrorCode, ErrorInfo, Executor, Millis,
    Scope, Seq, Truncated, Validation,
};

/// A tool call of an assistant message, from its first event to its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Id of the tool call.
    pub id: CallId,
    /// The provider's own id for the tool call; `None` if it gave none.
    pub provider_call_id: Option<String>,
    /// Name of the tool. Empty if the provider gave none; see [`Call::label`].
    pub name: String,
    /// Number of the tool call in its assistant message, from 1.
    pub number: u32,
    /// The party that runs the tool: Callboard, the agent's program or the client.
    pub executor: Executor,
    /// Arguments of the tool call as JSON text, as the agent wrote them.
    pub arguments: Body,
    /// Whether the arguments are complete or have broken off, so that no more of them follow.
    pub arguments_done: bool,
    /// Whether the arguments broke off before they were complete; such a tool call never runs.
    pub arguments_incomplete: bool,
    /// One-line summary of the arguments for people; empty until they are complete.
    pub summary: String,
    /// Whether a person must approve the tool call; `None` until the arguments are complete.
    pub validation: Option<Validation>,
    /// Data that the model's provider expects back unchanged; `None` if there is none.
    pub provider_data: Option<Value>,
    /// The approval request of the tool call and its outcome; `None` if no approval was requested.
    pub approval: Option<Approval>,
    /// The grant that covers the tool call; `None` if none does.
    pub granted: Option<AppliedGrant>,
    /// Arguments as a person edited them before accepting the tool call; `None` if unchanged. See
    /// [`Call::input`].
    pub edited: Option<Body>,
    /// Excerpt of [`Call::input`] as a JSON value; `None` if the arguments are incomplete, not
    /// valid JSON or too large.
    pub input_value: Option<Value>,
    /// Time at which the tool call started to run; `None` before.
    pub running_since: Option<Millis>,
    /// Text that the tool call printed to standard output.
    pub stdout: Body,
    /// Text that the tool call printed to standard error.
    pub stderr: Body,
    /// Retries of the tool call so far, in order.
    pub retries: Vec<Retry>,
    /// The result of the tool call; `None` while it is open.
    pub outcome: Option<CallOutcome>,
    /// State of the tool call.
    pub state: CallState,
    /// Indexes into [`crate::RunMessage::parts`] of the texts that explain the tool call.
    pub commentary: Vec<usize>,
}

/// The state of a tool call. The states in foreign formats are derived from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The model is still writing the arguments of the tool call.
    StreamingInput,
    /// A person must decide about the tool call.
    AwaitingApproval,
    /// The tool call may run and has not started.
    Queued,
    /// The tool call is running.
    Running,
    /// The tool call succeeded.
    Succeeded,
    /// The tool call failed.
    Failed,
    /// The tool call was denied, or nobody decided about it in time; it never ran.
    Denied,
    /// The tool call was stopped before it finished, or its approval request was withdrawn.
    Interrupted,
}

/// The approval request of a tool call and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// The choices that the person has; `None` if only the outcome was recorded.
    pub options: Option<ApprovalOptions>,
    /// Time of the approval request.
    pub requested_at: Millis,
    /// Outcome of the approval request; `None` while it is open.
    pub resolved: Option<Resolution>,
}

/// The outcome of the approval request of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// Time at which the approval request was resolved.
    pub at: Millis,
    /// Outcome of the approval request.
    pub decision: Decision,
    /// How long the decision holds; `None` unless the tool call was accepted.
    pub scope: Option<Scope>,
    /// Arguments of the tool call as edited by the person; `None` if unchanged.
    pub arguments: Option<String>,
    /// The person's message to the agent about the decision; `None` if there is none.
    pub feedback: Option<String>,
    /// Tool calls that a lasting decision covers, as the text of a [`crate::GrantScope`]; `None`
    /// for any other decision.
    pub covers: Option<String>,
    /// The person or program that resolved the request.
    pub by: String,
}

/// A grant from an earlier decision that covers a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedGrant {
    /// Scope of the grant: this session or always.
    pub scope: Scope,
    /// Tool calls that the grant covers, as the text of a [`crate::GrantScope`].
    pub covers: String,
}

/// A further attempt at a tool call that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Time at which the attempt starts.
    pub at: Millis,
    /// Number of the attempt of the tool call that starts.
    pub attempt: u32,
    /// Maximum number of attempts of the tool call.
    pub max_attempts: u32,
    /// Error of the previous attempt.
    pub error: ErrorInfo,
}

/// The end of a tool call, with its result or error.
#[derive(Debug, Clone, PartialEq)]
pub struct CallOutcome {
    /// Sequence number of the record that ended the tool call.
    pub seq: Seq,
    /// Time at which the tool call ended.
    pub at: Millis,
    /// Whether the tool call succeeded.
    pub ok: bool,
    /// Result of the tool call as JSON text; `None` if there is none.
    pub result: Option<Body>,
    /// Excerpt of the result as a JSON value; `None` if there is no result or it is too large.
    pub result_value: Option<Value>,
    /// Files that the result of the tool call lists.
    pub files: Vec<Attachment>,
    /// Error of the tool call; `None` if it succeeded.
    pub error: Option<ErrorInfo>,
    /// One-line summary of the result for people: from the executor, or made from the result.
    pub summary: String,
    /// Duration of the tool call in milliseconds; `None` if it was not measured.
    pub duration_ms: Option<u64>,
    /// Sizes of the whole and of the kept output; `None` if the output was not truncated.
    pub truncated: Option<Truncated>,
}

impl Call {
    /// Returns the name of the tool, or "Call #N" if it has none.
    pub fn label(&self) -> String {
        if self.is_nameless() {
            format!("Call #{}", self.number)
        } else {
            self.name.trim().to_owned()
        }
    }

    /// Returns whether the tool call has no tool name or a blank one.
    pub fn is_nameless(&self) -> bool {
        self.name.trim().is_empty()
    }

    /// Returns the arguments that the tool gets: as edited by a person, or else as the agent wrote
    /// them.
    pub fn input(&self) -> &Body {
        self.edited.as_ref().unwrap_or(&self.arguments)
    }

    /// Returns whether the tool call has no result yet.
    pub fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    /// Returns the result of the tool call as a model gets it: with excerpts of the printed output
    /// as its fields `stdout` and `stderr`. A result that is not an object stays unchanged.
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

    /// Returns whether the tool call waits for a person's decision.
    pub fn waits_for_approval(&self) -> bool {
        self.is_open() && self.approval.as_ref().is_some_and(|it| it.resolved.is_none())
    }

    /// Returns whether the client runs the tool call and has not sent its result. Complete
    /// arguments are not enough: the call is handed over only when the model has written all tool
    /// calls of the step.
    pub fn waits_for_client(&self) -> bool {
        let is_handed_over = self.arguments_done && self.state == CallState::Running;
        is_handed_over && self.executor == Executor::Client
    }
}

impl CallState {
    /// Returns the state of a tool call after its result: success, or the state that its error code
    /// implies.
    pub(crate) fn after(ok: bool, error: Option<&ErrorInfo>) -> Self {
        match error.map(|it| &it.code) {
            _ if ok => Self::Succeeded,
            Some(ErrorCode::ToolDenied | ErrorCode::ApprovalTimeout) => Self::Denied,
            Some(ErrorCode::ToolInterrupted) => Self::Interrupted,
            _ => Self::Failed,
        }
    }

    /// Returns the state of the tool call as it is in JSON.
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
    /// Changes the state of the tool call, unless it has ended, was denied or was interrupted.
    pub(crate) fn move_to(&mut self, state: CallState) {
        let ended = self.outcome.is_some()
            || matches!(self.state, CallState::Denied | CallState::Interrupted);
        if !ended {
            self.state = state;
        }
    }

    /// Marks the tool call as running. Does nothing while the call waits for approval, because some
    /// programs report the start too early; they report it again after the decision.
    pub(crate) fn mark_running(&mut self, at: Millis) {
        if !self.waits_for_approval() {
            self.running_since.get_or_insert(at);
            self.move_to(CallState::Running);
        }
    }

    /// Makes the tool call wait for a person's approval, even if it was reported as running.
    pub(crate) fn request_approval(&mut self, approval: Approval) {
        self.approval = Some(approval);
        self.running_since = None;
        self.move_to(CallState::AwaitingApproval);
    }

    /// Records the outcome of the approval request of the tool call; only the first one counts.
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

    /// Records the result of the tool call; only the first one counts.
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

/// Returns the excerpt of a tool call's arguments, given as JSON text. `None` if they are not valid
/// JSON or too large.
pub(crate) fn input_excerpt(arguments: &str, edge: usize) -> Option<Value> {
    excerpt(&serde_json::from_str(arguments).ok()?, edge)
}

pub(crate) fn json_body(value: &Value, edge: usize) -> Body {
    let mut body = Body::keeping(edge);
    body.push(&value.to_string());
    body
}

/// Parses a text that consists of one JSON object or array. Returns `None` for any other text.
pub(crate) fn as_json(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}
