//! Sessions at work: one task per active session, found or started by name.
//!
//! A session's task is its only writer. It comes to life when somebody wants something of the
//! session, and ends when nothing has happened for a while; what it knows is in the log.

mod command;
mod exchanges;
pub(crate) mod from_log;
mod leaving;
mod lines;
mod own_calls;
mod process;
mod pulse;
mod raw;
mod request;
mod run;
mod task;
mod unread;
mod worker;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backends::ToolOutcome;
use render::{Bodies, View};
use store::{AppendError, Store};
use tokio::sync::{mpsc, oneshot};
use tools::policy::Policy;
use tools::{Tools, failed, tool_error};
use transcript::{Event, Record, Seq, SessionId, SessionState, Summary, Transcript};

use crate::agents::Agents;
use crate::clock;
use crate::draw_pool::DrawPool;
use crate::live::{Hub, ListChange};
use crate::metrics::Metrics;
use crate::passes::Passes;

pub(crate) use command::{
    Answered, Approval, Command, MessageState, NewMessage, NewSession, QueuedChange, Receipt,
    Refused, SessionPatch, Undone,
};
pub(crate) use exchanges::{ExchangeLimits, Exchanges};
pub(crate) use leaving::Leaving;
pub(crate) use own_calls::OwnCall;
pub(crate) use process::end_survivors;
pub(crate) use pulse::{Pulse, Pulses};
pub(crate) use request::HttpClient;

/// Commands that may wait for one session before senders have to wait themselves.
const INBOX: usize = 64;

/// What session tasks share.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) hub: Hub,
    pub(crate) agents: Agents,
    pub(crate) tools: Tools,
    pub(crate) approvals: Policy,
    pub(crate) metrics: Metrics,
    /// For the requests of agents.
    pub(crate) http: HttpClient,
    /// What programs write is kept beside the log.
    pub(crate) keeps_raw: bool,
    /// Programs that run.
    pub(crate) pulses: Pulses,
    pub(crate) exchanges: Exchanges,
    pub(crate) leaving: Leaving,
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
            metrics: Metrics::new(),
            http: HttpClient::default(),
            keeps_raw: true,
            pulses: Pulses::default(),
            exchanges: Exchanges::default(),
            leaving: Leaving::default(),
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

/// All sessions that are at work.
#[derive(Clone)]
pub(crate) struct Sessions {
    shared: Arc<Shared>,
    active: Arc<Mutex<Active>>,
}

#[derive(Default)]
struct Active {
    inboxes: HashMap<SessionId, mpsc::Sender<Command>>,
    /// The server is stopping: nothing comes to life any more.
    stopping: bool,
}

impl Sessions {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, active: Arc::default() }
    }

    /// Brings back what a stop or a crash left undone: open runs are closed, queues go on.
    pub(crate) fn recover(&self) -> Result<usize, store::Error> {
        let sessions = self.shared.store.needing_attention()?;
        for session in &sessions {
            self.inbox(session);
        }
        Ok(sessions.len())
    }

    pub(crate) fn tools(&self) -> &Tools {
        &self.shared.tools
    }

    pub(crate) fn agent_of(&self, session: &SessionId) -> Result<Option<String>, store::Error> {
        Ok(self.shared.store.summary(session)?.map(|(summary, _)| summary.agent))
    }

    /// Agents that are answering now, in any session but this.
    pub(crate) fn busy_agents(&self, but: &SessionId) -> Result<HashSet<String>, store::Error> {
        let mut busy = HashSet::new();
        for session in self.shared.store.needing_attention()? {
            let summary = self.shared.store.summary(&session)?.map(|it| it.0);
            let is_answering = |it: &Summary| it.open_run.is_some() && session != *but;
            busy.extend(summary.filter(is_answering).map(|it| it.agent));
        }
        Ok(busy)
    }

    /// Hands a command to a session's task and waits for its answer.
    pub(crate) async fn ask<T>(
        &self,
        session: &SessionId,
        command: impl FnOnce(oneshot::Sender<Result<T, Refused>>) -> Command,
    ) -> Result<T, Refused> {
        if self.shared.leaving.contains(session) {
            return Err(Refused::Leaving);
        }
        let (reply, answer) = oneshot::channel();
        let inbox = self.inbox(session).ok_or(Refused::Stopping)?;
        inbox.send(command(reply)).await.map_err(|_| Refused::Stopping)?;
        answer.await.map_err(|_| Refused::Stopping)?
    }

    /// A session's first record is the only one that its task does not write: until then there is
    /// no session, and of two that want to be first the log lets one.
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

    /// Runs a tool of ours for the session's program. Dropping this gives the call up.
    pub(crate) async fn call_tool(&self, session: &SessionId, call: OwnCall) -> ToolOutcome {
        let outcome = self.ask(session, |reply| Command::CallTool { call, reply }).await;
        outcome.unwrap_or_else(|refused| {
            failed(tool_error(format!("The tool could not be called: {refused}.")))
        })
    }

    /// Ends all runs in good order and waits until every task has written what it had to write.
    pub(crate) async fn stop(&self) {
        let inboxes: Vec<_> = {
            let mut active = self.active();
            active.stopping = true;
            active.inboxes.values().cloned().collect()
        };
        let mut stopped = Vec::new();
        for inbox in inboxes {
            let (reply, answer) = oneshot::channel();
            if inbox.send(Command::Stop { reply }).await.is_ok() {
                stopped.push(answer);
            }
        }
        for answer in stopped {
            let _ = answer.await;
        }
    }

    /// The way to a session's task, which starts if it is not at work.
    fn inbox(&self, session: &SessionId) -> Option<mpsc::Sender<Command>> {
        let mut active = self.active();
        // One whose task broke off is not at work either.
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
        tokio::spawn(task::run(session.clone(), self.clone(), commands));
        Some(inbox)
    }

    /// Lets an idle task go, unless somebody is about to send it something.
    fn release(&self, session: &SessionId, commands: &mpsc::Receiver<Command>) -> bool {
        let mut active = self.active();
        // Whoever wants to send took a clone under this lock, so only our own is left.
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
