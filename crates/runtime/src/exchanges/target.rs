//! The target of a message between agents: an agent and one of its sessions.

use tools::{SessionChoice, SessionRule};
use transcript::{ErrorCode, ErrorInfo, SessionId};

use super::Exchanges;
use crate::clock;
use crate::sessions::NewSession;

/// The session that receives a message from another agent.
pub(super) struct Target {
    pub(super) session: SessionId,
    /// Whether the session has to be created for the message.
    pub(super) is_new: bool,
}

impl Exchanges {
    /// Chooses the session that receives a message to an agent, without creating it.
    pub(super) async fn find_target(
        &self,
        asker: &SessionId,
        agent: &str,
        choice: SessionChoice,
    ) -> Result<Target, ErrorInfo> {
        let own_agent =
            self.sessions.agent_of(asker).await.map_err(unreadable)?.unwrap_or_default();
        self.agents.check(agent)?;
        if !self.agents.may_message(&own_agent, agent) {
            let message = format!("You may not send messages to '{agent}'. Ask another agent.");
            return Err(ErrorInfo::new(ErrorCode::AgentForbidden, message));
        }
        let latest = async || self.store.latest_session_of(agent, asker).await.map_err(unreadable);
        let new = || Target { session: clock::new_session_id(), is_new: true };
        let known = |session| Target { session, is_new: false };
        match choice {
            SessionChoice::By(SessionRule::New) => Ok(new()),
            SessionChoice::By(SessionRule::LatestOrNew) => {
                Ok(latest().await?.map_or_else(new, known))
            }
            SessionChoice::By(SessionRule::Latest) => latest().await?.map(known).ok_or_else(|| {
                invalid(format!("'{agent}' has no session yet. Ask with \"session\": \"new\"."))
            }),
            SessionChoice::This(id) if id == *asker => {
                let message = "This is your own session. Ask with \"session\": \"new\".";
                Err(ErrorInfo::new(ErrorCode::AgentSelf, message))
            }
            SessionChoice::This(id) => {
                match self.sessions.agent_of(&id).await.map_err(unreadable)? {
                    Some(owner) if owner == agent => Ok(known(id)),
                    Some(owner) => Err(invalid(format!("The session {id} is one of '{owner}'."))),
                    None => Err(invalid(format!("There is no session {id}."))),
                }
            }
        }
    }

    /// Returns the session to create for a message to an agent. It gets the workspace of the asking
    /// session, so that both agents work on the same files.
    pub(super) async fn new_session(
        &self,
        asker: &SessionId,
        id: SessionId,
        agent: &str,
    ) -> NewSession {
        let summary = self.store.summary(asker).await.ok().flatten();
        let workspace = summary.and_then(|(summary, _)| summary.workspace().map(str::to_owned));
        NewSession { id, agent: agent.to_owned(), title: None, workspace }
    }
}

fn invalid(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::InvalidArguments, message)
}

pub(super) fn unreadable(error: store::Error) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::Storage, format!("The log cannot be read: {error}"))
}
