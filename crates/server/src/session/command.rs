//! What can be asked of a session, and how it may be refused.

use backends::ToolOutcome;
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;
use tokio::sync::oneshot;
use transcript::{
    Attachment, CallId, ClientId, ClientTool, ErrorInfo, ExchangeId, MessageId, Millis, ResponseId,
    RewindReason, Scope, SendMode, Sender, SentForm, SessionId,
};

use super::exchanges::{ExchangeNews, Opening};
use super::own_calls::OwnCall;
use crate::agents::HOW_TO_GET_ONE;
use crate::import::Addition;

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Refused>>;

pub(crate) enum Command {
    Update {
        patch: SessionPatch,
        reply: Reply<()>,
    },
    /// Adds turns that were taken elsewhere; nothing else may have happened since they were read.
    Add {
        addition: Addition,
        reply: Reply<()>,
    },
    Send {
        message: NewMessage,
        reply: Reply<Receipt>,
    },
    /// Stops the run, and holds what waits. Answers when the run has ended; none if there was none.
    Cancel {
        by: String,
        /// Refused while a person is asked something.
        unless_asking: bool,
        reply: Reply<Option<ResponseId>>,
    },
    /// Lets the agent go on after its last run was cut short.
    Continue {
        reply: Reply<ResponseId>,
    },
    /// Answers a message again, in place of this answer or of the one to this message; of the last
    /// answer, if none is named.
    Retry {
        of: Option<String>,
        reason: RewindReason,
        reply: Reply<ResponseId>,
    },
    /// Says an earlier message again in other words; what followed it is put aside.
    Edit {
        earlier: MessageId,
        message: NewMessage,
        reply: Reply<Receipt>,
    },
    /// Changes a message that waits for its turn.
    ChangeQueued {
        message_id: MessageId,
        change: QueuedChange,
        reply: Reply<()>,
    },
    /// Hands a message that waits to the run that is active.
    SteerQueued {
        message_id: MessageId,
        reply: Reply<Receipt>,
    },
    /// Lets what was held start.
    ReleaseQueue {
        reply: Reply<()>,
    },
    /// Takes back every message that waits.
    ClearQueue {
        reply: Reply<()>,
    },
    /// Writes down a question to another agent, or that it is refused. Gives what the message says
    /// of where it comes from.
    OpenExchange {
        opening: Opening,
        reply: Reply<Result<Sender, ErrorInfo>>,
    },
    /// Writes down what became of a question to another agent.
    HearExchange {
        exchange_id: ExchangeId,
        news: ExchangeNews,
        reply: Reply<()>,
    },
    /// Whoever asked this wants no answer any more. Answers when nothing works on it.
    Abandon {
        exchange_id: ExchangeId,
        by: String,
        reply: Reply<()>,
    },
    /// Decides about a call that waits for it.
    Approve {
        approval: Approval,
        reply: Reply<()>,
    },
    /// Takes back what a decision about a call allowed for more than once.
    UndoApproval {
        call_id: CallId,
        by: String,
        reply: Reply<Undone>,
    },
    /// Takes back a grant of the session.
    RevokeGrant {
        id: String,
        by: String,
        reply: Reply<()>,
    },
    /// What came of a call that the client has run.
    GiveResult {
        call_id: CallId,
        outcome: ToolOutcome,
        reply: Reply<()>,
    },
    /// The session's program calls a tool of ours. It is given up when nobody waits for the answer.
    CallTool {
        call: OwnCall,
        reply: Reply<ToolOutcome>,
    },
    /// Forgets everything about the session, whatever it is doing.
    Delete {
        reply: Reply<()>,
    },
    /// The server stops.
    Stop {
        reply: oneshot::Sender<()>,
    },
}

impl Command {
    pub(super) fn refuse(self, why: Refused) {
        match self {
            Self::Update { reply, .. }
            | Self::Add { reply, .. }
            | Self::ChangeQueued { reply, .. }
            | Self::ReleaseQueue { reply }
            | Self::ClearQueue { reply }
            | Self::HearExchange { reply, .. }
            | Self::Abandon { reply, .. }
            | Self::Approve { reply, .. }
            | Self::RevokeGrant { reply, .. }
            | Self::GiveResult { reply, .. }
            | Self::Delete { reply } => {
                drop(reply.send(Err(why)));
            }
            Self::Send { reply, .. }
            | Self::Edit { reply, .. }
            | Self::SteerQueued { reply, .. } => drop(reply.send(Err(why))),
            Self::UndoApproval { reply, .. } => drop(reply.send(Err(why))),
            Self::OpenExchange { reply, .. } => drop(reply.send(Err(why))),
            Self::Cancel { reply, .. } => drop(reply.send(Err(why))),
            Self::Continue { reply } | Self::Retry { reply, .. } => drop(reply.send(Err(why))),
            Self::CallTool { reply, .. } => drop(reply.send(Err(why))),
            Self::Stop { reply } => {
                let _ = reply.send(());
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) id: SessionId,
    pub(crate) agent: String,
    pub(crate) title: Option<String>,
    /// Chosen by a person.
    pub(crate) workspace: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct SessionPatch {
    pub(crate) title: Option<String>,
    pub(crate) archived: Option<bool>,
    /// Chosen by a person.
    pub(crate) workspace: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct NewMessage {
    pub(crate) text: String,
    pub(crate) client_id: Option<ClientId>,
    pub(crate) attachments: Vec<Attachment>,
    /// What to do with it while a run is active.
    pub(crate) mode: SendMode,
    /// The agent that says it; none where a person does.
    pub(crate) from: Option<Sender>,
    /// That the sender runs itself.
    pub(crate) client_tools: Vec<ClientTool>,
    /// As it came, where text and attachments do not say it all.
    pub(crate) sent: Option<SentForm>,
}

/// What became of a message, at the moment it was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) message_id: MessageId,
    pub(crate) state: MessageState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessageState {
    /// Its run has begun.
    Started,
    /// It waits for its turn: also if it was to be steered, and the agent could not take it.
    Queued,
    /// It goes to the agent at its next step; the records say when, or that it could not.
    Steering,
    /// The agent has it.
    HandedOver,
}

#[derive(Debug, Clone)]
pub(crate) enum QueuedChange {
    Text(String),
    /// To that place, from 0.
    Position(u32),
    Dropped,
}

/// What a person says about a call.
#[derive(Debug, Clone)]
pub(crate) struct Approval {
    pub(crate) call_id: CallId,
    pub(crate) answer: Answered,
    pub(crate) feedback: Option<String>,
    pub(crate) by: String,
}

#[derive(Debug, Clone)]
pub(crate) enum Answered {
    /// With these arguments instead of the proposed ones, if there are any.
    Accepted {
        scope: Scope,
        arguments: Option<String>,
    },
    Rejected,
}

/// Outcome of an undone approval for its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Undone {
    /// The call had not started, and ends as denied. Else it goes on; later ones are asked about.
    pub(crate) stopped: bool,
}

/// Why a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Refused {
    #[error("there is no such session")]
    NoSession,
    #[error("the session was deleted; take that back first to go on with it")]
    Leaving,
    #[error("a session of that id exists already")]
    Exists,
    #[error("the agent is working; stop it or wait until it has finished")]
    Busy,
    #[error("there is nothing to {0}: the agent has not answered yet")]
    Nothing(&'static str),
    /// With those that can answer, if any can.
    #[error("{}", no_agent(name, known))]
    NoAgent { name: String, known: String },
    #[error("the session has no message {0:?} that could be changed")]
    NoMessage(String),
    #[error("the session has no call {0:?} that waits or waited for a decision")]
    NoCall(String),
    #[error("the session has no call {0:?} that waits for a client's result")]
    NotAwaited(String),
    #[error("the call was decided already, by {}", if by == "user" { "you" } else { by })]
    Decided { by: String, at: Millis },
    #[error("those arguments cannot be used: {0}")]
    BadArguments(String),
    #[error("this call cannot be allowed for more than once")]
    OnlyOnce,
    #[error("the run waits for a decision; decide, or cancel without unlessAsking")]
    Asking,
    #[error("nothing can be undone: the decision was for one call only, or was taken back already")]
    NothingToUndo,
    #[error("the session has no grant {0:?}; GET /api/sessions/ID/grants lists those it has")]
    NoGrant(String),
    #[error("{0} messages are waiting already; wait until some have been answered")]
    QueueFull(usize),
    #[error("nothing runs that the message could be handed to; send it instead")]
    NothingRuns,
    #[error("the log cannot be written: {0}")]
    Storage(String),
    #[error("the server is stopping")]
    Stopping,
}

fn no_agent(name: &str, known: &str) -> String {
    match known {
        "" => format!("no agent is ready: {HOW_TO_GET_ONE}; callboard doctor says what was found"),
        known => format!("no agent is called '{name}'; there are: {known}"),
    }
}
