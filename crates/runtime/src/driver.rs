//! The driver of one session's state machine: feeds it inputs and carries out its effects.
//!
//! All decisions are in the crate `session`. The driver owns the impure parts: the agent's process or HTTP
//! request, running tools, and the callers that wait for replies. The machine's state can be rebuilt from the
//! log, so when a write fails the driver drops the machine and opens the session again, as after a crash.

mod callers;
mod effects;
mod from_log;
mod judging;
mod launching;
mod lookups;
mod prepared_calls;
mod process;
mod request;
mod running_tools;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use backends::ResponsePart;
use futures_util::future::BoxFuture;
use session::{Effect, Input, OpenRun, Opening, Refused, Session, Settings};
use store::Store;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tools::policy::Policy;
use tools::{Peers, Tools};
use transcript::{
    Ending, ErrorCode, ErrorInfo, ExchangeId, Millis, OpenExchange, Record, ResponseId, SessionId,
};

use self::callers::Callers;
pub(crate) use self::callers::{Envelope, new_reply_id};
use self::launching::RunningProgram;
use self::prepared_calls::PreparedCalls;
use self::process::Shutdown;
pub(crate) use self::process::end_survivors;
pub(crate) use self::request::HttpClient;
use self::request::RunningRequest;
use self::running_tools::RunningTools;
use crate::agents::Agents;
use crate::clock;
use crate::live::hub::Hub;
use crate::live::pulse::Pulses;
use crate::metrics::Metrics;
use crate::passes::Passes;

/// Time after which an idle session is removed from memory.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause before another attempt to open a session that could not be opened or written.
const REOPEN_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of inputs that are handled before a commit.
const MAX_INPUTS: usize = 256;

/// The parts of the server that the drivers of all sessions use.
pub(crate) struct DriverParts {
    pub(crate) store: Store,
    pub(crate) hub: Arc<Hub>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) tools: Arc<Tools>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) passes: Arc<Passes>,
    pub(crate) pulses: Arc<Pulses>,
    /// Whether raw lines of programs are stored.
    pub(crate) keeps_raw: bool,
    /// The part of the server's configuration that session state machines use.
    pub(crate) settings: Arc<Settings>,
    /// HTTP client for the requests of model agents.
    pub(crate) http: HttpClient,
}

/// Connection of a session's driver to the other sessions.
pub(crate) trait OtherSessions: Peers {
    /// Removes the inbox of an idle session's driver, unless a sender has a clone of it. Returns
    /// whether it was removed.
    fn release(&self, session: &SessionId, inbox: &mpsc::Receiver<Envelope>) -> bool;

    /// Continues the open exchanges of a session that was opened again, in their order.
    fn resume_exchanges(
        self: Arc<Self>,
        asker: SessionId,
        open: BTreeMap<ExchangeId, OpenExchange>,
    ) -> BoxFuture<'static, ()>;
}

/// Runs the driver of a session until the session has been idle for a while, is deleted, or the
/// server stops.
pub(crate) async fn run(
    id: SessionId,
    parts: Arc<DriverParts>,
    others: Arc<dyn OtherSessions>,
    mut inbox: mpsc::Receiver<Envelope>,
) {
    let mut ending = Ending::Restarted;
    let mut first = None;
    loop {
        let refused = match Driver::open(&id, &parts, &others, &ending).await {
            Ok(driver) => match driver.serve(first.take(), &mut inbox).await {
                Stop::Done => return,
                Stop::Deleted => Refused::NoSession,
                Stop::Storage { why, lost_run } => {
                    if lost_run {
                        ending = storage_failed(&why);
                    }
                    Refused::Storage(why)
                }
            },
            Err(refused) => refused,
        };
        if let Some(envelope) = first.take() {
            envelope.refuse(refused.clone());
        }
        if refused == Refused::NoSession && others.release(&id, &inbox) {
            return;
        }
        tokio::select! {
            envelope = inbox.recv() => match envelope {
                Some(envelope) if envelope.is_stop() => return envelope.confirm(),
                Some(envelope) => first = Some(envelope),
                None => return,
            },
            () = tokio::time::sleep(REOPEN_DELAY) => (),
        }
    }
}

/// Reason for which the driver of a session ended.
enum Stop {
    /// The session was idle long enough, or the server stops.
    Done,
    Deleted,
    /// The log could not be written, for the reason `why`.
    Storage {
        why: String,
        lost_run: bool,
    },
}

impl Stop {
    fn refusal(&self) -> Refused {
        match self {
            Self::Done => Refused::Stopping,
            Self::Deleted => Refused::NoSession,
            Self::Storage { why, .. } => Refused::Storage(why.clone()),
        }
    }
}

struct Driver {
    id: SessionId,
    parts: Arc<DriverParts>,
    others: Arc<dyn OtherSessions>,
    session: Session,
    callers: Callers,
    program: Option<RunningProgram>,
    request: Option<RunningRequest>,
    tools: RunningTools,
    prepared: PreparedCalls,
    /// History request that waits until MCP servers are ready. `None` if there is none.
    preparing: Option<Preparing>,
    /// Shutdowns of programs and commands. Nothing is appended to the log before they have ended.
    ending: Vec<Shutdown>,
    /// Tasks of tools that are stopping. No reply is sent and nothing is started before they have
    /// ended.
    stopped_tools: Vec<JoinHandle<()>>,
}

/// Request to read the history of the conversation for the agent of a run.
struct HistoryRequest {
    run: ResponseId,
    remembers: bool,
}

struct Preparing {
    ready: BoxFuture<'static, ()>,
    request: HistoryRequest,
}

impl Driver {
    /// Creates the driver of a session from the session's log. `ending` is the reason why a run
    /// that the log leaves open was interrupted.
    async fn open(
        id: &SessionId,
        parts: &Arc<DriverParts>,
        others: &Arc<dyn OtherSessions>,
        ending: &Ending,
    ) -> Result<Self, Refused> {
        let failed = |error: store::Error| Refused::Storage(error.to_string());
        let found = parts.store.summary(id).await.map_err(failed)?;
        let (summary, head) = found.ok_or(Refused::NoSession)?;
        let queue = parts.store.queue(id).await.map_err(failed)?;
        let mut open_run = None;
        if let Some(run) = &summary.open_run {
            // A run of this process was counted when it started.
            if *ending == Ending::Restarted {
                parts.metrics.found_open_run();
            }
            let stored = parts.store.records_of_run(id, run).await.map_err(failed)?;
            let records: Vec<Record> = stored.iter().map(store::Stored::record).collect();
            let agent = &summary.agent;
            // A program cannot continue in the middle of a run.
            let can_continue = parts.agents.check(agent).is_ok() && !parts.agents.is_program(agent);
            open_run = Some(OpenRun { id: run.clone(), records, can_continue });
        }
        let session = Session::new(Opening {
            id: id.clone(),
            head,
            summary,
            queue,
            open_run,
            ending: ending.clone(),
            settings: Arc::clone(&parts.settings),
            seed: clock::new_seed(),
            now: clock::now(),
        });
        Ok(Self {
            id: id.clone(),
            parts: Arc::clone(parts),
            others: Arc::clone(others),
            session,
            callers: Callers::default(),
            program: None,
            request: None,
            tools: RunningTools::default(),
            prepared: PreparedCalls::default(),
            preparing: None,
            ending: Vec::new(),
            stopped_tools: Vec::new(),
        })
    }

    async fn serve(
        mut self,
        first: Option<Envelope>,
        inbox: &mut mpsc::Receiver<Envelope>,
    ) -> Stop {
        let stop = match self.settle().await {
            Ok(_) => self.serve_until_stopped(first, inbox).await,
            Err(stop) => {
                if let Some(envelope) = first {
                    self.callers.add(envelope);
                }
                stop
            }
        };
        self.callers.refuse_all(&stop.refusal());
        stop
    }

    async fn serve_until_stopped(
        &mut self,
        mut first: Option<Envelope>,
        inbox: &mut mpsc::Receiver<Envelope>,
    ) -> Stop {
        loop {
            let served = match first.take() {
                Some(envelope) => self.take_command(envelope).await,
                None => self.take_next(inbox).await,
            };
            let settled = match served {
                Ok(()) => self.settle().await,
                Err(stop) => Err(stop),
            };
            match settled {
                Err(stop) => return stop,
                Ok(_) if self.session.is_closed() => return Stop::Done,
                // Without a commit to await, a flood of inputs would monopolize this thread.
                Ok(false) => tokio::task::yield_now().await,
                Ok(true) => (),
            }
        }
    }

    /// Waits for the next command or other input, and handles further inputs that are already
    /// available.
    async fn take_next(&mut self, inbox: &mut mpsc::Receiver<Envelope>) -> Result<(), Stop> {
        let is_idle = self.session.is_idle();
        let deadline = self.session.deadline().map(instant);
        tokio::select! {
            envelope = inbox.recv() => match envelope {
                Some(envelope) => self.take_command(envelope).await,
                None => Err(Stop::Done),
            },
            input = next_input(
                deadline, &mut self.program, &mut self.request, &mut self.tools, &mut self.callers,
            ) => {
                self.take(input).await?;
                // Fetch an input only if it will be handled: it cannot be put back.
                for _ in 1..MAX_INPUTS {
                    let Some(input) = self.try_next_input() else { break };
                    self.take(input).await?;
                }
                Ok(())
            }
            () = ready(&mut self.preparing) => match self.preparing.take() {
                Some(Preparing { request, .. }) => self.read_prepared(request).await,
                None => Ok(()),
            },
            () = tokio::time::sleep(IDLE_TIMEOUT), if is_idle => {
                if self.others.release(&self.id, inbox) { Err(Stop::Done) } else { Ok(()) }
            }
        }
    }

    async fn take_command(&mut self, envelope: Envelope) -> Result<(), Stop> {
        let command = self.callers.add(envelope);
        self.take(Input::Command(command)).await
    }

    /// Gives the session's state machine one input and carries out its immediate effects.
    async fn take(&mut self, input: Input) -> Result<(), Stop> {
        let effects = self.session.on(clock::now(), input);
        self.carry_out_all(effects).await.map(drop)
    }

    /// Commits the pending records of the session and carries out the effects that wait for the
    /// commit, until none are left. Returns whether there were any effects.
    async fn settle(&mut self) -> Result<bool, Stop> {
        let mut has_effects = false;
        loop {
            self.await_ending().await;
            let effects = self.session.on(clock::now(), Input::Settle);
            if effects.is_empty() {
                return Ok(has_effects);
            }
            has_effects = true;
            self.carry_out_all(effects).await?;
        }
    }

    async fn carry_out_all(&mut self, effects: Vec<Effect>) -> Result<(), Stop> {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            if let Some(reply) = self.carry_out(effect).await? {
                effects.extend(self.session.on(clock::now(), reply));
            }
        }
        Ok(())
    }

    /// Returns an input from the agent or its tools that is already available. `None` if there is
    /// none.
    fn try_next_input(&mut self) -> Option<Input> {
        if let Some(input) = self.tools.try_next() {
            return Some(input);
        }
        if let Some(input) = self.program.as_mut().and_then(RunningProgram::try_next) {
            if is_exit(&input) {
                self.program = None;
            }
            return Some(input);
        }
        let part = self.request.as_mut()?.try_next()?;
        if matches!(part, ResponsePart::Ended(_)) {
            self.request = None;
        }
        Some(Input::Agent(session::AgentInput::Response(part)))
    }

    /// Waits until the programs and commands that are shutting down have ended, and passes on their
    /// last lines.
    async fn await_ending(&mut self) {
        for shutdown in std::mem::take(&mut self.ending) {
            let lines = shutdown.await.unwrap_or_default();
            // Late lines have no immediate effects.
            let _ = self.session.on(clock::now(), Input::LateLines(lines));
        }
    }

    async fn await_stopped_tools(&mut self) {
        for tool in std::mem::take(&mut self.stopped_tools) {
            let _ = tool.await;
        }
    }
}

/// Waits for the next input of a session that is not a command. The deadline and disconnected
/// callers come first, so that a flood of output cannot delay them.
async fn next_input(
    deadline: Option<Instant>,
    program: &mut Option<RunningProgram>,
    request: &mut Option<RunningRequest>,
    tools: &mut RunningTools,
    callers: &mut Callers,
) -> Input {
    tokio::select! {
        biased;
        () = sleep_if(deadline) => Input::Tick,
        caller = callers.next_gone() => Input::CallerGone(caller),
        input = tools.next() => input,
        part = next_part(request) => Input::Agent(session::AgentInput::Response(part)),
        input = next_of(program) => input,
    }
}

async fn next_of(program: &mut Option<RunningProgram>) -> Input {
    match program {
        Some(running) => {
            let input = running.next().await;
            if is_exit(&input) {
                *program = None;
            }
            input
        }
        None => std::future::pending().await,
    }
}

fn is_exit(input: &Input) -> bool {
    matches!(input, Input::Agent(session::AgentInput::Exited { .. }))
}

async fn next_part(request: &mut Option<RunningRequest>) -> ResponsePart {
    let Some(running) = request else { return std::future::pending().await };
    let part = running.next().await;
    if matches!(part, ResponsePart::Ended(_)) {
        *request = None;
    }
    part
}

async fn ready(preparing: &mut Option<Preparing>) {
    match preparing {
        Some(Preparing { ready, .. }) => ready.await,
        None => std::future::pending().await,
    }
}

fn storage_failed(why: &str) -> Ending {
    let message = format!("The log could not be written: {why}. Free disk space, then continue.");
    Ending::failed(ErrorInfo::new(ErrorCode::Storage, message))
}

fn instant(at: Millis) -> Instant {
    Instant::now() + Duration::from_millis(at.since(clock::now()))
}

async fn sleep_if(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
