//! Who may call Callboard's own tools from outside: programs that a session has started.
//!
//! Each process has a pass, a token that nobody can guess. It says which session a call belongs to, and
//! is worth nothing once the process is let go.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backends::ToolServer;
use tokio::sync::oneshot;
use transcript::SessionId;

use crate::clock;

/// The path that the tools are served at.
pub(crate) const PATH: &str = "/mcp";

/// All passes that are good.
pub(crate) struct Passes {
    address: SocketAddr,
    holders: Mutex<HashMap<String, Arc<Holder>>>,
}

/// One process, as its requests make it known.
pub(crate) struct Holder {
    pub(crate) session: SessionId,
    /// Calls that can be taken back, with the ids of their requests.
    under_way: Mutex<Vec<(String, oneshot::Sender<()>)>>,
}

/// Good until it is dropped.
pub(crate) struct Pass {
    passes: Arc<Passes>,
    token: String,
}

/// A request that is being answered. Dropped when it is not any more.
pub(crate) struct UnderWay {
    holder: Arc<Holder>,
    taken_back: oneshot::Receiver<()>,
}

impl Passes {
    /// `address` is where the tools are served.
    pub(crate) fn new(address: SocketAddr) -> Arc<Self> {
        Arc::new(Self { address, holders: Mutex::default() })
    }

    pub(crate) fn issue(self: &Arc<Self>, session: &SessionId) -> Pass {
        let token = clock::new_pass();
        let holder = Holder { session: session.clone(), under_way: Mutex::default() };
        lock(&self.holders).insert(token.clone(), Arc::new(holder));
        Pass { passes: Arc::clone(self), token }
    }

    pub(crate) fn holder(&self, token: &str) -> Option<Arc<Holder>> {
        lock(&self.holders).get(token).cloned()
    }
}

impl Pass {
    /// What the program is told.
    pub(crate) fn server(&self) -> ToolServer {
        let url = format!("http://{}{PATH}", self.passes.address);
        ToolServer { url, token: self.token.clone() }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        lock(&self.passes.holders).remove(&self.token);
    }
}

impl Holder {
    pub(crate) fn begin(self: &Arc<Self>, request: String) -> UnderWay {
        let (take_back, taken_back) = oneshot::channel();
        lock(&self.under_way).push((request, take_back));
        UnderWay { holder: Arc::clone(self), taken_back }
    }

    /// A program may have several clients that each count for themselves: of two requests with one id
    /// none is taken for the other.
    pub(crate) fn take_back(&self, request: &str) {
        let mut under_way = lock(&self.under_way);
        let mut same = (0..under_way.len()).filter(|idx| under_way[*idx].0 == request);
        if let (Some(idx), None) = (same.next(), same.next()) {
            let (_, take_back) = under_way.remove(idx);
            let _ = take_back.send(());
        }
    }
}

impl UnderWay {
    pub(crate) async fn taken_back(&mut self) {
        if (&mut self.taken_back).await.is_err() {
            std::future::pending().await
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.taken_back.close();
        lock(&self.holder.under_way).retain(|(_, it)| !it.is_closed());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
