//! The vocabulary of the log, the wire and the store.
//!
//! Types are snake_case and fields camelCase in JSON. The vocabulary only grows: a log written by
//! any released version must replay forever, and an event that this version does not know, or
//! whose fields it cannot read, is kept as [`Event::Other`].

mod error_code;
mod fields;
mod grant_scope;
mod ids;
mod record;
mod sender;
mod sent_form;
pub mod stream;
mod time;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use error_code::{ErrorCode, ErrorInfo};
pub use fields::*;
pub use grant_scope::{GrantScope, GrantedCalls};
pub use ids::*;
pub use record::{Entry, Record, event_from_body, to_json};
pub use sender::{AgentAttribution, Sender};
pub use sent_form::{Link, SentForm, is_link};
pub use time::Millis;

/// The content of a record: everything that can happen in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event {
    /// The first event of a session.
    SessionCreated {
        /// Id of the agent.
        agent: String,
        /// Folder that the agent works in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
        /// A user of this server chose the workspace; otherwise it is a suggestion. Dropped on import.
        #[serde(default, skip_serializing_if = "is_false")]
        workspace_confirmed: bool,
        /// Title that a person gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// The session was changed; absent fields keep their values.
    SessionUpdated {
        /// Id of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Folder that the agent works in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
        /// A user of this server chose the workspace; otherwise it is a suggestion. Dropped on import.
        #[serde(default, skip_serializing_if = "is_false")]
        workspace_confirmed: bool,
        /// Title that a person gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Whether the session is archived.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived: Option<bool>,
    },
    /// The conversation that the agent's program keeps; resuming uses the newest link.
    AgentLinked {
        /// The program's own id for its conversation.
        cli_session_id: String,
        /// Folder in which the program keeps the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// Version of the program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },

    /// A message to the model, from a person or from another agent.
    UserMessage {
        /// Id of the message.
        message_id: MessageId,
        /// The client's idempotency key for the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<ClientId>,
        /// Role of the sender.
        #[serde(default, skip_serializing_if = "MessageRole::is_user")]
        role: MessageRole,
        /// The text.
        text: String,
        /// Files that belong to the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// The agent that sent the message; absent for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Sender>,
        /// Form in which the client sent the message, if the other fields lose information.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<SentForm>,
    },

    /// Tools that the sender of a message runs itself during the run that answers it. Precedes the
    /// message.
    ClientTools {
        /// Id of the message.
        message_id: MessageId,
        /// The tools that the client runs.
        tools: Vec<ClientTool>,
    },
    /// A message was accepted and waits for its run.
    MessageQueued {
        /// Id of the message.
        message_id: MessageId,
        /// The client's idempotency key for the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<ClientId>,
        /// The text.
        text: String,
        /// Files that belong to the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Position in the queue, from 0; absent for the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<u32>,
        /// How the message reaches the agent.
        #[serde(default, skip_serializing_if = "SendMode::is_queue")]
        mode: SendMode,
        /// Returned by a run that was stopped; starts when the queue is released.
        #[serde(default, skip_serializing_if = "is_false")]
        held: bool,
        /// The agent that sent the message; absent for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Sender>,
        /// Form in which the client sent the message, if the other fields lose information.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<SentForm>,
    },
    /// A queued message was edited; absent fields keep their values.
    MessageEdited {
        /// Id of the message.
        message_id: MessageId,
        /// The text.
        text: String,
        /// Files that belong to the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attachments: Option<Vec<Attachment>>,
        /// How the message reaches the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<SendMode>,
    },
    /// A queued message changed its position.
    MessageMoved {
        /// Id of the message.
        message_id: MessageId,
        /// New position in the queue, from 0.
        position: u32,
    },
    /// A queued message starts; its `user_message` is in the same commit.
    MessageDequeued {
        /// Id of the message.
        message_id: MessageId,
    },
    /// A message was given to the active run instead of waiting for the next one.
    MessageSteered {
        /// Id of the message.
        message_id: MessageId,
        /// The text.
        #[serde(default)]
        text: String,
        /// The new state.
        state: SteerState,
    },
    /// A queued message was removed without being answered.
    MessageDropped {
        /// Id of the message.
        message_id: MessageId,
        /// The reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The messages queued at this moment do not start until released; later ones do.
    QueueHeld {
        /// The reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// All held messages may start.
    QueueReleased {},

    /// A message and all later ones are superseded: kept, but no longer part of the history.
    HistoryRewound {
        /// First message that is superseded.
        before_message_id: String,
        /// The reason.
        reason: RewindReason,
    },

    /// A run started.
    RunStart {
        /// Id of the agent.
        agent: String,
        /// Model that the agent uses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Why the run started.
        trigger: Trigger,
        /// Id of the exchange.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exchange_id: Option<ExchangeId>,
    },
    /// A model call started.
    StepStart {
        /// Number of the step, from 0.
        index: u32,
        /// Call of the sub-agent that this happened under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },
    /// A model call ended.
    StepFinish {
        /// Number of the step, from 0.
        index: u32,
        /// The provider's reason for the end of the step.
        finish_reason: String,
        /// Token counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Cost in US dollars, if the agent reports it per step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// Call of the sub-agent that this happened under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },

    /// A text started; fixes its position.
    TextStart {
        /// Id of the part.
        part_id: PartId,
        /// Call of the sub-agent that this happened under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },
    /// A text grew.
    TextDelta {
        /// Id of the part.
        part_id: PartId,
        /// Call of the sub-agent that this happened under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// Text to append.
        delta: String,
    },
    /// A text is complete; `text` is authoritative over the deltas.
    TextDone {
        /// Id of the part.
        part_id: PartId,
        /// Call of the sub-agent that this happened under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// The text.
        text: String,
        /// The provider's classification of the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<Phase>,
        /// The provider restarted: the text is kept but does not count.
        #[serde(default, skip_serializing_if = "is_false")]
        discarded: bool,
    },
    /// A thinking block started; fixes its position.
    ThinkingStart {
        /// Id of the part.
        part_id: PartId,
        /// Call of the sub-agent that this happened under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },
    /// A thinking block grew.
    ThinkingDelta {
        /// Id of the part.
        part_id: PartId,
        /// Call of the sub-agent that this happened under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// Text to append.
        delta: String,
    },
    /// A thinking block is complete; `text` is authoritative.
    ThinkingDone {
        /// Id of the part.
        part_id: PartId,
        /// Call of the sub-agent that this happened under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// The text.
        text: String,
        /// The provider restarted: the text is kept but does not count.
        #[serde(default, skip_serializing_if = "is_false")]
        discarded: bool,
    },
    /// Fields of an imported part that Callboard does not interpret, in the form of the AI SDK.
    PartExtras {
        /// Id of the part or call.
        part_id: String,
        /// The fields.
        fields: Map<String, Value>,
    },

    /// A call started.
    ToolCallStart {
        /// Id of the call.
        call_id: CallId,
        /// The provider's id for the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_call_id: Option<String>,
        /// Name of the tool.
        tool_name: String,
        /// Arguments as JSON text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        /// Call of the sub-agent that this happened under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// The party that runs the tool.
        executor: Executor,
    },
    /// The arguments of a call grew.
    ToolArgumentsDelta {
        /// Id of the call.
        call_id: CallId,
        /// Text to append.
        delta: String,
    },
    /// The arguments of a call are complete.
    ToolArgumentsDone {
        /// Id of the call.
        call_id: CallId,
        /// Arguments as JSON text.
        arguments: String,
        /// One-line summary of the arguments.
        #[serde(default)]
        summary: String,
        /// The arguments broke off; the call never runs.
        #[serde(default, skip_serializing_if = "is_false")]
        incomplete: bool,
        /// Whether a person must approve the call, decided by the policy at this moment.
        validation: Validation,
        /// Data that the model's provider expects back unchanged: `toolCall` belongs to the call,
        /// `message` to the assistant message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_data: Option<Value>,
    },
    /// Execution started; `durationMs` of the result counts from here.
    ToolRunning {
        /// Id of the call.
        call_id: CallId,
    },
    /// A call waits for a decision of a person.
    ToolApprovalRequested {
        /// Id of the call.
        call_id: CallId,
        /// The choices of the person.
        options: ApprovalOptions,
    },
    /// The decision about a call.
    ToolApprovalResolved {
        /// Id of the call.
        call_id: CallId,
        /// The decision.
        decision: Decision,
        /// How long the decision holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<Scope>,
        /// Arguments as edited by the person who decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        /// The person's message to the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
        /// Calls that a lasting decision covers, see [`crate::GrantScope`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        covers: Option<String>,
        /// The person or program that decided.
        by: String,
    },
    /// The call needs no approval because an earlier decision covers it.
    ToolGranted {
        /// Id of the call.
        call_id: CallId,
        /// How long the decision holds.
        scope: Scope,
        /// Calls that the decision covers, see [`crate::GrantScope`].
        covers: String,
    },
    /// A grant was revoked.
    GrantRevoked {
        /// How long the decision holds.
        scope: Scope,
        /// Calls that the decision covers, see [`crate::GrantScope`].
        covers: String,
        /// The person or program that revoked the grant.
        by: String,
    },
    /// A call printed output. An `offset` before the end of the stream replaces everything from there.
    ToolOutputDelta {
        /// Id of the call.
        call_id: CallId,
        /// Output stream.
        stream: OutputStream,
        /// Position in bytes of UTF-8.
        offset: u64,
        /// Text to append.
        delta: String,
    },
    /// A call is tried again.
    ToolRetry {
        /// Id of the call.
        call_id: CallId,
        /// Number of the attempt that starts now.
        attempt: u32,
        /// Highest number of attempts.
        max_attempts: u32,
        /// The error.
        error: ErrorInfo,
    },
    /// The end of a call: exactly one for every `tool_call_start`.
    ToolResult {
        /// Id of the call.
        call_id: CallId,
        /// Name of the tool.
        tool_name: String,
        /// Whether it succeeded.
        ok: bool,
        /// The result as JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// The whole output, if it differs from the deltas.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// The error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
        /// One-line summary for people, if the executor gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Duration in milliseconds; absent if it was not measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// Sizes, if the output was truncated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncated: Option<Truncated>,
    },

    /// The decision whether the agent continues after a step.
    Continuation {
        /// Whether the agent continues.
        should_continue: bool,
        /// Why it continues or stops.
        stop_reason: String,
        /// Which rule decided.
        resolved_by: String,
        /// Findings that led to the decision.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        evaluations: Vec<Evaluation>,
    },
    /// A message of Callboard to the reader.
    Notice {
        /// Severity.
        level: Level,
        /// The text.
        text: String,
    },
    /// Somebody asked to stop the run.
    CancelRequested {
        /// The person or program that asked.
        by: String,
    },
    /// The run was interrupted.
    OutputCancelled {
        /// The reason.
        reason: CancelReason,
        /// Position at which audio output was cut.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_truncated_at_ms: Option<u64>,
    },
    /// The end of a run: exactly one for every `run_start`.
    RunFinish {
        /// How the run ended.
        status: RunStatus,
        /// The error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
        /// Token counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Cost in US dollars, if the agent or its provider reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// Duration in milliseconds; absent if it was not measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },

    /// A message to or from another agent. The `peer` fields name the other side's session and run; the
    /// record's ids name this side's.
    AgentMessage {
        /// Id of the exchange.
        exchange_id: ExchangeId,
        /// Whether this session sent or received the message.
        direction: Direction,
        /// The call that sends the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        /// Whether the sender waits for the reply.
        #[serde(default, skip_serializing_if = "ExchangeMode::is_sync")]
        mode: ExchangeMode,
        /// Nesting depth, see [`Sender::depth`].
        #[serde(default, skip_serializing_if = "is_zero")]
        depth: u32,
        /// Id of the agent.
        agent: String,
        /// The other side's session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_session_id: Option<SessionId>,
        /// The other side's run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_response_id: Option<ResponseId>,
        /// The text.
        text: String,
    },
    /// Progress of an exchange that has no reply yet.
    AgentProgress {
        /// Id of the exchange.
        exchange_id: ExchangeId,
        /// The new state.
        state: ExchangeState,
    },
    /// The end of an exchange. Belongs to the run that started it, even if that run has ended.
    AgentCallbackResult {
        /// Id of the exchange.
        exchange_id: ExchangeId,
        /// Whether this session sent or received the message.
        direction: Direction,
        /// Id of the agent.
        agent: String,
        /// The other side's session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_session_id: Option<SessionId>,
        /// The other side's run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_response_id: Option<ResponseId>,
        /// Whether it succeeded.
        ok: bool,
        /// The result as JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// The error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
    },

    /// A line of an agent's output that could not be interpreted; it is kept and shown.
    Unrecognized {
        /// Source of the line.
        source: String,
        /// The line.
        raw: String,
        /// Number of lines that this record represents; `raw` is the first of them. The others are only
        /// in the program's raw lines.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        lines: u64,
    },

    /// An event of a newer version, or one whose fields cannot be read: kept unchanged and skipped.
    #[serde(untagged)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Other(Map<String, Value>),
}

/// The part of a session that an event is about.
///
/// [`Event::group`] is the only exhaustive list of events: reducers match one group and ignore the
/// rest of it, so a new event needs a decision in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventGroup {
    /// The session and its history: settings, user messages, rewinds, grants.
    Session,
    /// Messages that wait for their run.
    Queue,
    /// A run and its steps, from start to finish.
    Run,
    /// Texts, thinking, notices and unrecognized output.
    Part,
    /// Tool calls: arguments, approval, output, result.
    Call,
    /// Messages between agents.
    Exchange,
    /// An event that this version cannot read.
    Other,
}

impl Event {
    /// Returns the group of the event.
    pub fn group(&self) -> EventGroup {
        match self {
            Self::SessionCreated { .. }
            | Self::SessionUpdated { .. }
            | Self::AgentLinked { .. }
            | Self::UserMessage { .. }
            | Self::HistoryRewound { .. }
            | Self::GrantRevoked { .. } => EventGroup::Session,
            Self::ClientTools { .. }
            | Self::MessageQueued { .. }
            | Self::MessageEdited { .. }
            | Self::MessageMoved { .. }
            | Self::MessageDequeued { .. }
            | Self::MessageDropped { .. }
            | Self::QueueHeld { .. }
            | Self::QueueReleased {} => EventGroup::Queue,
            Self::RunStart { .. }
            | Self::StepStart { .. }
            | Self::StepFinish { .. }
            | Self::MessageSteered { .. }
            | Self::Continuation { .. }
            | Self::CancelRequested { .. }
            | Self::OutputCancelled { .. }
            | Self::RunFinish { .. } => EventGroup::Run,
            Self::TextStart { .. }
            | Self::TextDelta { .. }
            | Self::TextDone { .. }
            | Self::ThinkingStart { .. }
            | Self::ThinkingDelta { .. }
            | Self::ThinkingDone { .. }
            | Self::PartExtras { .. }
            | Self::Notice { .. }
            | Self::Unrecognized { .. } => EventGroup::Part,
            Self::ToolCallStart { .. }
            | Self::ToolArgumentsDelta { .. }
            | Self::ToolArgumentsDone { .. }
            | Self::ToolRunning { .. }
            | Self::ToolApprovalRequested { .. }
            | Self::ToolApprovalResolved { .. }
            | Self::ToolGranted { .. }
            | Self::ToolOutputDelta { .. }
            | Self::ToolRetry { .. }
            | Self::ToolResult { .. } => EventGroup::Call,
            Self::AgentMessage { .. }
            | Self::AgentProgress { .. }
            | Self::AgentCallbackResult { .. } => EventGroup::Exchange,
            Self::Other(_) => EventGroup::Other,
        }
    }

    /// Returns whether the event is about the session or its queue. Such an event is never part of a
    /// run, even if its record names one.
    pub fn is_session_event(&self) -> bool {
        matches!(self.group(), EventGroup::Session | EventGroup::Queue)
    }
}

fn one() -> u64 {
    1
}

fn is_one(number: &u64) -> bool {
    *number == 1
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}
