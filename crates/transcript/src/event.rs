//! What can happen in a session: the vocabulary of the log, the wire and the store.
//!
//! Types are snake_case and fields camelCase in JSON. The vocabulary only grows: a log written by
//! any released version must replay for ever, and an event that this version does not know, or
//! whose fields it cannot read, is kept as [`Event::Other`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AsSent, CallId, ClientId, ErrorInfo, Evaluation, ExchangeId, MessageId, PartId, ResponseId,
    SessionId, Truncated, Usage,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event {
    SessionCreated {
        agent: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
        /// A person of this server chose the workspace; without it the workspace is a suggestion. Never
        /// kept on import.
        #[serde(default, skip_serializing_if = "is_false")]
        workspace_confirmed: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// Fields that are absent stay as they were.
    SessionUpdated {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
        /// As in `session_created`.
        #[serde(default, skip_serializing_if = "is_false")]
        workspace_confirmed: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived: Option<bool>,
    },
    /// The agent program's own conversation; resume uses the newest.
    AgentLinked {
        cli_session_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },

    /// What the model gets, from a person or from another agent.
    UserMessage {
        message_id: MessageId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<ClientId>,
        #[serde(default, skip_serializing_if = "SaidBy::is_user")]
        role: SaidBy,
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Sender>,
        /// As its client sent it, where the fields above do not say it all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<AsSent>,
    },

    /// Tools that whoever sent the message runs itself, for the run that answers it. Comes before the
    /// message.
    ClientTools {
        message_id: MessageId,
        tools: Vec<ClientTool>,
    },
    MessageQueued {
        message_id: MessageId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<ClientId>,
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<u32>,
        #[serde(default, skip_serializing_if = "SendMode::is_queue")]
        mode: SendMode,
        /// It comes back from a run that was stopped, and waits until the queue is released.
        #[serde(default, skip_serializing_if = "is_false")]
        held: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Sender>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<AsSent>,
    },
    /// Fields that are absent stay as they were.
    MessageEdited {
        message_id: MessageId,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attachments: Option<Vec<Attachment>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<SendMode>,
    },
    MessageMoved {
        message_id: MessageId,
        position: u32,
    },
    /// The message's turn has come: its `user_message` is in the same commit.
    MessageDequeued {
        message_id: MessageId,
    },
    /// The message went into the running turn instead of waiting for the next.
    MessageSteered {
        message_id: MessageId,
        #[serde(default)]
        text: String,
        state: SteerState,
    },
    MessageDropped {
        message_id: MessageId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// What waits at this moment does not start by itself; what is said later does.
    QueueHeld {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    QueueReleased {},

    /// That message and all later ones are superseded: kept, but no longer part of the history.
    HistoryRewound {
        before_message_id: String,
        reason: RewindReason,
    },

    RunStart {
        agent: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        trigger: Trigger,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exchange_id: Option<ExchangeId>,
    },
    StepStart {
        index: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },
    StepFinish {
        index: u32,
        finish_reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// In US dollars, where the agent says it of each step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },

    /// Fixes the part's place.
    TextStart {
        part_id: PartId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },
    TextDelta {
        part_id: PartId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        delta: String,
    },
    /// `text` is authoritative, whatever the deltas gave.
    TextDone {
        part_id: PartId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<Phase>,
        /// The provider started again; this text counts for nothing but is kept.
        #[serde(default, skip_serializing_if = "is_false")]
        discarded: bool,
    },
    ThinkingStart {
        part_id: PartId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },
    ThinkingDelta {
        part_id: PartId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        delta: String,
    },
    ThinkingDone {
        part_id: PartId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        text: String,
        #[serde(default, skip_serializing_if = "is_false")]
        discarded: bool,
    },
    /// What a part had that came from elsewhere and that nothing here reads, in the AI SDK's words.
    PartExtras {
        /// The part's, or the call's.
        part_id: String,
        fields: Map<String, Value>,
    },

    /// The first sign of a call.
    ToolCallStart {
        call_id: CallId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_call_id: Option<String>,
        tool_name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        executor: Executor,
    },
    ToolArgumentsDelta {
        call_id: CallId,
        delta: String,
    },
    ToolArgumentsDone {
        call_id: CallId,
        arguments: String,
        #[serde(default)]
        summary: String,
        #[serde(default, skip_serializing_if = "is_false")]
        incomplete: bool,
        /// Whether a person must agree, decided here by the policy of this moment.
        validation: Validation,
        /// What the model's provider wants to get back, as it gave it: `toolCall` within the call,
        /// `message` within the message that makes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_data: Option<Value>,
    },
    /// Execution began; `durationMs` of the result counts from here.
    ToolRunning {
        call_id: CallId,
    },
    ToolApprovalRequested {
        call_id: CallId,
        options: ApprovalOptions,
    },
    ToolApprovalResolved {
        call_id: CallId,
        decision: Decision,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<Scope>,
        /// As edited by the person who decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
        /// What a decision for more than once holds for, as the policy names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        covers: Option<String>,
        by: String,
    },
    /// The call needs no question: an earlier decision with this scope covers it.
    ToolGranted {
        call_id: CallId,
        scope: Scope,
        covers: String,
    },
    /// A decision for more than once no longer applies.
    GrantRevoked {
        scope: Scope,
        covers: String,
        by: String,
    },
    /// `offset` counts UTF-8 bytes of that stream; one before its end replaces everything from there.
    ToolOutputDelta {
        call_id: CallId,
        stream: OutputStream,
        offset: u64,
        delta: String,
    },
    /// `attempt` is the one that now begins.
    ToolRetry {
        call_id: CallId,
        attempt: u32,
        max_attempts: u32,
        error: ErrorInfo,
    },
    /// Exactly one for every `tool_call_start`, always.
    ToolResult {
        call_id: CallId,
        tool_name: String,
        ok: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// The whole output, where it differs from what the deltas gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
        /// One-line summary for people, if the tool's runner gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Absent where nobody measured it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncated: Option<Truncated>,
    },

    /// Why the agent went on or stopped.
    Continuation {
        should_continue: bool,
        stop_reason: String,
        resolved_by: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        evaluations: Vec<Evaluation>,
    },
    Notice {
        level: Level,
        text: String,
    },
    CancelRequested {
        by: String,
    },
    OutputCancelled {
        reason: CancelReason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_truncated_at_ms: Option<u64>,
    },
    /// Exactly one for every `run_start`, always.
    RunFinish {
        status: RunStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// In US dollars, where the agent or its provider says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// Absent where nobody measured it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },

    /// A question to or from another agent. `peer...` name the other side's session and run; the
    /// record's own ids are this side's.
    AgentMessage {
        exchange_id: ExchangeId,
        direction: Direction,
        /// The call that asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        #[serde(default, skip_serializing_if = "ExchangeMode::is_sync")]
        mode: ExchangeMode,
        /// Of the message, see [`Sender::depth`].
        #[serde(default, skip_serializing_if = "is_zero")]
        depth: u32,
        agent: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_session_id: Option<SessionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_response_id: Option<ResponseId>,
        text: String,
    },
    /// How it stands with a question that has no answer yet.
    AgentProgress {
        exchange_id: ExchangeId,
        state: ExchangeState,
    },
    /// The end of an exchange, good or bad. It belongs to the run that asked, also where that has
    /// ended.
    AgentCallbackResult {
        exchange_id: ExchangeId,
        direction: Direction,
        agent: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_session_id: Option<SessionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer_response_id: Option<ResponseId>,
        ok: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
    },

    /// A line of an agent's output that could not be read: kept and shown.
    Unrecognized {
        source: String,
        raw: String,
        /// Number of lines that this record stands for; `raw` is the first of them. The others are among the
        /// program's raw lines only.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        lines: u64,
    },

    /// An event of a newer version, or one whose fields cannot be read: kept as it is and skipped.
    #[serde(untagged)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Other(Map<String, Value>),
}

/// A tool that a client runs, as a model is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientTool {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// A JSON Schema.
    pub parameters: Value,
}

/// Declares closed sets of words as they stand in JSON.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_attr:meta])* $word:ident),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$word_attr])* $word),* }
    )*};
}

words! {
    /// `Returned`: the agent could not take it, or has not looked at it before its run ended. It is in
    /// the queue.
    SteerState { HandedOver, Seen, Returned }
    RewindReason { Edit, Regenerate, Retry }
    /// Why a run began; `SelfStarted` is the agent going on by itself.
    Trigger { User, Agent, Callback, Continue, Retry, #[serde(rename = "self")] SelfStarted }
    /// Where the provider itself says what a text is, it is believed.
    Phase { Commentary, Final }
    /// Who runs the tool.
    Executor { Server, Agent, Client }
    Validation { NotRequired, Pending }
    Decision { Accepted, Rejected, TimedOut, Withdrawn }
    Scope { Once, Session, Always }
    OutputStream { Stdout, Stderr }
    Level { Info, Error }
    CancelReason { UserCancel, Timeout, Error, Restart, Import }
    RunStatus { Completed, Failed, Cancelled }
    Direction { Sent, Received }
    /// Where a question to another agent is: in that agent's queue, at work, or at work and held up
    /// until a person decides.
    ExchangeState { Queued, Running, AwaitingApproval }
}

/// Whose voice a `user_message` is; a system message shows as a quiet line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SaidBy {
    #[default]
    User,
    System,
}

impl SaidBy {
    fn is_user(&self) -> bool {
        *self == Self::User
    }
}

/// What a message that comes during a run should do: wait, or go into the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SendMode {
    #[default]
    Queue,
    Steer,
}

impl SendMode {
    fn is_queue(&self) -> bool {
        *self == Self::Queue
    }
}

/// Whether the one who asks waits for the answer, or is called back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExchangeMode {
    #[default]
    Sync,
    Async,
}

impl ExchangeMode {
    fn is_sync(&self) -> bool {
        *self == Self::Sync
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    pub blob: String,
    pub name: String,
    pub media_type: String,
    pub size: u64,
}

/// The agent that a message comes from, where it comes from one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Sender {
    pub session_id: SessionId,
    pub agent: String,
    pub exchange_id: ExchangeId,
    /// How many questions of agents have led to this message since a person said something.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// What was asked is answered; else it is a question.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_answer: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalOptions {
    pub scopes: Vec<Scope>,
    pub can_edit: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
    /// What a decision for more than once would hold for, as the policy names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<String>,
    /// Why the agent's program says it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Of a call that writes a file: what it would write over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<WriteTarget>,
}

/// What stood where a call wants to write, at the moment of the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WriteTarget {
    /// The whole path.
    pub path: String,
    /// How large the file is that is there; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// What it holds, where that is text and not long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
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
