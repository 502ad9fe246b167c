//! The context of one call: its session, its workspace, its stop signal, and its reports.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use transcript::{CallId, ErrorInfo, Event, Millis, ResponseId, SessionId};

use crate::{Peers, PrivateFiles, interrupted};

/// Context of a tool call: everything that it may use besides its arguments.
#[derive(Clone)]
pub struct ToolContext {
    /// Id of the session in which the tool call runs.
    pub session_id: SessionId,
    /// Id of the run that the tool call is part of.
    pub response_id: ResponseId,
    /// Id of the tool call.
    pub call_id: CallId,
    /// Access to the other agents of the server.
    pub peers: Arc<dyn Peers>,
    /// Real path of the workspace, to which file tools are confined and in which commands run:
    /// [`crate::ParsedCall::root`].
    pub workspace: PathBuf,
    /// The server's private files, which no tool may open.
    pub private: PrivateFiles,
    /// Time at which the tool call began.
    pub now: Millis,
    /// Stop signal of the tool call.
    pub stopped: Stopped,
    /// Channel to which the tool call sends its reports, such as output and retries.
    pub updates: mpsc::Sender<ToolUpdate>,
}

/// Stop signal of a tool call: set when its value turns true or its sender is dropped. Tools that
/// run long check it.
#[derive(Clone)]
pub struct Stopped(pub watch::Receiver<bool>);

/// A report of a running tool call, such as output or a retry.
#[derive(Debug)]
pub struct ToolUpdate {
    /// Id of the tool call that sends the report.
    pub call_id: CallId,
    /// Content of the tool call's report.
    pub event: ToolEvent,
}

/// Content of a [`ToolUpdate`]. Its sender confirms to the tool that an emitted event is in the
/// log.
pub type ToolEvent = backends::ToolEvent<oneshot::Sender<()>>;

impl ToolContext {
    pub(crate) fn check_stopped(&self) -> Result<(), ErrorInfo> {
        if self.stopped.is_set() { Err(interrupted()) } else { Ok(()) }
    }

    /// Sends a report of the tool call. Returns false if the receiver is gone.
    pub(crate) async fn report(&self, event: ToolEvent) -> bool {
        self.updates.send(ToolUpdate { call_id: self.call_id.clone(), event }).await.is_ok()
    }

    /// Appends an event to the log as part of the tool call's run, and waits until it is written.
    /// Fails if the run has ended.
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

    /// Waits until the tool call is stopped.
    pub async fn wait(&self) {
        // An error means that the sender is gone, which is a stop too.
        let _ = self.0.clone().wait_for(|it| *it).await;
    }
}
