//! The context of one call: its session, its workspace, its stop signal, and its reports.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use transcript::{CallId, ErrorInfo, Event, Millis, ResponseId, SessionId};

use crate::{Peers, PrivateFiles, interrupted};

/// Everything that a call may use besides its arguments.
#[derive(Clone)]
pub struct ToolContext {
    /// Session of the call.
    pub session_id: SessionId,
    /// Run of the call.
    pub response_id: ResponseId,
    /// The call itself.
    pub call_id: CallId,
    /// The other agents of the server.
    pub peers: Arc<dyn Peers>,
    /// Folder that file tools are confined to and commands run in.
    pub workspace: PathBuf,
    /// Files that no tool opens.
    pub private: PrivateFiles,
    /// Time at which the call began.
    pub now: Millis,
    /// Whether the call has been stopped.
    pub stopped: Stopped,
    /// Receives output, retries and the outcome.
    pub updates: mpsc::Sender<ToolUpdate>,
}

/// Stop signal of a call: set when its value turns true or its sender is dropped. Long work checks it.
#[derive(Clone)]
pub struct Stopped(pub watch::Receiver<bool>);

/// One report of a running call.
#[derive(Debug)]
pub struct ToolUpdate {
    /// The call that reports.
    pub call_id: CallId,
    /// The report.
    pub event: ToolEvent,
}

/// Content of a [`ToolUpdate`]. An event is confirmed once it is in the log.
pub type ToolEvent = backends::ToolEvent<oneshot::Sender<()>>;

impl ToolContext {
    pub(crate) fn check_stopped(&self) -> Result<(), ErrorInfo> {
        if self.stopped.is_set() { Err(interrupted()) } else { Ok(()) }
    }

    /// Sends a report. Returns false if the receiver is gone.
    pub(crate) async fn report(&self, event: ToolEvent) -> bool {
        self.updates.send(ToolUpdate { call_id: self.call_id.clone(), event }).await.is_ok()
    }

    /// Appends an event to the log of the call's run. It is in the log when this returns, unless the run
    /// has ended.
    pub(crate) async fn emit(&self, event: Event) -> Result<(), ErrorInfo> {
        let (written, is_written) = oneshot::channel();
        self.report(ToolEvent::Emit { event: Box::new(event), written }).await;
        is_written.await.map_err(|_| interrupted())
    }
}

impl Stopped {
    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Resolves when the call is stopped.
    pub async fn wait(&self) {
        // An error means that the sender is gone, which is a stop too.
        let _ = self.0.clone().wait_for(|it| *it).await;
    }
}
