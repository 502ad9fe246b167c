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

/// Hint for error messages: how a user gets an agent when the server has none that can answer.
pub const HOW_TO_GET_ONE: &str = "install Claude Code, Codex or Pi, add a model to callboard.toml \
     under [[agents]], or remove demo = false from it to get the built-in agent";

/// A command to a session, from a client, from another session, or from the server itself.
#[derive(Debug)]
pub enum Command {
    /// Changes the settings of the session: title, archive flag or workspace.
    Update {
        /// New values of the session's settings.
        patch: SessionPatch,
        /// Reply handle of the caller that changes the settings.
        reply: ReplyTo<()>,
    },
    /// Appends imported turns. Refused if the log has changed since the import read it, or a run is
    /// open.
    Add {
        /// Imported turns to append.
        addition: Addition,
        /// Reply handle of the caller that imports the turns.
        reply: ReplyTo<()>,
    },
    /// Accepts a message, which starts a run or is queued.
    Send {
        /// Message to accept.
        message: NewMessage,
        /// Reply handle of the sender, which gets the id and the state of the message.
        reply: ReplyTo<Receipt>,
    },
    /// Stops the open run and holds the queue. Replies when the run has ended.
    Cancel {
        /// Name of the person or client that stops the run, for the log.
        by: String,
        /// Whether to refuse the command while the run waits for a person's decision.
        unless_asking: bool,
        /// Reply handle of the caller, which gets the id of the stopped run, or `None` if no run
        /// was open.
        reply: ReplyTo<Option<ResponseId>>,
    },
    /// Starts a run that continues the answer at the end of the conversation, such as an
    /// interrupted one.
    Continue {
        /// Reply handle of the caller, which gets the id of the new run.
        reply: ReplyTo<ResponseId>,
    },
    /// Starts a run that replaces an earlier answer, which becomes superseded.
    Retry {
        /// Id of the answer to replace, or of the message that it answers. `None` for the last
        /// answer.
        of: Option<String>,
        /// Reason for the rewind, as the log records it.
        reason: RewindReason,
        /// Reply handle of the caller, which gets the id of the new run.
        reply: ReplyTo<ResponseId>,
    },
    /// Replaces an earlier message of a person. Everything in the log after that message is
    /// superseded.
    Edit {
        /// Id of the message to replace.
        earlier: MessageId,
        /// New message, which is sent in place of the earlier one.
        message: NewMessage,
        /// Reply handle of the sender, which gets the id and the state of the new message.
        reply: ReplyTo<Receipt>,
    },
    /// Changes the text or the position of a queued message, or removes it from the queue.
    ChangeQueued {
        /// Id of the queued message.
        message_id: MessageId,
        /// Change of the queued message.
        change: QueuedChange,
        /// Reply handle of the caller that changes the queued message.
        reply: ReplyTo<()>,
    },
    /// Steers a queued message: hands it to the agent during the open run.
    SteerQueued {
        /// Id of the queued message to steer.
        message_id: MessageId,
        /// Reply handle of the caller, which gets the state of the steered message.
        reply: ReplyTo<Receipt>,
    },
    /// Releases the held queue, so that its messages start runs again.
    ReleaseQueue {
        /// Reply handle of the caller that releases the queue.
        reply: ReplyTo<()>,
    },
    /// Drops all queued messages, except those that are being steered.
    ClearQueue {
        /// Reply handle of the caller that clears the queue.
        reply: ReplyTo<()>,
    },
    /// Logs a message that the session's agent sends to another agent, or the refusal of that
    /// message.
    OpenExchange {
        /// Content of the message and of its exchange.
        opening: ExchangeOpening,
        /// Reply handle of the caller, which gets the sender to name in the message, or the
        /// refusal.
        reply: ReplyTo<Opened>,
    },
    /// Logs progress or the end of an exchange that the session's agent has started.
    UpdateExchange {
        /// Id of the exchange.
        exchange_id: ExchangeId,
        /// Progress or end of the exchange.
        news: ExchangeNews,
        /// Reply handle of the caller that reports on the exchange.
        reply: ReplyTo<()>,
    },
    /// Withdraws a message that another agent sent to this session: removes it from the queue, or
    /// stops the run that answers it. Replies when that run has ended.
    Abandon {
        /// Id of the exchange whose message is withdrawn.
        exchange_id: ExchangeId,
        /// Agent or cause that withdraws the message, as text for the log.
        by: String,
        /// Reply handle of the caller that withdraws the message.
        reply: ReplyTo<()>,
    },
    /// Decides about a tool call that waits for an approval.
    Approve {
        /// Decision about the tool call.
        approval: Approval,
        /// Reply handle of the caller that decides.
        reply: ReplyTo<()>,
    },
    /// Undoes the approval of a tool call: revokes the grant that the decision stored.
    UndoApproval {
        /// Id of the tool call whose approval is undone.
        call_id: CallId,
        /// Name of the person who undoes the approval, for the log.
        by: String,
        /// Reply handle of the caller, which learns whether the tool call was stopped.
        reply: ReplyTo<Undone>,
    },
    /// Revokes a grant that holds for the session.
    RevokeGrant {
        /// Id of the grant in the API.
        id: String,
        /// Tool calls that the grant covers, as text; see [`transcript::GrantScope`].
        covers: String,
        /// Name of the person who revokes the grant, for the log.
        by: String,
        /// Reply handle of the caller that revokes the grant.
        reply: ReplyTo<()>,
    },
    /// Gives the result of a tool call that the client has run.
    GiveResult {
        /// Id of the tool call.
        call_id: CallId,
        /// Result or error of the tool call.
        outcome: ToolOutcome,
        /// Reply handle of the client that ran the tool.
        reply: ReplyTo<()>,
    },
    /// Runs one of Callboard's own tools for the session's program.
    CallTool {
        /// Tool call that the program requests.
        call: RelayedCall,
        /// Reply handle of the program's request, which gets the outcome of the tool call.
        reply: ReplyTo<ToolOutcome>,
    },
    /// Deletes the session. An open run is dropped.
    Delete {
        /// Reply handle of the caller that deletes the session.
        reply: ReplyTo<()>,
    },
    /// Ends the session's work because the server stops. A run that only waits for a person stays
    /// open in the log.
    Stop {
        /// Reply handle of the server, which gets the reply when the end is in the log.
        reply: ReplyTo<()>,
    },
}

impl Command {
    /// Returns the id of the caller that waits for the reply to this command.
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

/// New settings of a session. Fields that are `None` keep their values.
#[derive(Debug, Clone, Default)]
pub struct SessionPatch {
    /// Title of the session, as a person gave it.
    pub title: Option<String>,
    /// Whether the session is archived.
    pub archived: Option<bool>,
    /// Workspace of the session, as a person chose it.
    pub workspace: Option<String>,
}

/// Imported turns to append to the log of a session.
#[derive(Debug, Clone)]
pub struct Addition {
    /// Sequence number of the log's last record when the import read the log.
    pub head: Seq,
    /// Records of the imported turns, with the times of the original conversation.
    pub records: Arc<[Record]>,
}

/// A message that is sent to a session and not accepted yet.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// Text of the message.
    pub text: String,
    /// Idempotency key that the client chose for the message.
    pub client_id: Option<ClientId>,
    /// Files that belong to the message.
    pub attachments: Vec<Attachment>,
    /// Whether the message is queued or steered while a run is open.
    pub mode: SendMode,
    /// Agent that sends the message. `None` if a person sends it.
    pub from: Option<Sender>,
    /// Tools that the sender of the message runs itself.
    pub client_tools: Vec<ClientTool>,
    /// Original form of the message as the client sent it. `None` if the other fields lose no
    /// information.
    pub sent: Option<SentForm>,
}

impl NewMessage {
    /// Returns a message of a person that has only a text and is queued while a run is open.
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
    /// Id of the accepted message.
    pub message_id: MessageId,
    /// State of the message: started, queued, being steered or handed over.
    pub state: MessageState,
}

/// State of an accepted message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// The run that answers the message has begun.
    Started,
    /// The message waits in the queue, also if it was to be steered and the agent could not take
    /// it.
    Queued,
    /// The message goes to the agent during the open run. Later records say when the agent has it,
    /// or that the agent could not take it.
    Steering,
    /// The agent has the message, in the open run.
    HandedOver,
}

/// Change that a command makes to a queued message.
#[derive(Debug, Clone)]
pub enum QueuedChange {
    /// Replaces the text of the queued message.
    Text(String),
    /// Moves the queued message to this position in the queue, counted from 0.
    Position(u32),
    /// Removes the message from the queue.
    Dropped,
}

/// A person's decision about a tool call that needs an approval: accept or reject it.
#[derive(Debug, Clone)]
pub struct Approval {
    /// Id of the tool call.
    pub call_id: CallId,
    /// Decision: accepted or rejected.
    pub answer: Answered,
    /// Message of the person to the agent about the decision, such as the reason for a rejection.
    pub feedback: Option<String>,
    /// Name of the person who decides, for the log.
    pub by: String,
}

/// Decision about a tool call that needs an approval.
#[derive(Debug, Clone)]
pub enum Answered {
    /// The tool call may run.
    Accepted {
        /// How long the decision holds: once, for the session, or always.
        scope: Scope,
        /// Arguments as the person has edited them, as JSON text. `None` if they are unchanged.
        arguments: Option<String>,
    },
    /// The tool call must not run.
    Rejected,
}

/// Effect of an undone approval on its tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Undone {
    /// Whether the tool call was stopped before it started, so that it ends as denied. If false, it
    /// continues, and only later tool calls need an approval again.
    pub stopped: bool,
}

/// Tool call of one of Callboard's own tools that the session's program requests over HTTP.
#[derive(Debug, Clone)]
pub struct RelayedCall {
    /// Name of the tool to run.
    pub tool_name: String,
    /// Arguments of the tool call.
    pub arguments: Value,
    /// Id that the model gave the tool call. `None` if the program does not send it.
    pub provider_call_id: Option<String>,
}

/// A message to another agent, for the log of the sender's session.
#[derive(Debug, Clone)]
pub struct ExchangeOpening {
    /// Id of the exchange.
    pub exchange_id: ExchangeId,
    /// Id of the sender's run.
    pub run: ResponseId,
    /// Id of the sender's tool call that sends the message.
    pub call_id: CallId,
    /// Name of the agent that receives the message.
    pub agent: String,
    /// Session that receives the message. `None` if none could be found.
    pub asked: Option<SessionId>,
    /// Text of the message to the other agent.
    pub text: String,
    /// Whether the sender waits for the reply (synchronous) or gets it later as a message.
    pub mode: ExchangeMode,
    /// Reason why the message is refused. `None` if it may be sent.
    pub refused: Option<ErrorInfo>,
}

/// Result of opening an exchange: the sender to name in the message, or the reason for the refusal.
pub type Opened = Result<Sender, ErrorInfo>;

/// Result of an exchange: the final text of the agent that was asked, or why there is none.
pub type Outcome = Result<String, ErrorInfo>;

/// Change of an exchange, reported to the session that sent the message.
#[derive(Debug, Clone)]
pub enum ExchangeNews {
    /// The exchange has changed its state.
    Progress(ExchangeState),
    /// The exchange has ended with this result.
    Ended(Outcome),
}

/// Returns the id of the run that answers an exchange. It is derived from the exchange's id, so
/// both sessions know it before the run begins.
pub fn answering(exchange: &ExchangeId) -> ResponseId {
    ResponseId::new(exchange.as_str())
}

/// Reason why a session refuses a command.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// The session of the command does not exist.
    #[error("there is no such session")]
    NoSession,
    /// The session of the command is about to be deleted.
    #[error("the session was deleted; undo the deletion to use it again")]
    PendingDeletion,
    /// A session with this id exists already.
    #[error("a session of that id exists already")]
    Exists,
    /// A run is open. For an import: a run is open, or the log has changed since it was read.
    #[error("the agent is working; stop it or wait until it has finished")]
    Busy,
    /// The conversation does not end with an answer to continue, or has no such answer to retry.
    /// Contains the verb for the error message.
    #[error("there is nothing to {0}: the agent has not answered yet")]
    Nothing(&'static str),
    /// No configured agent has this name.
    #[error("{}", no_agent(name, known))]
    NoAgent {
        /// Requested name of the agent.
        name: String,
        /// Names of the agents that can answer, separated by commas.
        known: String,
    },
    /// The message with this id does not exist, or cannot be changed any more.
    #[error("the session has no message {0:?} that could be changed")]
    NoMessage(String),
    /// The session has no tool call with this id that waits or waited for a decision.
    #[error("the session has no call {0:?} that waits or waited for a decision")]
    NoCall(String),
    /// The tool call with this id does not wait for a client's result.
    #[error("the session has no call {0:?} that waits for a client's result")]
    NotAwaited(String),
    /// The tool call has been decided about already.
    #[error("the call was decided already, by {}", if by == "user" { "you" } else { by })]
    Decided {
        /// Name of the person or system that decided first.
        by: String,
        /// Time of the earlier decision.
        at: Millis,
    },
    /// The tool call cannot run with the arguments that the decision approves. Contains the reason.
    #[error("the arguments cannot be used: {0}")]
    BadArguments(String),
    /// The decision cannot hold for the session or always, because this tool call can only be
    /// allowed once.
    #[error("this call cannot be allowed for more than once")]
    OnlyOnce,
    /// The run waits for a person's decision, and the command asked not to stop it then.
    #[error("the run waits for a decision; decide, or cancel without unlessAsking")]
    Asking,
    /// The decision stored no grant, or its grant was revoked already.
    #[error("nothing can be undone: the decision was for one call only, or was undone already")]
    NothingToUndo,
    /// The session has no grant with this id.
    #[error("the session has no grant {0:?}; GET /api/sessions/ID/grants lists those it has")]
    NoGrant(String),
    /// The queue has reached this maximum number of messages.
    #[error("{0} messages are waiting already; wait until some have been answered")]
    QueueFull(usize),
    /// No run is open into which the message could be steered.
    #[error("no run is open that could take the message; send it instead")]
    NothingRuns,
    /// The log cannot be read or written. Contains the reason.
    #[error("the log cannot be written: {0}")]
    Storage(String),
    /// The server is stopping, or the session's work has ended.
    #[error("the server is stopping")]
    Stopping,
}

fn no_agent(name: &str, known: &str) -> String {
    match known {
        "" => format!("no agent is ready: {HOW_TO_GET_ONE}; callboard doctor says what was found"),
        known => format!("no agent is called '{name}'; there are: {known}"),
    }
}
