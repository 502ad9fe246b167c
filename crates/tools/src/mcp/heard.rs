//! What a server says unasked, taken from between its answers in the order it was said: progress goes
//! to the call that it is about, and a changed list of tools is noted before the next answer is read.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ProgressNotificationParam, ProgressToken, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{mpsc, watch};

/// Lines that may wait for a call; one that falls behind misses some.
const LINES: usize = 256;
/// Lines that may come before we know of the call that they are about.
const EARLY: usize = 64;
const MAX_LINE: usize = 1000;

pub(super) struct Heard {
    inner: Mutex<Inner>,
    is_closed: watch::Sender<bool>,
}

#[derive(Default)]
struct Inner {
    calls: HashMap<ProgressToken, mpsc::Sender<String>>,
    early: VecDeque<(ProgressToken, String)>,
    tools_changed: bool,
    complaint: Option<String>,
}

impl Heard {
    pub(super) fn new() -> Arc<Self> {
        let (is_closed, _) = watch::channel(false);
        Arc::new(Self { inner: Mutex::default(), is_closed })
    }

    /// The progress of a call, as lines. A quick server may have told some of it already.
    pub(super) fn progress(&self, token: &ProgressToken) -> mpsc::Receiver<String> {
        let (sender, lines) = mpsc::channel(LINES);
        let mut inner = self.inner();
        for (_, line) in inner.early.iter().filter(|(early, _)| early == token) {
            let _ = sender.try_send(line.clone());
        }
        inner.early.retain(|(early, _)| early != token);
        // Calls that nobody follows any more.
        inner.calls.retain(|_, it| !it.is_closed());
        inner.calls.insert(token.clone(), sender);
        lines
    }

    pub(super) fn tools_changed(&self) -> bool {
        self.inner().tools_changed
    }

    /// From now on, a change counts that is not heard yet.
    pub(super) fn reading_tools(&self) {
        self.inner().tools_changed = false;
    }

    /// Why nothing more was listened to.
    pub(super) fn complain(&self, why: &str) {
        self.inner().complaint = Some(why.to_owned());
    }

    pub(super) fn complaint(&self) -> Option<String> {
        self.inner().complaint.clone()
    }

    pub(super) fn close(&self) {
        self.is_closed.send_replace(true);
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.is_closed.borrow()
    }

    /// Ends when nothing more can be heard.
    pub(super) async fn closed(&self) {
        let _ = self.is_closed.subscribe().wait_for(|it| *it).await;
    }

    /// Gives back what is not for us.
    fn hear(&self, message: RxJsonRpcMessage<RoleClient>) -> Option<RxJsonRpcMessage<RoleClient>> {
        let JsonRpcMessage::Notification(it) = &message else { return Some(message) };
        match &it.notification {
            ServerNotification::ProgressNotification(it) => self.tell_progress(&it.params),
            ServerNotification::ToolListChangedNotification(_) => {
                self.inner().tools_changed = true;
                return Some(message);
            }
            _ => return Some(message),
        }
        None
    }

    fn tell_progress(&self, progress: &ProgressNotificationParam) {
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

/// `Reading (3/10)`
fn line(progress: &ProgressNotificationParam) -> String {
    let ProgressNotificationParam { progress: done, total, message, .. } = progress;
    let how_far = match total {
        Some(total) => format!("{done}/{total}"),
        None => done.to_string(),
    };
    let Some(message) = message.as_deref().filter(|it| !it.trim().is_empty()) else {
        return how_far + "\n";
    };
    let message: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} ({how_far})\n", &message[..message.floor_char_boundary(MAX_LINE)])
}

/// A transport, listened to.
pub(super) struct Listening<T> {
    pub(super) transport: T,
    pub(super) heard: Arc<Heard>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Listening<T> {
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
                self.heard.close();
                return None;
            };
            if let Some(message) = self.heard.hear(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.heard.close();
        self.transport.close()
    }
}
