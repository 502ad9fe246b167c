//! Notifications of an MCP server, read in order with its responses: progress goes to its call, and a changed
//! list of tools is noted before the next response is read.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ProgressNotificationParam, ProgressToken, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{mpsc, watch};

/// Capacity in lines of the progress queue of an MCP tool call; further lines are dropped.
const LINES: usize = 256;
/// Maximum number of progress lines that are kept until their MCP tool call is registered.
const EARLY: usize = 64;
/// Maximum length in bytes of the message in a progress line of an MCP tool call.
const MAX_LINE: usize = 1000;

/// State of a connection to an MCP server that the server's notifications change.
pub(super) struct Notifications {
    inner: Mutex<Inner>,
    is_closed: watch::Sender<bool>,
}

#[derive(Default)]
struct Inner {
    calls: HashMap<ProgressToken, mpsc::Sender<String>>,
    early: VecDeque<(ProgressToken, String)>,
    tools_changed: bool,
    /// Reason why reading from the MCP server was aborted; `None` if it was not.
    failure: Option<String>,
}

impl Notifications {
    pub(super) fn new() -> Arc<Self> {
        let (is_closed, _) = watch::channel(false);
        Arc::new(Self { inner: Mutex::default(), is_closed })
    }

    /// Registers an MCP tool call and returns its progress as lines, including lines that arrived
    /// before.
    pub(super) fn progress(&self, token: &ProgressToken) -> mpsc::Receiver<String> {
        let (sender, lines) = mpsc::channel(LINES);
        let mut inner = self.inner();
        for (_, line) in inner.early.iter().filter(|(early, _)| early == token) {
            let _ = sender.try_send(line.clone());
        }
        inner.early.retain(|(early, _)| early != token);
        // Forget calls whose receiver is gone.
        inner.calls.retain(|_, it| !it.is_closed());
        inner.calls.insert(token.clone(), sender);
        lines
    }

    pub(super) fn tools_changed(&self) -> bool {
        self.inner().tools_changed
    }

    /// Clears the flag that the MCP server's list of tools has changed, before the list is read.
    pub(super) fn clear_tools_changed(&self) {
        self.inner().tools_changed = false;
    }

    /// Records why reading from the MCP server was aborted.
    pub(super) fn fail(&self, why: &str) {
        self.inner().failure = Some(why.to_owned());
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.inner().failure.clone()
    }

    pub(super) fn close(&self) {
        self.is_closed.send_replace(true);
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.is_closed.borrow()
    }

    /// Waits until the connection to the MCP server is closed.
    pub(super) async fn closed(&self) {
        let _ = self.is_closed.subscribe().wait_for(|it| *it).await;
    }

    /// Forwards a progress notification of the MCP server to its tool call, and returns every other
    /// message.
    fn intercept(
        &self,
        message: RxJsonRpcMessage<RoleClient>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let JsonRpcMessage::Notification(it) = &message else { return Some(message) };
        match &it.notification {
            ServerNotification::ProgressNotification(it) => self.report_progress(&it.params),
            ServerNotification::ToolListChangedNotification(_) => {
                self.inner().tools_changed = true;
                return Some(message);
            }
            _ => return Some(message),
        }
        None
    }

    fn report_progress(&self, progress: &ProgressNotificationParam) {
        let (token, line) = (progress.progress_token.clone(), line(progress));
        let mut inner = self.inner();
        if let Some(call) = inner.calls.get(&token) {
            let _ = call.try_send(line);
            return;
        }
        if inner.early.len() == EARLY {
            inner.early.pop_front();
        }
        inner.early.push_back((token, line));
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Formats a progress notification of an MCP server as a line: `Reading (3/10)`.
fn line(progress: &ProgressNotificationParam) -> String {
    let ProgressNotificationParam { progress: done, total, message, .. } = progress;
    let amount = match total {
        Some(total) => format!("{done}/{total}"),
        None => done.to_string(),
    };
    let Some(message) = message.as_deref().filter(|it| !it.trim().is_empty()) else {
        return amount + "\n";
    };
    let message: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} ({amount})\n", &message[..message.floor_char_boundary(MAX_LINE)])
}

/// Transport to an MCP server whose notifications are intercepted.
pub(super) struct WatchedTransport<T> {
    pub(super) transport: T,
    pub(super) notifications: Arc<Notifications>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for WatchedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(message) = self.transport.receive().await else {
                self.notifications.close();
                return None;
            };
            if let Some(message) = self.notifications.intercept(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.notifications.close();
        self.transport.close()
    }
}
