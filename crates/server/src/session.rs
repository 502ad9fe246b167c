//! Active sessions: one driver task for each, found or started by name.
//!
//! A session's driver is its only writer. It starts with the first command for the session, and ends when the
//! session has been idle for a while; what it knows is in the log.

mod driver;
mod exchanges;
pub(crate) mod from_log;
mod pending_deletion;
mod process;
mod pulse;
mod request;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backends::ToolOutcome;
use render::{Bodies, View};
use store::{AppendError, Store};
use tokio::sync::{mpsc, oneshot};
use tools::policy::{Policy, grant_id};
use tools::{Tools, failed, tool_error};
use transcript::{Event, Record, Seq, SessionId, SessionState, Summary, Transcript};

use ::session::{
    AgentFacts, AnswerType, Command, Limits, NewMessage, Receipt, Refused, RelayedCall, ReplyTo,
    Settings,
};

use crate::agents::{Agent, Agents};
use crate::clock;
use crate::draw_pool::DrawPool;
use crate::live::{Hub, ListChange};
use crate::metrics::Metrics;
use crate::passes::Passes;

use driver::{Envelope, new_reply_id};
pub(crate) use exchanges::{ExchangeLimits, Exchanges};
pub(crate) use pending_deletion::PendingDeletions;
pub(crate) use process::end_survivors;
pub(crate) use pulse::{Pulse, Pulses};
pub(crate) use request::HttpClient;

/// Commands that may wait for one session before senders have to wait.
const INBOX: usize = 64;

/// Services that all sessions share.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) hub: Hub,
    pub(crate) agents: Agents,
    pub(crate) tools: Tools,
    pub(crate) approvals: Policy,
    pub(crate) session_settings: Arc<Settings>,
    pub(crate) metrics: Metrics,
    /// For the requests of agents.
    pub(crate) http: HttpClient,
    /// What programs write is kept beside the log.
    pub(crate) keeps_raw: bool,
    /// Programs that run.
    pub(crate) pulses: Pulses,
    pub(crate) exchanges: Exchanges,
    pub(crate) pending_deletions: PendingDeletions,
    /// By which programs may call our tools.
    pub(crate) passes: Arc<Passes>,
    pub(crate) draws: DrawPool,
}

#[cfg(test)]
impl Shared {
    /// On a fresh store, with no agents.
    pub(crate) fn in_folder(data: &std::path::Path) -> Arc<Self> {
        Arc::new(Self {
            store: Store::open(data, store::Options::default()).unwrap(),
            hub: Hub::new(),
            agents: Agents { agents: Vec::new(), shipped: data.join("shipped") },
            tools: Tools::built_in(tools::ToolSettings::for_tests()),
            approvals: Policy {
                rules: Default::default(),
                timeout_ms: Some(1000),
                private: Default::default(),
                search_path: Default::default(),
            },
            session_settings: Arc::default(),
            metrics: Metrics::new(),
            http: HttpClient::default(),
            keeps_raw: true,
            pulses: Pulses::default(),
            exchanges: Exchanges::default(),
            pending_deletions: PendingDeletions::default(),
            passes: Passes::new(([127, 0, 0, 1], 1).into()),
            draws: DrawPool::default(),
        })
    }
}

impl Shared {
    /// How a session is drawn, on whatever page.
    pub(crate) fn view_of(&self, id: &SessionId, Summary { agent, .. }: &Summary) -> View {
        let folder = self.agents.workspace(agent);
        View::new(id.clone(), Bodies::Cut)
            .with_folder(folder.to_str())
            .with_raw(self.keeps_raw && self.agents.is_program(agent))
    }

    /// The session's program, while a run is open.
    pub(crate) fn pulse_of(
        &self,
        id: &SessionId,
        transcript: &Transcript,
    ) -> Option<render::Pulse> {
        let state = transcript.summary.state();
        let is_at_work = matches!(state, SessionState::Running | SessionState::Waiting);
        let pulse = self.pulses.of(id).filter(|_| is_at_work)?;
        Some(render::Pulse { pid: pulse.pid(), heard_at: pulse.heard_at() })
    }
}

/// A session to create.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) id: SessionId,
    pub(crate) agent: String,
    pub(crate) title: Option<String>,
    /// Workspace that a person chose.
    pub(crate) workspace: Option<String>,
}

/// All active sessions.
#[derive(Clone)]
pub(crate) struct Sessions {
    shared: Arc<Shared>,
    active: Arc<Mutex<Active>>,
}

#[derive(Default)]
struct Active {
    inboxes: HashMap<SessionId, mpsc::Sender<Envelope>>,
    /// The server is stopping: no driver starts any more.
    stopping: bool,
}

impl Sessions {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, active: Arc::default() }
    }

    /// Brings back what a stop or a crash left undone: open runs are closed, queues go on.
    pub(crate) async fn recover(&self) -> Result<usize, store::Error> {
        let sessions = self.shared.store.needing_attention().await?;
        for (session, ..) in &sessions {
            self.inbox(session);
        }
        Ok(sessions.len())
    }

    pub(crate) fn tools(&self) -> &Tools {
        &self.shared.tools
    }

    pub(crate) async fn agent_of(
        &self,
        session: &SessionId,
    ) -> Result<Option<String>, store::Error> {
        Ok(self.shared.store.summary(session).await?.map(|(summary, _)| summary.agent))
    }

    /// Agents that are answering now, in any session but this.
    pub(crate) async fn busy_agents(
        &self,
        except: &SessionId,
    ) -> Result<HashSet<String>, store::Error> {
        let active = self.shared.store.needing_attention().await?.into_iter();
        let busy = active.filter(|(id, summary, _)| summary.open_run.is_some() && id != except);
        Ok(busy.map(|(_, summary, _)| summary.agent).collect())
    }

    /// Gives a session a command and waits for its reply.
    pub(crate) async fn ask<T: AnswerType>(
        &self,
        session: &SessionId,
        command: impl FnOnce(ReplyTo<T>) -> Command,
    ) -> Result<T, Refused> {
        if self.shared.pending_deletions.contains(session) {
            return Err(Refused::PendingDeletion);
        }
        let (reply, answer) = oneshot::channel();
        let inbox = self.inbox(session).ok_or(Refused::Stopping)?;
        let command = command(ReplyTo::new(new_reply_id()));
        inbox.send(Envelope { command, reply }).await.map_err(|_| Refused::Stopping)?;
        let answer = answer.await.map_err(|_| Refused::Stopping)??;
        // Every command replies with the type that its handle names.
        T::from_answer(answer).ok_or(Refused::Stopping)
    }

    /// Creates a session. Its first record is the only one that its driver does not write; if two callers create
    /// it at the same time, the log accepts one.
    pub(crate) async fn create(&self, session: NewSession) -> Result<(), Refused> {
        let NewSession { id, agent, title, workspace } = session;
        if !self.shared.agents.knows(&agent) {
            let known = self.shared.agents.names().join(", ");
            return Err(Refused::NoAgent { name: agent, known });
        }
        let workspace_confirmed = workspace.is_some();
        let event = Event::SessionCreated { agent, workspace, workspace_confirmed, title };
        let record = Record::new(Seq(1), clock::now(), id.clone(), None, event);
        let mut summary = Summary::default();
        summary.apply(&record);
        let records: Arc<[Record]> = [record].into();
        let written = self.shared.store.append(&id, Seq(0), Arc::clone(&records)).await;
        written.map_err(|error| match error {
            AppendError::Conflict { .. } => Refused::Exists,
            error => Refused::Storage(error.to_string()),
        })?;
        self.shared.hub.publish(&id, records);
        self.shared.hub.publish_list_change(ListChange::Changed {
            id,
            summary: Box::new(summary),
            head: Seq(1),
        });
        Ok(())
    }

    pub(crate) async fn send(
        &self,
        session: &SessionId,
        message: NewMessage,
    ) -> Result<Receipt, Refused> {
        self.ask(session, |reply| Command::Send { message, reply }).await
    }

    /// Runs one of our tools for the session's program. Dropping the future gives the call up.
    pub(crate) async fn call_tool(&self, session: &SessionId, call: RelayedCall) -> ToolOutcome {
        let outcome = self.ask(session, |reply| Command::CallTool { call, reply }).await;
        outcome.unwrap_or_else(|refused| {
            failed(tool_error(format!("The tool could not be called: {refused}.")))
        })
    }

    /// Revokes a grant of the session by its name in the API.
    pub(crate) async fn revoke_grant(
        &self,
        session: &SessionId,
        id: String,
        by: String,
    ) -> Result<(), Refused> {
        if self.shared.pending_deletions.contains(session) {
            return Err(Refused::PendingDeletion);
        }
        let found = self.shared.store.summary(session).await;
        let found = found.map_err(|error| Refused::Storage(error.to_string()))?;
        let (summary, _) = found.ok_or(Refused::NoSession)?;
        match summary.granted.into_keys().find(|it| grant_id(it) == id) {
            Some(covers) => {
                self.ask(session, |reply| Command::RevokeGrant { id, covers, by, reply }).await
            }
            None => Err(Refused::NoGrant(id)),
        }
    }

    /// Ends all runs in good order and waits until every session has logged that.
    pub(crate) async fn stop(&self) {
        let inboxes: Vec<_> = {
            let mut active = self.active();
            active.stopping = true;
            active.inboxes.values().cloned().collect()
        };
        let mut stopped = Vec::new();
        for inbox in inboxes {
            let (reply, answer) = oneshot::channel();
            let command = Command::Stop { reply: ReplyTo::new(new_reply_id()) };
            if inbox.send(Envelope { command, reply }).await.is_ok() {
                stopped.push(answer);
            }
        }
        for answer in stopped {
            let _ = answer.await;
        }
    }

    /// Returns the inbox of a session's driver, which is started if it does not run.
    fn inbox(&self, session: &SessionId) -> Option<mpsc::Sender<Envelope>> {
        let mut active = self.active();
        // A driver that panicked does not run either.
        if let Some(inbox) = active.inboxes.get(session).filter(|it| !it.is_closed()) {
            return Some(inbox.clone());
        }
        if active.stopping {
            return None;
        }
        let (inbox, commands) = mpsc::channel(INBOX);
        if active.inboxes.insert(session.clone(), inbox.clone()).is_none() {
            self.shared.metrics.sessions_active.inc();
        }
        tokio::spawn(driver::run(session.clone(), self.clone(), commands));
        Some(inbox)
    }

    /// Removes the inbox of an idle driver, unless somebody is about to send to it.
    fn release(&self, session: &SessionId, commands: &mpsc::Receiver<Envelope>) -> bool {
        let mut active = self.active();
        // Senders clone the inbox under this lock, so only our own is left.
        let unwanted = commands.is_empty() && commands.sender_strong_count() <= 1;
        if unwanted {
            active.inboxes.remove(session);
            self.shared.metrics.sessions_active.dec();
        }
        unwanted
    }

    fn is_stopping(&self) -> bool {
        self.active().stopping
    }

    fn active(&self) -> MutexGuard<'_, Active> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what the machine of a session knows of the configuration.
pub(crate) fn session_settings(
    agents: &Agents,
    tools: &Tools,
    approvals: &Policy,
    exchanges: &ExchangeLimits,
) -> Settings {
    let limits = Limits {
        approval_timeout_ms: approvals.timeout_ms,
        calls_per_minute: tools.settings().per_minute,
        exchange_depth: exchanges.depth,
        exchanges_per_run: exchanges.per_run,
        queued_exchanges: exchanges.queued,
    };
    let facts = |agent: &Agent| AgentFacts {
        model: agent.model().map(str::to_owned),
        is_program: agents.is_program(&agent.id),
        workspace: agent.workspace.clone(),
    };
    let agents = agents.agents.iter().map(|it| (it.id.clone(), facts(it))).collect();
    Settings { agents, limits }
}
