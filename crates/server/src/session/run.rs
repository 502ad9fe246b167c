//! One run: what it has said by now, what is being done for it, and what it waits for.
//!
//! The session's task owns it and takes one thing at a time, so that a cancel, a result and the agent's
//! own end can never cross: whichever comes first counts.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use backends::{HowLost, Input, Lost, Request, ToolOutcome, Verdict};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tools::{Stopped, ToolContext, ToolEvent, ToolUpdate};
use transcript::{
    Call, CallId, ErrorInfo, Event, Exchange, ExchangeState, Executor, Millis, ResponseId,
    RunMessage, SessionId,
};

use super::command::Refused;
use super::request::RunningRequest;
use super::task::AfterCommit;
use super::worker::{instant, sleep_if};
use crate::clock;
use crate::session::{Sessions, Shared};

pub(super) struct Run {
    pub(super) id: ResponseId,
    /// What the log says of this run so far.
    pub(super) answer: RunMessage,
    pub(super) workspace: PathBuf,
    tools: HashMap<CallId, RunningTool>,
    request: Option<RunningRequest>,
    /// What is to be done once the tools are known that the agent may use.
    held: Option<(BoxFuture<'static, ()>, AfterCommit)>,
    has_waited: bool,
    /// Calls that a person must agree to.
    pub(super) waiting: HashMap<CallId, WaitingCall>,
    /// Calls that the client runs, and until when it may say what came of them.
    pub(super) at_client: HashMap<CallId, Millis>,
    /// Arguments of calls that a program may ask about: the answer keeps only their edges.
    pub(super) proposed: HashMap<CallId, String>,
    /// What was settled without anybody being asked: results of calls that never ran, and answers to
    /// a program's questions.
    settled: VecDeque<RunInput>,
    /// Who wants to know when the run has ended.
    pub(super) awaited: Vec<Awaited>,
    tell: mpsc::Sender<ToolUpdate>,
    news: mpsc::Receiver<ToolUpdate>,
}

pub(super) type Awaited = Box<dyn FnOnce(Result<(), Refused>) + Send>;

pub(super) struct WaitingCall {
    pub(super) tool_name: String,
    pub(super) arguments: String,
    /// Nobody may decide after this.
    pub(super) until: Option<Millis>,
    pub(super) asked_by: AskedBy,
}

/// Who wants to know whether a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedBy {
    /// We: it is ours to run.
    Us,
    /// The program that runs it.
    Program { can_edit: bool, has_form: bool },
}

/// A tool that is being run. Dropping it stops it.
struct RunningTool {
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

/// News that may wait before tools have to.
const NEWS: usize = 64;

impl Run {
    pub(super) fn new(id: ResponseId, workspace: PathBuf) -> Self {
        let (tell, news) = mpsc::channel(NEWS);
        let answer = RunMessage::replay(&id, []);
        Self {
            id,
            answer,
            workspace,
            tools: HashMap::new(),
            request: None,
            held: None,
            has_waited: false,
            waiting: HashMap::new(),
            at_client: HashMap::new(),
            proposed: HashMap::new(),
            settled: VecDeque::new(),
            awaited: Vec::new(),
            tell,
            news,
        }
    }

    /// The next thing that happens to this run from outside: a tool has something to tell, a piece of
    /// an answer has come, or nobody has decided in time.
    pub(super) async fn next(&mut self) -> RunInput {
        if let Some(settled) = self.settled.pop_front() {
            return settled;
        }
        let undecided = self.waiting.iter().filter_map(|(id, call)| Some((id, call.until?)));
        let limits = undecided.chain(self.at_client.iter().map(|(id, until)| (id, *until)));
        let overdue = limits.min_by_key(|(_, until)| *until);
        let overdue = overdue.map(|(id, until)| (id.clone(), instant(until)));
        let give_up = sleep_if(overdue.as_ref().map(|it| it.1));
        tokio::select! {
            biased;
            // `tell` is ours too, so the channel cannot close.
            Some(news) = self.news.recv() => RunInput::Tool(news),
            input = next_of(&mut self.request) => RunInput::Heard(input),
            () = known(&mut self.held) => RunInput::ToolsKnown,
            () = give_up => match overdue {
                Some((call_id, _)) => RunInput::Overdue(call_id),
                None => std::future::pending().await,
            }
        }
    }

    /// What has come in meanwhile, if anything has.
    pub(super) fn try_next(&mut self) -> Option<RunInput> {
        let news = || self.news.try_recv().ok().map(RunInput::Tool);
        if let Some(input) = self.settled.pop_front().or_else(news) {
            return Some(input);
        }
        let input = self.request.as_mut()?.try_next()?;
        if let Input::Ended(_) = input {
            self.request = None;
        }
        Some(RunInput::Heard(input))
    }

    /// True while a person is asked something: about a call of this run, or by an agent that it has asked.
    pub(super) fn is_asking(&self) -> bool {
        let waits = |it: &Exchange| it.state == Some(ExchangeState::AwaitingApproval);
        !self.waiting.is_empty() || self.answer.open_exchanges().any(waits)
    }

    /// A call that the agent runs itself, and of which it has not said how it ended.
    pub(super) fn has_running_call(&self) -> bool {
        let is_running = |it: &Call| {
            it.is_open() && it.running_since.is_some() && it.executor == Executor::Agent
        };
        self.answer.calls().any(is_running)
    }

    pub(super) fn remember_arguments(&mut self, event: &Event) {
        match event {
            Event::ToolArgumentsDone { call_id, arguments, .. } => {
                let call = self.answer.call(call_id);
                if call.is_some_and(|it| it.executor == Executor::Agent) {
                    self.proposed.insert(call_id.clone(), arguments.clone());
                }
            }
            Event::ToolResult { call_id, .. } => {
                self.proposed.remove(call_id);
            }
            _ => (),
        }
    }

    /// Cuts off the one before it.
    pub(super) fn start_request(&mut self, shared: &Shared, request: Request) {
        self.request = Some(RunningRequest::start(&shared.http, request));
    }

    pub(super) fn hold(&mut self, until: BoxFuture<'static, ()>, action: AfterCommit) {
        self.held = Some((until, action));
    }

    /// The agent knows nothing of it yet.
    pub(super) fn is_held_at_its_start(&self) -> bool {
        matches!(self.held, Some((_, AfterCommit::StartAgent)))
    }

    pub(super) fn release(&mut self) -> Option<AfterCommit> {
        self.has_waited = true;
        self.held.take().map(|(_, action)| action)
    }

    /// Returns whether the next action was held before, and forgets it.
    pub(super) fn take_waited(&mut self) -> bool {
        std::mem::take(&mut self.has_waited)
    }

    pub(super) fn start_tool(
        &mut self,
        sessions: &Sessions,
        session_id: SessionId,
        call_id: CallId,
        tool_name: String,
        arguments: String,
    ) {
        let (stop, stopped) = watch::channel(false);
        let context = ToolContext {
            session_id,
            response_id: self.id.clone(),
            call_id: call_id.clone(),
            peers: Arc::new(sessions.clone()),
            workspace: self.workspace.clone(),
            private: sessions.shared.approvals.private.clone(),
            now: clock::now(),
            stopped: Stopped(stopped),
            updates: self.tell.clone(),
        };
        let shared = Arc::clone(&sessions.shared);
        let (tell, id) = (self.tell.clone(), call_id.clone());
        let task = tokio::spawn(async move {
            let outcome = shared.tools.run(&tool_name, &arguments, context).await;
            let _ = tell.send(ToolUpdate { call_id: id, event: ToolEvent::Done(outcome) }).await;
        });
        self.tools.insert(call_id, RunningTool { task, stop });
    }

    /// The call gets its result, as if it had run.
    pub(super) fn refuse(&mut self, call_id: CallId, error: ErrorInfo) {
        let outcome = ToolOutcome { ok: false, result: Value::Null, error: Some(error) };
        let news = ToolUpdate { call_id, event: ToolEvent::Done(outcome) };
        self.settled.push_back(RunInput::Tool(news));
    }

    /// The program gets its answer when all that it said before has been carried out.
    pub(super) fn answer_program(&mut self, call_id: CallId, verdict: Verdict) {
        let decided = Input::Decided { call_id, verdict };
        self.settled.push_back(RunInput::Heard(decided));
    }

    /// The agent may go on with others meanwhile.
    pub(super) fn say_that_it_waits(&mut self, call_id: CallId) {
        self.settled.push_back(RunInput::Heard(Input::ToolWaits(call_id)));
    }

    /// False if it does not run.
    pub(super) fn stop_tool(&mut self, call_id: &CallId) -> bool {
        let Some(tool) = self.tools.get(call_id) else { return false };
        // It may have ended, and nobody has heard yet.
        let _ = tool.stop.send(true);
        true
    }

    pub(super) fn tool_ended(&mut self, call_id: &CallId) {
        self.tools.remove(call_id);
    }

    /// Stops everything. Tools may take a while to leave nothing behind.
    pub(super) fn stop(self) -> Vec<JoinHandle<()>> {
        self.tools
            .into_values()
            .map(|RunningTool { task, stop }| {
                let _ = stop.send(true);
                task
            })
            .collect()
    }
}

/// For ever, if nothing is held.
async fn known(held: &mut Option<(BoxFuture<'static, ()>, AfterCommit)>) {
    match held {
        Some((until, _)) => until.await,
        None => std::future::pending().await,
    }
}

/// Nothing comes from a request that is not there.
async fn next_of(request: &mut Option<RunningRequest>) -> Input {
    let Some(running) = request else { return std::future::pending().await };
    let input = running.next().await;
    if matches!(input, None | Some(Input::Ended(_))) {
        *request = None;
    }
    input.unwrap_or_else(|| {
        let message = "the request was dropped".to_owned();
        Input::Ended(Err(Lost { how: HowLost::BrokeOff, message }))
    })
}

pub(super) enum RunInput {
    Tool(ToolUpdate),
    /// Something of the answer to a request, or to a question.
    Heard(Input),
    /// What was held can be done.
    ToolsKnown,
    /// Nobody has decided about the call in time.
    Overdue(CallId),
}
