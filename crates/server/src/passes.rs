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
    /// Calls that can be taken back, by the ids of their requests.
    under_way: Mutex<HashMap<String, oneshot::Sender<()>>>,
}

/// Good until it is dropped.
pub(crate) struct Pass {
    passes: Arc<Passes>,
    token: String,
}

/// A request that is being answered. Dropped when it is not any more.
pub(crate) struct UnderWay {
    holder: Arc<Holder>,
    request: String,
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
    /// A request under the id of another that is under way takes its place.
    pub(crate) fn begin(self: &Arc<Self>, request: String) -> UnderWay {
        let (take_back, taken_back) = oneshot::channel();
        lock(&self.under_way).insert(request.clone(), take_back);
        UnderWay { holder: Arc::clone(self), request, taken_back }
    }

    pub(crate) fn take_back(&self, request: &str) {
        if let Some(take_back) = lock(&self.under_way).remove(request) {
            let _ = take_back.send(());
        }
    }
}

impl UnderWay {
    pub(crate) async fn taken_back(&mut self) {
        // An error means that another has its place.
        let _ = (&mut self.taken_back).await;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.taken_back.close();
        let mut under_way = lock(&self.holder.under_way);
        if under_way.get(&self.request).is_some_and(oneshot::Sender::is_closed) {
            under_way.remove(&self.request);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
