//! Commands that a session takes, and the reasons for which it refuses them.

use std::sync::Arc;

use backends::ToolOutcome;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;
use transcript::{
    Attachment, CallId, ClientId, ClientTool, ErrorInfo, ExchangeId, ExchangeMode, ExchangeState,
    MessageId, Millis, Record, ResponseId, RewindReason, Scope, SendMode, Sender, SentForm, Seq,
    SessionId,
};

use crate::{ReplyId, ReplyTo};

/// How to get an agent where none can answer.
pub const HOW_TO_GET_ONE: &str = "install Claude Code, Codex or Pi, add a model to callboard.toml \
     under [[agents]], or take demo = false out of it to have the built-in agent";

/// A request of a client, of another session, or of the server itself.
#[derive(Debug)]
pub enum Command {
    /// Changes the session's settings.
    Update {
        /// New values.
        patch: SessionPatch,
        /// The caller.
        reply: ReplyTo<()>,
    },
    /// Appends imported turns. Refused if anything else was logged since they were read.
    Add {
        /// The turns.
        addition: Addition,
        /// The caller.
        reply: ReplyTo<()>,
    },
    /// Accepts a message, which starts a run or is queued.
    Send {
        /// The message.
        message: NewMessage,
        /// The caller.
        reply: ReplyTo<Receipt>,
    },
    /// Stops the run and holds the queue. Replies when the run has ended.
    Cancel {
        /// Who stops it.
        by: String,
        /// Whether to refuse while a person is asked for a decision.
        unless_asking: bool,
        /// The caller, which gets the run that was stopped.
        reply: ReplyTo<Option<ResponseId>>,
    },
    /// Continues after the last run was cut short.
    Continue {
        /// The caller, which gets the new run.
        reply: ReplyTo<ResponseId>,
    },
    /// Answers a message again, in place of an earlier answer.
    Retry {
        /// Id of the answer to replace, or of its message; the last answer if absent.
        of: Option<String>,
        /// Reason that the log gives for the rewind.
        reason: RewindReason,
        /// The caller, which gets the new run.
        reply: ReplyTo<ResponseId>,
    },
    /// Replaces an earlier message of a person; everything after it is superseded.
    Edit {
        /// The message to replace.
        earlier: MessageId,
        /// The message in its place.
        message: NewMessage,
        /// The caller.
        reply: ReplyTo<Receipt>,
    },
    /// Changes a queued message.
    ChangeQueued {
        /// The message.
        message_id: MessageId,
        /// The change.
        change: QueuedChange,
        /// The caller.
        reply: ReplyTo<()>,
    },
    /// Steers a queued message into the open run.
    SteerQueued {
        /// The message.
        message_id: MessageId,
        /// The caller.
        reply: ReplyTo<Receipt>,
    },
    /// Releases the held queue.
    ReleaseQueue {
        /// The caller.
        reply: ReplyTo<()>,
    },
    /// Drops all queued messages.
    ClearQueue {
        /// The caller.
        reply: ReplyTo<()>,
    },
    /// Logs a message to another agent, or its refusal.
    OpenExchange {
        /// The exchange.
        opening: ExchangeOpening,
        /// The caller, which gets the sender to name in the message.
        reply: ReplyTo<Opened>,
    },
    /// Logs progress or the end of an exchange.
    UpdateExchange {
        /// The exchange.
        exchange_id: ExchangeId,
        /// The progress or the end.
        news: ExchangeNews,
        /// The caller.
        reply: ReplyTo<()>,
    },
    /// Withdraws a message of another agent. Replies when nothing works on it any more.
    Abandon {
        /// The exchange.
        exchange_id: ExchangeId,
        /// Who withdraws it.
        by: String,
        /// The caller.
        reply: ReplyTo<()>,
    },
    /// Decides about a call that waits for approval.
    Approve {
        /// The decision.
        approval: Approval,
        /// The caller.
        reply: ReplyTo<()>,
    },
    /// Revokes the grant that a decision gave.
    UndoApproval {
        /// The call that was decided about.
        call_id: CallId,
        /// Who revokes it.
        by: String,
        /// The caller.
        reply: ReplyTo<Undone>,
    },
    /// Revokes a grant of the session.
    RevokeGrant {
        /// The grant's name in the API.
        id: String,
        /// The scope of the grant; see [`transcript::GrantScope`].
        covers: String,
        /// Who revokes it.
        by: String,
        /// The caller.
        reply: ReplyTo<()>,
    },
    /// Gives the result of a call that the client has run.
    GiveResult {
        /// The call.
        call_id: CallId,
        /// Its outcome.
        outcome: ToolOutcome,
        /// The caller.
        reply: ReplyTo<()>,
    },
    /// Runs one of Callboard's own tools for the session's program.
    CallTool {
        /// The call.
        call: RelayedCall,
        /// The caller, which gets the outcome.
        reply: ReplyTo<ToolOutcome>,
    },
    /// Deletes the session, whatever it is doing.
    Delete {
        /// The caller.
        reply: ReplyTo<()>,
    },
    /// Ends the session's work in good order, because the server stops.
    Stop {
        /// The caller.
        reply: ReplyTo<()>,
    },
}

impl Command {
    /// Returns the caller.
    pub fn caller(&self) -> ReplyId {
        match self {
            Self::Update { reply, .. }
            | Self::Add { reply, .. }
            | Self::ChangeQueued { reply, .. }
            | Self::ReleaseQueue { reply }
            | Self::ClearQueue { reply }
            | Self::UpdateExchange { reply, .. }
            | Self::Abandon { reply, .. }
            | Self::Approve { reply, .. }
            | Self::RevokeGrant { reply, .. }
            | Self::GiveResult { reply, .. }
            | Self::Delete { reply }
            | Self::Stop { reply } => reply.id(),
            Self::Send { reply, .. }
            | Self::Edit { reply, .. }
            | Self::SteerQueued { reply, .. } => reply.id(),
            Self::Continue { reply } | Self::Retry { reply, .. } => reply.id(),
            Self::UndoApproval { reply, .. } => reply.id(),
            Self::OpenExchange { reply, .. } => reply.id(),
            Self::Cancel { reply, .. } => reply.id(),
            Self::CallTool { reply, .. } => reply.id(),
        }
    }
}

/// New settings of a session; absent fields keep their values.
#[derive(Debug, Clone, Default)]
pub struct SessionPatch {
    /// Title that a person gave.
    pub title: Option<String>,
    /// Whether the session is archived.
    pub archived: Option<bool>,
    /// Workspace that a person chose.
    pub workspace: Option<String>,
}

/// Imported turns for the end of a log.
#[derive(Debug, Clone)]
pub struct Addition {
    /// Head of the log when the import read it.
    pub head: Seq,
    /// The turns, with their own times.
    pub records: Arc<[Record]>,
}

/// A message on its way into a session.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// The text.
    pub text: String,
    /// The client's idempotency key.
    pub client_id: Option<ClientId>,
    /// Files that belong to the message.
    pub attachments: Vec<Attachment>,
    /// How it reaches the agent while a run is open.
    pub mode: SendMode,
    /// The agent that sends it; absent for a person.
    pub from: Option<Sender>,
    /// Tools that the sender runs itself.
    pub client_tools: Vec<ClientTool>,
    /// Form in which the client sent it, if the other fields lose information.
    pub sent: Option<SentForm>,
}

impl NewMessage {
    /// Returns a plain message of a person, to be queued while a run is open.
    pub fn of_person(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            client_id: None,
            attachments: Vec::new(),
            mode: SendMode::Queue,
            from: None,
            client_tools: Vec::new(),
            sent: None,
        }
    }
}

/// Id and state of a message when it was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Id of the message.
    pub message_id: MessageId,
    /// Where it went.
    pub state: MessageState,
}

/// State of an accepted message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// Its run has begun.
    Started,
    /// It waits for its turn: also if it was to be steered, and the agent could not take it.
    Queued,
    /// It goes to the agent at its next step; the records say when, or that it could not.
    Steering,
    /// The agent has it.
    HandedOver,
}

/// Change of a queued message.
#[derive(Debug, Clone)]
pub enum QueuedChange {
    /// Replaces its text.
    Text(String),
    /// Moves it to this position, from 0.
    Position(u32),
    /// Removes it.
    Dropped,
}

/// A person's decision about a call.
#[derive(Debug, Clone)]
pub struct Approval {
    /// The call.
    pub call_id: CallId,
    /// The decision.
    pub answer: Answered,
    /// The person's message to the agent.
    pub feedback: Option<String>,
    /// Who decides.
    pub by: String,
}

/// The two decisions.
#[derive(Debug, Clone)]
pub enum Answered {
    /// The call may run.
    Accepted {
        /// How long the decision holds.
        scope: Scope,
        /// Edited arguments, as JSON text.
        arguments: Option<String>,
    },
    /// The call must not run.
    Rejected,
}

/// Outcome of an undone approval for its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Undone {
    /// The call had not started, and ends as denied. Else it goes on; later ones are asked about.
    pub stopped: bool,
}

/// Call of one of Callboard's own tools by the session's program, as it came over HTTP.
#[derive(Debug, Clone)]
pub struct RelayedCall {
    /// Name of the tool.
    pub tool_name: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// The model's id for the call, if the program sends it along.
    pub provider_call_id: Option<String>,
}

/// A message to another agent, as the sender's log records it.
#[derive(Debug, Clone)]
pub struct ExchangeOpening {
    /// Id of the exchange.
    pub exchange_id: ExchangeId,
    /// Run of the sender.
    pub run: ResponseId,
    /// Call of the sender.
    pub call_id: CallId,
    /// Agent that is asked.
    pub agent: String,
    /// Session that is asked; absent where none could be found.
    pub asked: Option<SessionId>,
    /// Text of the message.
    pub text: String,
    /// Whether the sender waits for the reply.
    pub mode: ExchangeMode,
    /// Why the message is refused, if it is.
    pub refused: Option<ErrorInfo>,
}

/// The sender to name in the message of an exchange, or why it was refused.
pub type Opened = Result<Sender, ErrorInfo>;

/// Final text of the agent that was asked, or why there is none.
pub type Outcome = Result<String, ErrorInfo>;

/// News of an exchange for the sender's session.
#[derive(Debug, Clone)]
pub enum ExchangeNews {
    /// The exchange changed its state.
    Progress(ExchangeState),
    /// The exchange has ended.
    Ended(Outcome),
}

/// Returns the id of the run that answers an exchange, which both sides know before it begins.
pub fn answering(exchange: &ExchangeId) -> ResponseId {
    ResponseId::new(exchange.as_str())
}

/// Reason for which a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// The session does not exist.
    #[error("there is no such session")]
    NoSession,
    /// The session is about to be deleted.
    #[error("the session was deleted; take that back first to go on with it")]
    PendingDeletion,
    /// The id is taken.
    #[error("a session of that id exists already")]
    Exists,
    /// A run is open.
    #[error("the agent is working; stop it or wait until it has finished")]
    Busy,
    /// There is no answer to continue or to retry.
    #[error("there is nothing to {0}: the agent has not answered yet")]
    Nothing(&'static str),
    /// The agent is unknown.
    #[error("{}", no_agent(name, known))]
    NoAgent {
        /// Name that was asked for.
        name: String,
        /// Agents that can answer, separated by commas.
        known: String,
    },
    /// The message is not there, or cannot be changed any more.
    #[error("the session has no message {0:?} that could be changed")]
    NoMessage(String),
    /// The call never waited for a decision.
    #[error("the session has no call {0:?} that waits or waited for a decision")]
    NoCall(String),
    /// The call does not wait for a client's result.
    #[error("the session has no call {0:?} that waits for a client's result")]
    NotAwaited(String),
    /// Somebody else decided first.
    #[error("the call was decided already, by {}", if by == "user" { "you" } else { by })]
    Decided {
        /// Who decided.
        by: String,
        /// When.
        at: Millis,
    },
    /// The edited arguments do not fit the tool.
    #[error("those arguments cannot be used: {0}")]
    BadArguments(String),
    /// The decision cannot hold for more than one call.
    #[error("this call cannot be allowed for more than once")]
    OnlyOnce,
    /// A person is asked for a decision.
    #[error("the run waits for a decision; decide, or cancel without unlessAsking")]
    Asking,
    /// The decision gave no grant, or it was revoked.
    #[error("nothing can be undone: the decision was for one call only, or was taken back already")]
    NothingToUndo,
    /// The session has no such grant.
    #[error("the session has no grant {0:?}; GET /api/sessions/ID/grants lists those it has")]
    NoGrant(String),
    /// The queue is full.
    #[error("{0} messages are waiting already; wait until some have been answered")]
    QueueFull(usize),
    /// No run is open that could take the message.
    #[error("nothing runs that the message could be handed to; send it instead")]
    NothingRuns,
    /// The log cannot be read or written.
    #[error("the log cannot be written: {0}")]
    Storage(String),
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopping,
}

fn no_agent(name: &str, known: &str) -> String {
    match known {
        "" => format!("no agent is ready: {HOW_TO_GET_ONE}; callboard doctor says what was found"),
        known => format!("no agent is called '{name}'; there are: {known}"),
    }
}
