//! The way in: every route, and what stands in front of all of them.

mod access;
mod error;
mod info;
mod pages;
mod read;
mod sessions;
mod socket;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use store::Store;

use crate::session::{Sessions, Shared};

/// What requests share.
#[derive(Clone)]
pub(crate) struct App {
    shared: Arc<Shared>,
    sessions: Sessions,
    keys: Arc<access::Keys>,
    /// Turns true when the server stops.
    stopping: tokio::sync::watch::Receiver<bool>,
}

impl App {
    pub(crate) fn new(
        shared: Arc<Shared>,
        sessions: Sessions,
        token: String,
        address: SocketAddr,
        stopping: tokio::sync::watch::Receiver<bool>,
    ) -> Self {
        let keys = Arc::new(access::Keys::new(token, address.port()));
        Self { shared, sessions, keys, stopping }
    }

    fn store(&self) -> &Store {
        &self.shared.store
    }
}

/// The largest body and the largest frame that anybody may send.
const BODY_MAX: usize = 8 * 1024 * 1024;

pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/", get(pages::home))
        .route("/s/{session}", get(pages::session))
        .route("/assets/{file}", get(pages::asset))
        .route("/api/agents", get(info::agents))
        .route("/api/tools", get(info::tools))
        .route("/api/sessions", get(sessions::list).post(sessions::create))
        .route("/api/sessions/{session}", get(sessions::show).patch(sessions::update))
        .route("/api/sessions/{session}/events", get(read::events))
        .route("/api/sessions/{session}/messages", get(read::messages).post(sessions::send))
        .route("/api/sessions/{session}/cancel", post(sessions::cancel))
        .route("/api/sessions/{session}/continue", post(sessions::go_on))
        .route("/api/sessions/{session}/retry", post(sessions::retry))
        .route("/ws", get(socket::open))
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(from_fn_with_state(app.clone(), access::require_key))
        // Outside the layer: the only route that needs no key.
        .route("/healthz", get(info::healthz))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(app)
}
