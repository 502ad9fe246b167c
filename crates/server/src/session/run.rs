//! One run: the agent's state machine, what it is doing, and what it waits for.
//!
//! The session's task owns it and calls it with one input at a time, so that a cancel, a result and
//! the agent's own end can never cross: whichever comes first counts.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use backends::{Backend, Effect, HowLost, Input, Lost, Request, ToolOutcome};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use transcript::{Answer, CallId, ErrorInfo, Millis, ResponseId};

use super::request::RunningRequest;
use super::task::AfterCommit;
use crate::clock;
use crate::session::Shared;
use crate::tools::{Stopped, ToolContext, ToolNews, What};

pub(super) struct Run {
    pub(super) id: ResponseId,
    /// What the log says of this run so far.
    pub(super) answer: Answer,
    pub(super) workspace: PathBuf,
    backend: Box<dyn Backend>,
    wake_at: Option<Instant>,
    tools: HashMap<CallId, RunningTool>,
    request: Option<RunningRequest>,
    /// What is to be done once the tools are known that the agent may use.
    held: Option<(BoxFuture<'static, ()>, AfterCommit)>,
    has_waited: bool,
    /// Calls that a person must agree to.
    pub(super) waiting: HashMap<CallId, WaitingCall>,
    /// Results of calls that never ran.
    refused: VecDeque<ToolNews>,
    tell: mpsc::Sender<ToolNews>,
    news: mpsc::Receiver<ToolNews>,
}

pub(super) struct WaitingCall {
    pub(super) tool_name: String,
    pub(super) arguments: String,
    /// Nobody may decide after this.
    pub(super) until: Millis,
}

/// A tool that is being run. Dropping it stops it.
struct RunningTool {
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

/// News that may wait before tools have to.
const NEWS: usize = 64;

impl Run {
    pub(super) fn new(id: ResponseId, backend: Box<dyn Backend>, workspace: PathBuf) -> Self {
        let (tell, news) = mpsc::channel(NEWS);
        let answer = Answer::replay(&id, []);
        Self {
            id,
            answer,
            workspace,
            backend,
            wake_at: None,
            tools: HashMap::new(),
            request: None,
            held: None,
            has_waited: false,
            waiting: HashMap::new(),
            refused: VecDeque::new(),
            tell,
            news,
        }
    }

    /// Hands the agent one input; the effects are to be carried out in order.
    pub(super) fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        self.backend.on(now, input)
    }

    /// The next thing that happens to this run from outside: a tool has something to tell, a piece of
    /// an answer has come, or it is time.
    pub(super) async fn next(&mut self) -> RunInput {
        if let Some(news) = self.refused.pop_front() {
            return RunInput::Tool(news);
        }
        let wake = sleep_if(self.wake_at);
        let overdue = self.waiting.iter().min_by_key(|(_, call)| call.until);
        let overdue = overdue.map(|(id, call)| (id.clone(), instant(call.until)));
        let give_up = sleep_if(overdue.as_ref().map(|it| it.1));
        tokio::select! {
            biased;
            // `tell` is ours too, so the channel cannot close.
            Some(news) = self.news.recv() => RunInput::Tool(news),
            input = next_of(&mut self.request) => RunInput::Heard(input),
            () = known(&mut self.held) => RunInput::ToolsKnown,
            () = wake => {
                self.wake_at = None;
                RunInput::Wake
            }
            () = give_up => match overdue {
                Some((call_id, _)) => RunInput::Overdue(call_id),
                None => std::future::pending().await,
            }
        }
    }

    /// What has come in meanwhile, if anything has.
    pub(super) fn try_next(&mut self) -> Option<RunInput> {
        let news = self.refused.pop_front().or_else(|| self.news.try_recv().ok());
        if let Some(news) = news {
            return Some(RunInput::Tool(news));
        }
        let input = self.request.as_mut()?.try_next()?;
        if let Input::Ended(_) = input {
            self.request = None;
        }
        Some(RunInput::Heard(input))
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

    /// What is to be done now has been held already. True once for each time.
    pub(super) fn has_waited(&mut self) -> bool {
        std::mem::take(&mut self.has_waited)
    }

    pub(super) fn wake_at(&mut self, at: Millis) {
        let at = instant(at);
        self.wake_at = Some(self.wake_at.map_or(at, |other| other.min(at)));
    }

    pub(super) fn start_tool(
        &mut self,
        shared: &Arc<Shared>,
        call_id: CallId,
        tool_name: String,
        arguments: String,
    ) {
        let (stop, stopped) = watch::channel(false);
        let context = ToolContext {
            call_id: call_id.clone(),
            workspace: self.workspace.clone(),
            now: clock::now(),
            stopped: Stopped(stopped),
            news: self.tell.clone(),
        };
        let (shared, tell, id) = (Arc::clone(shared), self.tell.clone(), call_id.clone());
        let task = tokio::spawn(async move {
            let outcome = shared.tools.run(&tool_name, &arguments, context).await;
            let _ = tell.send(ToolNews { call_id: id, what: What::Done(outcome) }).await;
        });
        self.tools.insert(call_id, RunningTool { task, stop });
    }

    /// The call gets its result, as if it had run.
    pub(super) fn refuse(&mut self, call_id: CallId, error: ErrorInfo) {
        let outcome = ToolOutcome { ok: false, result: Value::Null, error: Some(error) };
        self.refused.push_back(ToolNews { call_id, what: What::Done(outcome) });
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

fn instant(at: Millis) -> Instant {
    Instant::now() + Duration::from_millis(at.since(clock::now()))
}

/// For ever, if there is no such moment.
async fn sleep_if(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
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
    Tool(ToolNews),
    /// Something of the answer to a request.
    Heard(Input),
    Wake,
    /// What was held can be done.
    ToolsKnown,
    /// Nobody has decided about the call in time.
    Overdue(CallId),
}
