//! Active sessions: one driver task for each, found or started by the session's id.
//!
//! A session's driver is its only writer. It starts with the first command for the session, and ends when the
//! session has been idle for a while. Its state is in the log.

mod pending_deletion;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use backends::ToolOutcome;
use session::{AnswerType, Command, NewMessage, Receipt, Refused, RelayedCall, ReplyTo};
use store::{AppendError, Store};
use tokio::sync::{mpsc, oneshot};
use tools::policy::grant_id;
use tools::{ToolSpec, Tools, failed, tool_error};
use transcript::{Event, Record, Seq, SessionId, Summary};

use self::pending_deletion::PendingDeletions;
use crate::agents::Agents;
use crate::clock;
use crate::driver::{self, DriverParts, Envelope, OtherSessions, new_reply_id};
use crate::live::hub::{Hub, ListChange};
use crate::metrics::Metrics;
use crate::sync::lock;

/// Maximum number of commands that wait for the driver of one session. Further senders wait.
const INBOX: usize = 64;

/// Settings of a session to create.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: SessionId,
    pub agent: String,
    pub title: Option<String>,
    /// Workspace that a person chose for the session. `None` for the folder of the agent.
    pub workspace: Option<String>,
}

/// All sessions of the server, with the drivers of the active ones.
#[derive(Clone)]
pub struct Sessions {
    inner: Arc<Inner>,
}

/// State that all clones of [`Sessions`] share.
struct Inner {
    store: Store,
    hub: Arc<Hub>,
    agents: Arc<Agents>,
    tools: Arc<Tools>,
    metrics: Arc<Metrics>,
    parts: Arc<DriverParts>,
    connect: Connect,
    pending_deletions: PendingDeletions,
    active: Mutex<Active>,
}

/// Function that connects the driver of a session to the others.
pub(crate) type Connect = Box<dyn Fn(Sessions) -> Arc<dyn OtherSessions> + Send + Sync>;

#[derive(Default)]
struct Active {
    inboxes: HashMap<SessionId, mpsc::Sender<Envelope>>,
    /// Whether the server is stopping, so that no driver is started any more.
    stopping: bool,
}

impl Sessions {
    /// Creates the sessions of a store. No driver runs yet.
    pub(crate) fn new(parts: DriverParts, connect: Connect) -> Self {
        let inner = Inner {
            store: parts.store.clone(),
            hub: Arc::clone(&parts.hub),
            agents: Arc::clone(&parts.agents),
            tools: Arc::clone(&parts.tools),
            metrics: Arc::clone(&parts.metrics),
            parts: Arc::new(parts),
            connect,
            pending_deletions: PendingDeletions::default(),
            active: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns whether the session has a pending deletion and therefore cannot be used.
    pub fn is_pending_deletion(&self, session: &SessionId) -> bool {
        self.inner.pending_deletions.contains(session)
    }

    /// Starts the drivers of sessions that were interrupted by a restart, which close open runs and
    /// continue queues. Returns the number of those sessions.
    pub async fn recover(&self) -> Result<usize, store::Error> {
        let sessions = self.inner.store.needing_attention().await?;
        for (session, ..) in &sessions {
            self.inbox(session);
        }
        Ok(sessions.len())
    }

    /// Returns Callboard's tools that programs may call.
    pub fn program_tools(&self) -> impl Iterator<Item = ToolSpec> {
        self.inner.tools.for_programs()
    }

    pub async fn agent_of(&self, session: &SessionId) -> Result<Option<String>, store::Error> {
        Ok(self.inner.store.summary(session).await?.map(|(summary, _)| summary.agent))
    }

    /// Returns the names of the agents that work on a run in a session other than `except`.
    pub(crate) async fn busy_agents(
        &self,
        except: &SessionId,
    ) -> Result<HashSet<String>, store::Error> {
        let active = self.inner.store.needing_attention().await?.into_iter();
        let busy = active.filter(|(id, summary, _)| summary.open_run.is_some() && id != except);
        Ok(busy.map(|(_, summary, _)| summary.agent).collect())
    }

    /// Sends a command to the driver of a session and waits for the reply.
    pub async fn ask<T: AnswerType>(
        &self,
        session: &SessionId,
        command: impl FnOnce(ReplyTo<T>) -> Command,
    ) -> Result<T, Refused> {
        if self.is_pending_deletion(session) {
            return Err(Refused::PendingDeletion);
        }
        let (reply, answer) = oneshot::channel();
        let inbox = self.inbox(session).ok_or(Refused::Stopping)?;
        let command = command(ReplyTo::new(new_reply_id()));
        inbox.send(Envelope { command, reply }).await.map_err(|_| Refused::Stopping)?;
        let answer = answer.await.map_err(|_| Refused::Stopping)??;
        // Every command replies with the type of its `ReplyTo`.
        T::from_answer(answer).ok_or(Refused::Stopping)
    }

    /// Creates a session by writing its first record. If two callers create a session at the same
    /// time, the store accepts one. All further records are written by the session's driver.
    pub async fn create(&self, session: NewSession) -> Result<(), Refused> {
        let NewSession { id, agent, title, workspace } = session;
        if !self.inner.agents.knows(&agent) {
            let known = self.inner.agents.names().join(", ");
            return Err(Refused::NoAgent { name: agent, known });
        }
        let workspace_confirmed = workspace.is_some();
        let event = Event::SessionCreated { agent, workspace, workspace_confirmed, title };
        let record = Record::new(Seq(1), clock::now(), id.clone(), None, event);
        let mut summary = Summary::default();
        summary.apply(&record);
        let records: Arc<[Record]> = [record].into();
        let written = self.inner.store.append(&id, Seq(0), Arc::clone(&records)).await;
        written.map_err(as_refusal)?;
        self.inner.hub.publish(&id, records);
        self.inner.hub.publish_list_change(ListChange::Changed {
            id,
            summary: Box::new(summary),
            head: Seq(1),
        });
        Ok(())
    }

    /// Creates a session with imported records.
    pub async fn import(&self, id: &SessionId, records: Arc<[Record]>) -> Result<(), Refused> {
        let mut summary = Summary::default();
        for record in &*records {
            summary.apply(record);
        }
        let head = Seq(records.len() as u64);
        self.inner.store.import(id, records).await.map_err(as_refusal)?;
        let change = ListChange::Changed { id: id.clone(), summary: Box::new(summary), head };
        self.inner.hub.publish_list_change(change);
        Ok(())
    }

    pub async fn send(&self, session: &SessionId, message: NewMessage) -> Result<Receipt, Refused> {
        self.ask(session, |reply| Command::Send { message, reply }).await
    }

    /// Runs one of Callboard's tools for the session's program. Dropping the future cancels the
    /// tool call.
    pub async fn call_tool(&self, session: &SessionId, call: RelayedCall) -> ToolOutcome {
        let outcome = self.ask(session, |reply| Command::CallTool { call, reply }).await;
        outcome.unwrap_or_else(|refused| {
            failed(tool_error(format!("The tool could not be called: {refused}.")))
        })
    }

    /// Revokes the grant with this id in the API, which holds for the session.
    pub async fn revoke_grant(
        &self,
        session: &SessionId,
        id: String,
        by: String,
    ) -> Result<(), Refused> {
        if self.is_pending_deletion(session) {
            return Err(Refused::PendingDeletion);
        }
        let found = self.inner.store.summary(session).await;
        let found = found.map_err(|error| Refused::Storage(error.to_string()))?;
        let (summary, _) = found.ok_or(Refused::NoSession)?;
        match summary.granted.into_keys().find(|it| grant_id(it) == id) {
            Some(covers) => {
                self.ask(session, |reply| Command::RevokeGrant { id, covers, by, reply }).await
            }
            None => Err(Refused::NoGrant(id)),
        }
    }

    /// Stops all sessions because the server stops: ends their runs and waits until every session
    /// has logged the end.
    pub async fn stop(&self) {
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

    /// Returns the inbox of a session's driver, and starts the driver if it does not run. `None` if
    /// the server is stopping.
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
            self.inner.metrics.sessions_active.inc();
        }
        let (parts, others) = (Arc::clone(&self.inner.parts), (self.inner.connect)(self.clone()));
        tokio::spawn(driver::run(session.clone(), parts, others, commands));
        Some(inbox)
    }

    /// Removes the inbox of an idle session's driver, unless a sender has a clone of it. Returns
    /// whether it was removed.
    pub(crate) fn release(&self, session: &SessionId, commands: &mpsc::Receiver<Envelope>) -> bool {
        let mut active = self.active();
        // Senders clone the inbox under this lock, so only our own is left.
        let is_unused = commands.is_empty() && commands.sender_strong_count() <= 1;
        if is_unused {
            active.inboxes.remove(session);
            self.inner.metrics.sessions_active.dec();
        }
        is_unused
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.active().stopping
    }

    fn active(&self) -> MutexGuard<'_, Active> {
        lock(&self.inner.active)
    }
}

/// Converts the failure of writing the first records of a session to a refusal.
fn as_refusal(error: AppendError) -> Refused {
    match error {
        AppendError::Conflict { .. } => Refused::Exists,
        error => Refused::Storage(error.to_string()),
    }
}
