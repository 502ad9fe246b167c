//! Access tokens for programs that call Callboard's own tools.
//!
//! Each process has a pass, an unguessable token. It determines the session that a call belongs to,
//! and is revoked when the process ends.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use backends::ToolServer;
use tokio::sync::oneshot;
use transcript::SessionId;

use crate::clock;
use crate::sync::lock;

/// HTTP path at which Callboard's tools are served to programs.
pub const PATH: &str = "/mcp";

/// All valid passes, by which programs may call Callboard's tools.
pub struct Passes {
    address: SocketAddr,
    holders: Mutex<HashMap<String, Arc<Holder>>>,
}

/// The process of a program that has a pass, and its pending requests.
pub struct Holder {
    pub session: SessionId,
    /// Ids of the pending requests of the process, with the channels that cancel them.
    pending: Mutex<Vec<(String, oneshot::Sender<()>)>>,
}

/// Right of a program's process to call Callboard's tools, valid until it is dropped.
pub struct Pass {
    passes: Arc<Passes>,
    token: String,
}

/// A pending request of a program to Callboard's tools. It counts as ended when this is dropped.
pub struct PendingRequest {
    holder: Arc<Holder>,
    cancelled: oneshot::Receiver<()>,
}

impl Passes {
    /// Creates an empty set of passes. `address` is the address at which Callboard's tools are
    /// served.
    pub fn new(address: SocketAddr) -> Arc<Self> {
        Arc::new(Self { address, holders: Mutex::default() })
    }

    /// Creates a pass for a program that is started for the session.
    pub fn issue(self: &Arc<Self>, session: &SessionId) -> Pass {
        let token = clock::new_pass();
        let holder = Holder { session: session.clone(), pending: Mutex::default() };
        lock(&self.holders).insert(token.clone(), Arc::new(holder));
        Pass { passes: Arc::clone(self), token }
    }

    /// Returns the process that holds the pass with this token. `None` if the pass is not valid.
    pub fn holder(&self, token: &str) -> Option<Arc<Holder>> {
        lock(&self.holders).get(token).cloned()
    }
}

impl Pass {
    /// Returns the URL of Callboard's tools and the token with which the program may call them.
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
    /// Registers a pending request of the process under the request's id.
    pub fn begin(self: &Arc<Self>, request: String) -> PendingRequest {
        let (cancel, cancelled) = oneshot::channel();
        lock(&self.pending).push((request, cancel));
        PendingRequest { holder: Arc::clone(self), cancelled }
    }

    /// Cancels the pending request with this id. If several clients of a program use the same id,
    /// none of their requests is cancelled.
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
    /// Waits until the request is cancelled.
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
