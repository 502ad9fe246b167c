//! Access tokens for programs that call Callboard's own tools.
//!
//! Each process has a pass, an unguessable token. It determines the session that a call belongs to,
//! and is revoked when the process ends.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backends::ToolServer;
use tokio::sync::oneshot;
use transcript::SessionId;

use crate::clock;

/// Path at which the tools are served.
pub const PATH: &str = "/mcp";

/// All valid passes.
pub struct Passes {
    address: SocketAddr,
    holders: Mutex<HashMap<String, Arc<Holder>>>,
}

/// The process to which a pass belongs.
pub struct Holder {
    pub session: SessionId,
    /// Cancellation signals of pending requests, with their ids.
    pending: Mutex<Vec<(String, oneshot::Sender<()>)>>,
}

/// A pass, valid until it is dropped.
pub struct Pass {
    passes: Arc<Passes>,
    token: String,
}

/// A request in progress. It ends when this is dropped.
pub struct PendingRequest {
    holder: Arc<Holder>,
    cancelled: oneshot::Receiver<()>,
}

impl Passes {
    /// Creates an empty set. `address` is the address at which the tools are served.
    pub fn new(address: SocketAddr) -> Arc<Self> {
        Arc::new(Self { address, holders: Mutex::default() })
    }

    pub fn issue(self: &Arc<Self>, session: &SessionId) -> Pass {
        let token = clock::new_pass();
        let holder = Holder { session: session.clone(), pending: Mutex::default() };
        lock(&self.holders).insert(token.clone(), Arc::new(holder));
        Pass { passes: Arc::clone(self), token }
    }

    pub fn holder(&self, token: &str) -> Option<Arc<Holder>> {
        lock(&self.holders).get(token).cloned()
    }
}

impl Pass {
    /// Returns the URL and the token for the program.
    pub fn server(&self) -> ToolServer {
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
    pub fn begin(self: &Arc<Self>, request: String) -> PendingRequest {
        let (cancel, cancelled) = oneshot::channel();
        lock(&self.pending).push((request, cancel));
        PendingRequest { holder: Arc::clone(self), cancelled }
    }

    /// Cancels the pending request with this id. If several clients of a program use the same id, none of
    /// their requests is cancelled.
    pub fn cancel(&self, request: &str) {
        let mut pending = lock(&self.pending);
        let mut same = (0..pending.len()).filter(|idx| pending[*idx].0 == request);
        if let (Some(idx), None) = (same.next(), same.next()) {
            let (_, cancel) = pending.remove(idx);
            let _ = cancel.send(());
        }
    }
}

impl PendingRequest {
    pub async fn cancelled(&mut self) {
        if (&mut self.cancelled).await.is_err() {
            std::future::pending().await
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.cancelled.close();
        lock(&self.holder.pending).retain(|(_, it)| !it.is_closed());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
