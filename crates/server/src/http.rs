//! The way in: every route, and what stands in front of all of them.

mod blobs;
mod door;
mod error;
mod hosts;
mod info;
mod keys;
mod listener;
mod operation;
mod pages;
mod read;
mod search;
mod sessions;
mod sign_in;
mod socket;
mod watch;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use store::Store;
use tokio::sync::mpsc;

use crate::clock;
use crate::session::{Sessions, Shared};

pub(crate) use listener::serve;

/// What requests share.
#[derive(Clone)]
pub(crate) struct App {
    shared: Arc<Shared>,
    sessions: Sessions,
    door: Arc<door::Door>,
    attempts: Arc<sign_in::Attempts>,
    data: PathBuf,
    /// Dropped with the last clone, that is, with the last connection.
    _alive: mpsc::Sender<()>,
    /// Turns true when the server stops.
    stopping: tokio::sync::watch::Receiver<bool>,
}

impl App {
    pub(crate) fn new(
        shared: Arc<Shared>,
        sessions: Sessions,
        edge: Edge,
        alive: mpsc::Sender<()>,
        stopping: tokio::sync::watch::Receiver<bool>,
    ) -> Result<Self, store::Error> {
        let Edge { token, listen, public_url, allowed_origins, data } = edge;
        let keys = keys::Keys::load(token, listen.port(), shared.store.clone(), clock::now())?;
        let hosts = hosts::Hosts::new(listen, public_url.as_deref());
        let door = Arc::new(door::Door { keys, hosts, allowed_origins });
        let attempts = Arc::default();
        Ok(Self { shared, sessions, door, attempts, data, _alive: alive, stopping })
    }

    fn store(&self) -> &Store {
        &self.shared.store
    }
}

/// How the outside reaches us, and by what right.
pub(crate) struct Edge {
    pub(crate) token: String,
    pub(crate) listen: SocketAddr,
    /// Where a proxy in front of us is reached.
    pub(crate) public_url: Option<String>,
    pub(crate) allowed_origins: Vec<String>,
    pub(crate) data: PathBuf,
}

/// The largest body and the largest frame that anybody may send.
const BODY_MAX: usize = 8 * 1024 * 1024;

pub(crate) fn router(app: App) -> Router {
    let router = routes()
        .into_iter()
        .fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    router
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(from_fn_with_state(app.clone(), door::door))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(app)
}

/// Every route there is; all of them are behind the door.
fn routes() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/", get(pages::home)),
        ("/s/{session}", get(pages::session)),
        ("/assets/{file}", get(pages::asset)),
        ("/api/agents", get(info::agents)),
        ("/api/tools", get(info::tools)),
        ("/api/sessions", get(sessions::list).post(sessions::create)),
        (
            "/api/sessions/{session}",
            get(sessions::show).patch(sessions::update).delete(sessions::delete),
        ),
        ("/api/sessions/{session}/events", get(read::events)),
        ("/api/sessions/{session}/messages", get(read::messages).post(sessions::send)),
        ("/api/sessions/{session}/cancel", post(sessions::cancel)),
        ("/api/sessions/{session}/continue", post(sessions::go_on)),
        ("/api/sessions/{session}/retry", post(sessions::retry)),
        ("/api/search", get(search::search)),
        ("/api/blobs", post(blobs::put)),
        ("/api/blobs/{hash}", get(blobs::show)),
        ("/api/sizes", get(operation::sizes)),
        ("/api/backup", post(operation::backup)),
        ("/metrics", get(operation::metrics)),
        ("/ws", get(socket::open)),
        (door::SIGN_IN, post(sign_in::sign_in)),
        ("/sign-out", post(sign_in::sign_out)),
        (door::HEALTH, get(info::healthz)),
    ]
}

#[cfg(test)]
mod tests;
