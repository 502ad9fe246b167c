//! Tools that run for the open run.

use std::collections::HashMap;

use session::{AgentInput, Input, ReplyId, ReplyTo};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tools::{ToolEvent, ToolUpdate};
use transcript::{CallId, ResponseId};

use super::callers::new_reply_id;

/// Maximum number of tool updates that the session has not read before tools have to wait.
const UPDATES: usize = 64;

pub(super) struct RunningTools {
    run: Option<ResponseId>,
    tools: HashMap<CallId, RunningTool>,
    sender: mpsc::Sender<ToolUpdate>,
    updates: mpsc::Receiver<ToolUpdate>,
    /// Channels that confirm to tools that their event is in the log, by the id of the reply.
    emitting: HashMap<ReplyId, oneshot::Sender<()>>,
}

/// A tool that runs for a call. Dropping it stops the tool.
struct RunningTool {
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Default for RunningTools {
    fn default() -> Self {
        let (sender, updates) = mpsc::channel(UPDATES);
        Self { run: None, tools: HashMap::new(), sender, updates, emitting: HashMap::new() }
    }
}

impl RunningTools {
    /// Returns the channel on which a new tool sends its updates.
    pub(super) fn updates(&self) -> mpsc::Sender<ToolUpdate> {
        self.sender.clone()
    }

    pub(super) fn add(
        &mut self,
        run: ResponseId,
        call_id: CallId,
        stop: watch::Sender<bool>,
        task: JoinHandle<()>,
    ) {
        self.run = Some(run);
        self.tools.insert(call_id, RunningTool { task, stop });
    }

    /// Asks the tool of this call to stop.
    pub(super) fn stop(&self, call_id: &CallId) {
        if let Some(tool) = self.tools.get(call_id) {
            // Fails if the tool has ended and its outcome is not handled yet.
            let _ = tool.stop.send(true);
        }
    }

    /// Asks all tools to stop, and returns their tasks, which end when the tools have cleaned up.
    pub(super) fn stop_all(&mut self) -> Vec<JoinHandle<()>> {
        let Self { tools, .. } = std::mem::take(self);
        let stop = |RunningTool { task, stop }| {
            let _: Result<_, watch::error::SendError<bool>> = stop.send(true);
            task
        };
        tools.into_values().map(stop).collect()
    }

    /// Confirms to a tool that its event is in the log, unless writing it failed. Returns whether a
    /// tool waited for this reply.
    pub(super) fn confirm(&mut self, id: ReplyId, is_written: bool) -> bool {
        let Some(written) = self.emitting.remove(&id) else { return false };
        if is_written {
            let _ = written.send(());
        }
        true
    }

    /// Waits for the next update of any tool.
    pub(super) async fn next(&mut self) -> Input {
        match self.updates.recv().await {
            Some(update) => self.as_input(update),
            // This side holds a sender too, so the channel cannot close.
            None => std::future::pending().await,
        }
    }

    pub(super) fn try_next(&mut self) -> Option<Input> {
        let update = self.updates.try_recv().ok()?;
        Some(self.as_input(update))
    }

    fn as_input(&mut self, update: ToolUpdate) -> Input {
        let ToolUpdate { call_id, event } = update;
        if let ToolEvent::Done(_) = event {
            self.tools.remove(&call_id);
        }
        let event = event.map(|written| {
            let id = new_reply_id();
            self.emitting.insert(id, written);
            ReplyTo::new(id)
        });
        let run = self.run.clone().unwrap_or_else(|| ResponseId::new(""));
        Input::Agent(AgentInput::Tool { run, call_id, event })
    }
}
