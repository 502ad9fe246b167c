//! One run: the agent's state machine, what it is doing, and what it waits for.
//!
//! The session's task owns it and calls it with one input at a time, so that a cancel, a result and
//! the agent's own end can never cross: whichever comes first counts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backends::{Backend, Effect, HowLost, Input, Lost, Request, ToolOutcome};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};
use transcript::{Answer, CallId, Millis, ResponseId};

use super::request::RunningRequest;
use crate::clock;
use crate::session::Shared;
use crate::tools::ToolContext;

pub(super) struct Run {
    pub(super) id: ResponseId,
    /// What the log says of this run so far.
    pub(super) answer: Answer,
    pub(super) workspace: PathBuf,
    backend: Box<dyn Backend>,
    wake_at: Option<Instant>,
    tools: HashMap<CallId, RunningTool>,
    request: Option<RunningRequest>,
    done: mpsc::Sender<ToolDone>,
    results: mpsc::Receiver<ToolDone>,
}

/// A tool that is being run. Dropping it stops it.
struct RunningTool {
    task: AbortHandle,
    stopped: Arc<AtomicBool>,
}

pub(super) struct ToolDone {
    pub(super) call_id: CallId,
    pub(super) tool_name: String,
    pub(super) outcome: ToolOutcome,
}

/// Calls of one step run side by side; their results never have to wait for room.
const RESULTS: usize = 64;

impl Run {
    pub(super) fn new(id: ResponseId, backend: Box<dyn Backend>, workspace: PathBuf) -> Self {
        let (done, results) = mpsc::channel(RESULTS);
        let answer = Answer::replay(&id, []);
        let tools = HashMap::new();
        let (wake_at, request) = (None, None);
        Self { id, answer, workspace, backend, wake_at, tools, request, done, results }
    }

    /// Hands the agent one input; the effects are to be carried out in order.
    pub(super) fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        self.backend.on(now, input)
    }

    /// The next thing that happens to this run from outside: a tool is done, a piece of an answer
    /// has come, or it is time.
    pub(super) async fn next(&mut self) -> RunInput {
        let wake = async {
            match self.wake_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // `done` is ours too, so the channel cannot close.
            Some(done) = self.results.recv() => RunInput::ToolDone(done),
            input = next_of(&mut self.request) => RunInput::Heard(input),
            () = wake => {
                self.wake_at = None;
                RunInput::Wake
            }
        }
    }

    /// What has come in meanwhile, if anything has.
    pub(super) fn try_next(&mut self) -> Option<RunInput> {
        if let Ok(done) = self.results.try_recv() {
            return Some(RunInput::ToolDone(done));
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

    pub(super) fn wake_at(&mut self, at: Millis) {
        let wait = Duration::from_millis(at.since(clock::now()));
        let at = Instant::now() + wait;
        self.wake_at = Some(self.wake_at.map_or(at, |other| other.min(at)));
    }

    pub(super) fn start_tool(
        &mut self,
        shared: &Arc<Shared>,
        call_id: CallId,
        tool_name: String,
        arguments: String,
    ) {
        let stopped = Arc::new(AtomicBool::new(false));
        let context = ToolContext {
            workspace: self.workspace.clone(),
            stopped: Arc::clone(&stopped),
            now: clock::now(),
        };
        let (shared, done, id) = (Arc::clone(shared), self.done.clone(), call_id.clone());
        let task = tokio::spawn(async move {
            let outcome = shared.tools.run(&tool_name, &arguments, context).await;
            let _ = done.send(ToolDone { call_id: id, tool_name, outcome }).await;
        });
        self.tools.insert(call_id, RunningTool { task: task.abort_handle(), stopped });
    }

    pub(super) fn tool_ended(&mut self, call_id: &CallId) {
        self.tools.remove(call_id);
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
    ToolDone(ToolDone),
    /// Something of the answer to a request.
    Heard(Input),
    Wake,
}

impl Drop for RunningTool {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.task.abort();
    }
}
