//! Access of a session's tools to the other agents of the server.

use futures_util::future::BoxFuture;
use tools::{Peer, PeerMessage, PeerReply, Peers, Stopped};
use transcript::{ErrorInfo, SessionId};

use super::target::unreadable;
use crate::agents::AgentInfo;
use crate::sessions::Sessions;

impl Peers for Sessions {
    fn list<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Vec<Peer>, ErrorInfo>> {
        Box::pin(async move {
            let caller = self.agent_of(session).await.map_err(unreadable)?;
            let busy = self.busy_agents(session).await.map_err(unreadable)?;
            let peer = |AgentInfo { id, kind, description, problem, .. }: AgentInfo| Peer {
                is_busy: busy.contains(&id),
                is_caller: caller.as_ref() == Some(&id),
                id,
                kind,
                description,
                problem,
            };
            Ok(self.services().agents.infos().into_iter().map(peer).collect())
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
