//! Access of tools to the other agents of the server.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use transcript::{CallId, ErrorInfo, ExchangeId, ExchangeMode, ResponseId, SessionId};

use crate::Stopped;

/// Access to other agents and their sessions.
pub trait Peers: Send + Sync {
    /// Lists all agents, as the agent of `session` sees them.
    fn list<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Vec<Peer>, ErrorInfo>>;

    /// Sends a message to another agent. In the mode `sync` it resolves with the reply, and a stop
    /// abandons the exchange. Refusals and failures are in the sender's log too.
    fn message<'a>(
        &'a self,
        message: PeerMessage,
        stopped: &'a Stopped,
    ) -> BoxFuture<'a, Result<PeerReply, ErrorInfo>>;
}

/// An agent in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Name by which it is addressed.
    pub id: String,
    /// Kind of its backend.
    pub kind: &'static str,
    /// Purpose of the agent.
    pub description: String,
    /// Why it cannot be used now.
    pub problem: Option<String>,
    /// Whether it has an active run in another session.
    pub is_busy: bool,
    /// Whether it is the agent that requests the list.
    pub is_caller: bool,
}

/// A message from one agent to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerMessage {
    /// Session of the sender.
    pub session: SessionId,
    /// Run of the sender.
    pub run: ResponseId,
    /// Call that sends the message.
    pub call_id: CallId,
    /// Agent that receives it.
    pub agent: String,
    /// Session that receives it; `None` for the configured rule.
    pub choice: Option<SessionChoice>,
    /// Text of the message.
    pub text: String,
    /// Whether the sender waits for the reply.
    pub mode: ExchangeMode,
    /// Time that the sender waits, not counting the time that a person takes for an approval; `None` for
    /// the configured timeout.
    pub timeout: Option<Duration>,
}

/// Result of a [`PeerMessage`] that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerReply {
    /// Identifies the exchange in both logs.
    pub exchange_id: ExchangeId,
    /// Session that received the message.
    pub session: SessionId,
    /// Text of the reply; `None` in the mode `async`, where it arrives later as a message.
    pub answer: Option<String>,
}

/// Rule that chooses a session for a message that names none.
///
/// The default keeps the messages of agents out of the conversations of people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionRule {
    /// Always a new session.
    #[default]
    New,
    /// The agent's most recent session.
    Latest,
    /// The agent's most recent session, or a new one if it has none.
    LatestOrNew,
}

/// Session that a message is addressed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    /// Chosen by a rule.
    By(SessionRule),
    /// This session.
    This(SessionId),
}

impl SessionChoice {
    /// Parses a rule or a session id. Returns `None` if the word is neither a rule nor an id.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "new" => Self::By(SessionRule::New),
            "latest" => Self::By(SessionRule::Latest),
            "latest-or-new" => Self::By(SessionRule::LatestOrNew),
            id => Self::This(SessionId::parse(id)?),
        })
    }
}
