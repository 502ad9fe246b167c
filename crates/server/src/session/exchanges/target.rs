//! Whom a question goes to: which agent, and which of its sessions.

use serde::Deserialize;
use transcript::{ErrorCode, ErrorInfo, SessionId};

use crate::clock;
use crate::session::Sessions;
use crate::session::command::NewSession;

/// How a session is chosen for a message that names none.
///
/// The default keeps the messages of agents out of the conversations of people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SessionRule {
    #[default]
    New,
    Latest,
    LatestOrNew,
}

/// Which of an agent's sessions a question goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    By(SessionRule),
    This(SessionId),
}

impl SessionChoice {
    /// Returns none if the word is neither a rule nor an id.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "new" => Self::By(SessionRule::New),
            "latest" => Self::By(SessionRule::Latest),
            "latest-or-new" => Self::By(SessionRule::LatestOrNew),
            id => Self::This(SessionId::parse(id)?),
        })
    }
}

/// Where a question goes.
pub(super) struct Target {
    pub(super) session: SessionId,
    /// It is to be made.
    pub(super) is_new: bool,
}

impl Sessions {
    /// Looks, and changes nothing.
    pub(super) fn find_target(
        &self,
        asker: &SessionId,
        agent: &str,
        choice: SessionChoice,
    ) -> Result<Target, ErrorInfo> {
        let asking = self.agent_of(asker).map_err(unreadable)?.unwrap_or_default();
        self.shared.agents.check(agent)?;
        if !self.shared.agents.may_ask(&asking, agent) {
            let message = format!("You may not send messages to '{agent}'. Ask another agent.");
            return Err(ErrorInfo::new(ErrorCode::AgentForbidden, message));
        }
        let latest = || self.shared.store.latest_session_of(agent, asker).map_err(unreadable);
        let new = || Target { session: clock::new_session_id(), is_new: true };
        let known = |session| Target { session, is_new: false };
        match choice {
            SessionChoice::By(SessionRule::New) => Ok(new()),
            SessionChoice::By(SessionRule::LatestOrNew) => Ok(latest()?.map_or_else(new, known)),
            SessionChoice::By(SessionRule::Latest) => latest()?.map(known).ok_or_else(|| {
                invalid(format!("'{agent}' has no session yet. Ask with \"session\": \"new\"."))
            }),
            SessionChoice::This(id) if id == *asker => {
                let message = "This is your own session. Ask with \"session\": \"new\".";
                Err(ErrorInfo::new(ErrorCode::AgentSelf, message))
            }
            SessionChoice::This(id) => match self.agent_of(&id).map_err(unreadable)? {
                Some(owner) if owner == agent => Ok(known(id)),
                Some(owner) => Err(invalid(format!("The session {id} is one of '{owner}'."))),
                None => Err(invalid(format!("There is no session {id}."))),
            },
        }
    }

    /// In the folder that the asker's own session names, so that both work on the same files.
    pub(super) fn new_session(&self, asker: &SessionId, id: SessionId, agent: &str) -> NewSession {
        let summary = self.shared.store.summary(asker).ok().flatten();
        let workspace = summary.and_then(|(summary, _)| summary.workspace().map(str::to_owned));
        NewSession { id, agent: agent.to_owned(), title: None, workspace }
    }
}

fn invalid(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::InvalidArguments, message)
}

fn unreadable(error: store::Error) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::Storage, format!("The log cannot be read: {error}"))
}
