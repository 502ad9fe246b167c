//! Access of tools to the other agents of the server.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use transcript::{CallId, ErrorInfo, ExchangeId, ExchangeMode, ResponseId, SessionId};

use crate::Stopped;

/// Access of tools to the other agents of the server and to their sessions.
pub trait Peers: Send + Sync {
    /// Lists all agents of the server, as the agent of `session` sees them.
    fn list<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Vec<Peer>, ErrorInfo>>;

    /// Sends a message to another agent. In the mode `sync` it resolves with the reply, and the
    /// stop signal abandons the exchange. Refusals and failures are in the log of the sender too.
    fn message<'a>(
        &'a self,
        message: PeerMessage,
        stopped: &'a Stopped,
    ) -> BoxFuture<'a, Result<PeerReply, ErrorInfo>>;
}

/// An agent of the server, as listed by [`Peers::list`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Id of the agent, by which messages are addressed to it.
    pub id: String,
    /// Kind of the agent's backend.
    pub kind: &'static str,
    /// Purpose of the agent.
    pub description: String,
    /// Reason why the agent cannot be used now; `None` if it can be used.
    pub problem: Option<String>,
    /// Whether the agent has an active run in another session.
    pub is_busy: bool,
    /// Whether this is the agent that requests the list.
    pub is_caller: bool,
}

/// A message from one agent to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerMessage {
    /// Id of the session from which the message is sent.
    pub session: SessionId,
    /// Id of the run that sends the message.
    pub run: ResponseId,
    /// Id of the tool call that sends the message.
    pub call_id: CallId,
    /// Id of the agent that receives the message.
    pub agent: String,
    /// Session that receives the message; `None` if the configured rule chooses it.
    pub choice: Option<SessionChoice>,
    /// Text of the message to the other agent.
    pub text: String,
    /// Mode of the exchange: whether the sender waits for the reply.
    pub mode: ExchangeMode,
    /// Time that the sender waits for the reply, not counting the time that a person takes for an
    /// approval; `None` for the configured timeout.
    pub timeout: Option<Duration>,
}

/// Result of sending a [`PeerMessage`] to another agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerReply {
    /// Id of the exchange in the logs of both sessions.
    pub exchange_id: ExchangeId,
    /// Id of the session that received the message.
    pub session: SessionId,
    /// Text of the other agent's reply; `None` in the mode `async`, where it arrives later as a
    /// message.
    pub answer: Option<String>,
}

/// Rule that chooses the receiving session of a message between agents that names none.
///
/// The default keeps the messages of agents out of the conversations of people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionRule {
    /// The message always goes to a new session.
    #[default]
    New,
    /// The message goes to the receiving agent's most recent session.
    Latest,
    /// The message goes to the receiving agent's most recent session, or to a new one if it has
    /// none.
    LatestOrNew,
}

/// Session that a message between agents is addressed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    /// The session that a rule chooses.
    By(SessionRule),
    /// The session with this id.
    This(SessionId),
}

impl SessionChoice {
    /// Parses the name of a session rule or a session id. Returns `None` if the word is neither.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "new" => Self::By(SessionRule::New),
            "latest" => Self::By(SessionRule::Latest),
            "latest-or-new" => Self::By(SessionRule::LatestOrNew),
            id => Self::This(SessionId::parse(id)?),
        })
    }
}
