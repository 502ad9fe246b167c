//! Access of a session's tools to the other agents of the server.

use futures_util::future::BoxFuture;
use tools::{Peer, PeerMessage, PeerReply, Peers, Stopped};
use transcript::{ErrorInfo, SessionId};

use super::Exchanges;
use super::target::unreadable;
use crate::agents::AgentInfo;

impl Peers for Exchanges {
    fn list<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Vec<Peer>, ErrorInfo>> {
        Box::pin(async move {
            let caller = self.sessions.agent_of(session).await.map_err(unreadable)?;
            let busy = self.sessions.busy_agents(session).await.map_err(unreadable)?;
            let peer = |AgentInfo { id, kind, description, problem, .. }: AgentInfo| Peer {
                is_busy: busy.contains(&id),
                is_caller: caller.as_ref() == Some(&id),
                id,
                kind,
                description,
                problem,
            };
            Ok(self.agents.infos().into_iter().map(peer).collect())
        })
    }

    fn message<'a>(
        &'a self,
        message: PeerMessage,
        stopped: &'a Stopped,
    ) -> BoxFuture<'a, Result<PeerReply, ErrorInfo>> {
        Box::pin(self.message_agent(message, stopped))
    }
}
