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
    /// The session was created; always the first event of its log.
    SessionCreated {
        /// Id of the agent that the session talks to.
        agent: String,
        /// Path of the folder that the agent works in; absent if none was chosen or suggested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
        /// Whether a user of this server chose the workspace; otherwise it is only a suggestion.
        /// Set to false on import.
        #[serde(default, skip_serializing_if = "is_false")]
        workspace_confirmed: bool,
        /// Title of the session as given by a person; absent for an automatic title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// Settings of the session were changed; absent fields keep their values.
    SessionUpdated {
        /// Id of the agent that the session talks to from now on; absent if unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Path of the folder that the agent works in from now on; absent if unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
        /// Whether a user of this server chose the workspace; otherwise it is only a suggestion.
        /// Set to false on import.
        #[serde(default, skip_serializing_if = "is_false")]
        workspace_confirmed: bool,
        /// New title of the session; absent if unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Whether the session is archived from now on; absent if unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived: Option<bool>,
    },
    /// The agent's program reported the conversation that it keeps itself. A restarted program
    /// resumes the conversation of the newest such event.
    AgentLinked {
        /// The program's own id for its conversation.
        cli_session_id: String,
        /// Working directory to which the program's conversation belongs; absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// Version of the program; absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },

    /// A message to the model, from a person or from another agent.
    UserMessage {
        /// Id of the user message.
        message_id: MessageId,
        /// The client's idempotency key for the message; absent if it sent none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<ClientId>,
        /// Role of the sender: user, or system for instructions; absent for user.
        #[serde(default, skip_serializing_if = "MessageRole::is_user")]
        role: MessageRole,
        /// Text of the message.
        text: String,
        /// Files that belong to the message, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// The agent that sent the message; absent for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Sender>,
        /// Parts and metadata of the message as its client sent them, if the other fields lose
        /// information.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<SentForm>,
    },

    /// Tools that a client offers with its message and runs itself during the run that answers the
    /// message. The event precedes the message's own event.
    ClientTools {
        /// Id of the message with which the client offers the tools.
        message_id: MessageId,
        /// The tools that the client runs itself.
        tools: Vec<ClientTool>,
    },
    /// A message was accepted into the queue, where it waits for its run.
    MessageQueued {
        /// Id of the queued message.
        message_id: MessageId,
        /// The client's idempotency key for the message; absent if it sent none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<ClientId>,
        /// Text of the message.
        text: String,
        /// Files that belong to the message, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Position of the message in the queue, from 0; absent for the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<u32>,
        /// Whether the message waits for a run of its own or goes into the active run.
        #[serde(default, skip_serializing_if = "SendMode::is_queue")]
        mode: SendMode,
        /// Whether the message is held: it starts only after the queue is released. Set if a
        /// stopped run returned the message.
        #[serde(default, skip_serializing_if = "is_false")]
        held: bool,
        /// The agent that sent the message; absent for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Sender>,
        /// Parts and metadata of the message as its client sent them, if the other fields lose
        /// information.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<SentForm>,
    },
    /// A queued message was edited; absent fields keep their values.
    MessageEdited {
        /// Id of the queued message.
        message_id: MessageId,
        /// New text of the message.
        text: String,
        /// New files of the message; absent if unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attachments: Option<Vec<Attachment>>,
        /// New way of delivering the message, queued or steered; absent if unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<SendMode>,
    },
    /// A queued message was moved to another position in the queue.
    MessageMoved {
        /// Id of the queued message.
        message_id: MessageId,
        /// New position of the message in the queue, from 0.
        position: u32,
    },
    /// A message left the queue because its run starts; its `user_message` is in the same commit.
    MessageDequeued {
        /// Id of the message that left the queue.
        message_id: MessageId,
    },
    /// A steered message changed its state: a message that is given to the active run instead of
    /// waiting for the next one.
    MessageSteered {
        /// Id of the steered message.
        message_id: MessageId,
        /// Text of the steered message.
        #[serde(default)]
        text: String,
        /// New state of the steered message.
        state: SteerState,
    },
    /// A queued message was removed from the queue and will not be answered.
    MessageDropped {
        /// Id of the removed message.
        message_id: MessageId,
        /// Why the message was removed, such as `user`; absent if no reason was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The queue was held: the messages that it contains now do not start until it is released.
    /// Messages that are queued later do start.
    QueueHeld {
        /// Why the queue was held, such as `stopped` or `imported`; absent if no reason was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The queue was released: all held messages may start.
    QueueReleased {},

    /// The history was rewound: a message and all later ones are superseded. They stay in the log
    /// but are no longer part of the history.
    HistoryRewound {
        /// Id of the first superseded message: a `messageId`, or the `responseId` of an assistant
        /// message.
        before_message_id: String,
        /// Why the history was rewound.
        reason: RewindReason,
    },

    /// A run started: an agent begins to answer.
    RunStart {
        /// Id of the agent that the run belongs to.
        agent: String,
        /// Name of the model that the agent uses; absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Why the run started, such as a message from a person or a reply from another agent.
        trigger: Trigger,
        /// Id of the exchange whose message or reply started the run; absent for any other trigger.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exchange_id: Option<ExchangeId>,
    },
    /// A step started: one model call within the run.
    StepStart {
        /// Number of the step, from 0, counted separately for each sub-agent.
        index: u32,
        /// Id of the tool call that started the sub-agent whose step this is; absent for the agent
        /// itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },
    /// A step ended: one model call within the run.
    StepFinish {
        /// Number of the step, from 0, as in its `step_start`.
        index: u32,
        /// The provider's reason for the end of the step, such as `stop`; if the run ended first,
        /// `stop`, `error` or `cancelled`.
        finish_reason: String,
        /// Token counts of the step; absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Cost of the step in US dollars; absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// Id of the tool call that started the sub-agent whose step this is; absent for the agent
        /// itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },

    /// A text of the assistant message started. The event fixes the position of the text among the
    /// parts.
    TextStart {
        /// Id of the text.
        part_id: PartId,
        /// Id of the tool call that started the sub-agent that writes the text; absent for the
        /// agent itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },
    /// A text of the assistant message grew.
    TextDelta {
        /// Id of the text.
        part_id: PartId,
        /// Id of the tool call that started the sub-agent that writes the text; absent for the
        /// agent itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// Text to append to the text so far.
        delta: String,
    },
    /// A text of the assistant message is complete; `text` takes precedence over its deltas.
    TextDone {
        /// Id of the text.
        part_id: PartId,
        /// Id of the tool call that started the sub-agent that wrote the text; absent for the agent
        /// itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// The whole text.
        text: String,
        /// The provider's classification of the text as commentary or final; absent if it gave
        /// none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<Phase>,
        /// Whether the provider restarted its output after this text; the text is kept but does not
        /// count.
        #[serde(default, skip_serializing_if = "is_false")]
        discarded: bool,
    },
    /// A thinking block started. The event fixes its position among the parts of the assistant
    /// message.
    ThinkingStart {
        /// Id of the thinking block.
        part_id: PartId,
        /// Id of the tool call that started the sub-agent that is thinking; absent for the agent
        /// itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },
    /// A thinking block grew.
    ThinkingDelta {
        /// Id of the thinking block.
        part_id: PartId,
        /// Id of the tool call that started the sub-agent that is thinking; absent for the agent
        /// itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// Text to append to the thinking block.
        delta: String,
    },
    /// A thinking block is complete; `text` takes precedence over its deltas.
    ThinkingDone {
        /// Id of the thinking block.
        part_id: PartId,
        /// Id of the tool call that started the sub-agent that was thinking; absent for the agent
        /// itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// Whole text of the thinking block.
        text: String,
        /// Whether the provider restarted its output after this block; the block is kept but does
        /// not count.
        #[serde(default, skip_serializing_if = "is_false")]
        discarded: bool,
    },
    /// Additional fields of an imported part, in the format of the AI SDK. Callboard keeps them but
    /// does not interpret them.
    PartExtras {
        /// Id of the text, thinking block or tool call that the fields belong to.
        part_id: String,
        /// The additional fields of the part by their names.
        fields: Map<String, Value>,
    },

    /// A tool call started: the model begins to write it.
    ToolCallStart {
        /// Id of the tool call.
        call_id: CallId,
        /// The provider's own id for the tool call; absent if it gave none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_call_id: Option<String>,
        /// Name of the tool; empty if the provider gave none.
        tool_name: String,
        /// Arguments of the tool call as JSON text, as far as they are known; absent if none are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        /// Id of the tool call that started the sub-agent that makes this one; absent for the agent
        /// itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// The party that runs the tool: Callboard, the agent's program or the client.
        executor: Executor,
    },
    /// The arguments of a tool call grew.
    ToolArgumentsDelta {
        /// Id of the tool call.
        call_id: CallId,
        /// JSON text to append to the arguments.
        delta: String,
    },
    /// The arguments of a tool call are complete.
    ToolArgumentsDone {
        /// Id of the tool call.
        call_id: CallId,
        /// Whole arguments of the tool call as JSON text.
        arguments: String,
        /// One-line summary of the arguments for people.
        #[serde(default)]
        summary: String,
        /// Whether the arguments broke off before they were complete; such a tool call never runs.
        #[serde(default, skip_serializing_if = "is_false")]
        incomplete: bool,
        /// Whether a person must approve the tool call, as decided by the policy at this moment.
        validation: Validation,
        /// Data that the model's provider expects back unchanged: `toolCall` belongs to the tool
        /// call, `message` to the assistant message. Absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_data: Option<Value>,
    },
    /// A tool call started to run; the `durationMs` of its result counts from here.
    ToolRunning {
        /// Id of the tool call.
        call_id: CallId,
    },
    /// A tool call waits for a person's approval.
    ToolApprovalRequested {
        /// Id of the tool call.
        call_id: CallId,
        /// The choices that the person has, and details that help to decide.
        options: ApprovalOptions,
    },
    /// The approval request of a tool call was resolved, by a decision, a timeout or a withdrawal.
    ToolApprovalResolved {
        /// Id of the tool call.
        call_id: CallId,
        /// Outcome of the approval request.
        decision: Decision,
        /// How long the decision holds; absent unless the tool call was accepted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<Scope>,
        /// Arguments of the tool call as edited by the person who accepted it; absent if unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        /// The person's message to the agent about the decision; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
        /// Tool calls that a lasting decision covers, as the text of a [`crate::GrantScope`];
        /// absent for any other decision.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        covers: Option<String>,
        /// The person or program that resolved the request.
        by: String,
    },
    /// A grant from an earlier decision covers the tool call, so that no person has to decide about
    /// it.
    ToolGranted {
        /// Id of the tool call.
        call_id: CallId,
        /// Scope of the grant: this session or always.
        scope: Scope,
        /// Tool calls that the grant covers, as the text of a [`crate::GrantScope`].
        covers: String,
    },
    /// A grant was revoked: the tool calls that it covered need an approval again.
    GrantRevoked {
        /// Scope of the revoked grant: this session or always.
        scope: Scope,
        /// Tool calls that the revoked grant covered, as the text of a [`crate::GrantScope`].
        covers: String,
        /// The person or program that revoked the grant.
        by: String,
    },
    /// A running tool call printed output. If `offset` lies before the end of the output so far,
    /// `delta` replaces the output from there on.
    ToolOutputDelta {
        /// Id of the tool call.
        call_id: CallId,
        /// The stream to which the tool call printed.
        stream: OutputStream,
        /// Byte offset of `delta` in the whole output of the stream, which is UTF-8.
        offset: u64,
        /// The printed text.
        delta: String,
    },
    /// A tool call failed and is tried again.
    ToolRetry {
        /// Id of the tool call.
        call_id: CallId,
        /// Number of the attempt of the tool call that starts now.
        attempt: u32,
        /// Maximum number of attempts of the tool call.
        max_attempts: u32,
        /// Error of the previous attempt.
        error: ErrorInfo,
    },
    /// The end of a tool call, with its result; exactly one for every `tool_call_start`.
    ToolResult {
        /// Id of the tool call.
        call_id: CallId,
        /// Name of the tool.
        tool_name: String,
        /// Whether the tool call succeeded.
        ok: bool,
        /// Result of the tool call as JSON; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Whole output of the tool call, which replaces the output of the deltas; absent if the
        /// deltas are complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// Error of the tool call; absent if it succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
        /// One-line summary of the result for people; absent if the executor gave none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Duration of the tool call in milliseconds; absent if it was not measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// Sizes of the whole and of the kept output; absent if the output was not truncated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncated: Option<Truncated>,
    },

    /// The decision whether the agent continues with another step after the previous one.
    Continuation {
        /// Whether the agent continues with another step.
        should_continue: bool,
        /// Why the agent continues or stops, such as `tool_calls`, `completed` or `steps_limit`.
        stop_reason: String,
        /// Name of the rule that decided, such as `NoToolCalls` or `StepsLimit`.
        resolved_by: String,
        /// Results of the rules that were checked for the decision.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        evaluations: Vec<Evaluation>,
    },
    /// A notice to the reader of the conversation; it is not text of the model.
    Notice {
        /// Severity of the notice.
        level: Level,
        /// Text of the notice.
        text: String,
    },
    /// A person or program asked to stop the run.
    CancelRequested {
        /// The person or program that asked to stop the run.
        by: String,
    },
    /// The run was interrupted before it was complete.
    OutputCancelled {
        /// Why the run was interrupted.
        reason: CancelReason,
        /// Position in milliseconds at which audio output was cut; absent if none was cut.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_truncated_at_ms: Option<u64>,
    },
    /// The end of a run; exactly one for every `run_start`.
    RunFinish {
        /// How the run ended: completed, failed or cancelled.
        status: RunStatus,
        /// The error that ended the run; absent unless the run failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
        /// Token counts of the whole run; absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Cost of the whole run in US dollars; absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// Duration of the run in milliseconds; absent if it was not measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },

    /// A message to or from another agent, which starts an exchange. The `peer` fields name the
    /// other side's session and run; the ids in the record's header name this side's.
    AgentMessage {
        /// Id of the exchange, the same in the logs of both sessions.
        exchange_id: ExchangeId,
        /// Whether this session sent or received the message that starts the exchange.
        direction: Direction,
        /// Id of the tool call that sent the message; absent if no tool call sent it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        /// Whether the sender of the message waits for the reply.
        #[serde(default, skip_serializing_if = "ExchangeMode::is_sync")]
        mode: ExchangeMode,
        /// Number of messages between agents since a person's last message, see [`Sender::depth`].
        #[serde(default, skip_serializing_if = "is_zero")]
        depth: u32,
        /// Id of the agent on the other side.
        agent: String,
        /// Id of the other side's session; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_session_id: Option<SessionId>,
        /// Id of the other side's run that answers the message; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_response_id: Option<ResponseId>,
        /// Text of the message to the other agent.
        text: String,
    },
    /// The other side of an exchange reported progress; the exchange has no reply yet.
    AgentProgress {
        /// Id of the exchange, the same in the logs of both sessions.
        exchange_id: ExchangeId,
        /// Progress on the other side: queued, running or waiting for an approval.
        state: ExchangeState,
    },
    /// The end of an exchange: a reply, or the reason why there is none. It belongs to the run that
    /// started the exchange, even if that run has ended.
    AgentCallbackResult {
        /// Id of the exchange, the same in the logs of both sessions.
        exchange_id: ExchangeId,
        /// Whether this session sent or received the message that the reply answers.
        direction: Direction,
        /// Id of the agent on the other side.
        agent: String,
        /// Id of the other side's session; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_session_id: Option<SessionId>,
        /// Id of the other side's run that answered the message; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_response_id: Option<ResponseId>,
        /// Whether the exchange ended with a reply.
        ok: bool,
        /// The reply of the other agent as JSON; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Why there is no reply; absent if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
    },

    /// Output of an agent that Callboard could not interpret; it is kept and shown.
    Unrecognized {
        /// Source of the output: the program or agent, or `part` for an imported part in its own
        /// format.
        source: String,
        /// The line, or the first of several lines that this record represents.
        raw: String,
        /// Number of lines that this record represents; `raw` is the first of them. The others are
        /// only in the program's raw lines.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        lines: u64,
    },

    /// An event of a newer version, or one whose fields cannot be read: kept unchanged and skipped
    /// by reducers.
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
    /// An event about the session and its history: settings, user messages, rewinds, grants.
    Session,
    /// An event about the queue: messages that wait for their run.
    Queue,
    /// An event about a run or its steps, from start to finish.
    Run,
    /// An event about a text, a thinking block, a notice or unrecognized output.
    Part,
    /// An event about a tool call: its arguments, approval, output or result.
    Call,
    /// An event about an exchange: messages between agents.
    Exchange,
    /// An event that this version cannot read.
    Other,
}

impl Event {
    /// Returns the part of a session that the event is about.
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

    /// Returns whether the event is about the session or its queue. Such an event is never part of
    /// a run, even if its record names one.
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
