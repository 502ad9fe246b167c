//! The HTTP server: routes, the authorization layer in front of them, the WebSocket, the pages, and the
//! compatibility APIs.
//!
//! The crate cannot start processes or reach MCP servers; sessions do that, in the crate `runtime`.

mod answer;
mod api;
pub mod auth;
mod compat;
mod error;
mod extract;
mod listener;
mod openapi;
mod pages;
mod program_mcp;
mod record_stream;
mod route;
mod routes;
mod streaming;
mod ws;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use store::Store;
use tokio::sync::{mpsc, watch};
use transcript::Attachment;

use runtime::Sessions;
use runtime::agents::Agents;
use runtime::draw_pool::{DrawPermit, DrawPool};
use runtime::hub::Hub;
use runtime::metrics::Metrics;
use runtime::page_context::PageContext;
use runtime::tool_catalog::ToolCatalog;
use runtime::views::Views;

use auth::{gate, hosts, keys, sign_in};

pub use auth::keys::oldest_sign_in;
pub use listener::serve;
pub use program_mcp::ProgramMcp;

/// State of the HTTP server that all requests share.
#[derive(Clone)]
pub struct App {
    store: Store,
    hub: Arc<Hub>,
    sessions: Sessions,
    agents: Arc<Agents>,
    catalog: ToolCatalog,
    metrics: Arc<Metrics>,
    views: Views,
    page_context: Arc<PageContext>,
    draws: DrawPool,
    gate: Arc<gate::Gate>,
    attempts: Arc<sign_in::Attempts>,
    data: PathBuf,
    /// Sender that is dropped with the last clone of the state, when the last connection ends.
    _alive: mpsc::Sender<()>,
    /// Stop signal, which becomes true when the server stops.
    stopping: watch::Receiver<bool>,
}

/// Components of the server that HTTP requests use.
pub struct Parts {
    pub store: Store,
    pub hub: Arc<Hub>,
    pub sessions: Sessions,
    pub catalog: ToolCatalog,
    pub metrics: Arc<Metrics>,
    pub page_context: PageContext,
}

impl App {
    /// Creates the state for an HTTP server that is reached at `edge`. `alive` is dropped with the
    /// last connection.
    pub async fn new(
        parts: Parts,
        edge: Edge,
        alive: mpsc::Sender<()>,
        stopping: watch::Receiver<bool>,
    ) -> Result<Self, store::Error> {
        let Parts { store, hub, sessions, catalog, metrics, page_context } = parts;
        let Edge { token, listen, public_url, allowed_origins, data } = edge;
        let is_secure = public_url.as_deref().is_some_and(|it| it.starts_with("https://"));
        let kept = store.clone();
        let keys = keys::Keys::load(token, listen.port(), is_secure, data.clone(), kept).await?;
        let hosts = hosts::Hosts::new(listen, public_url.as_deref());
        let draws = DrawPool::default();
        let page_context = Arc::new(page_context);
        Ok(Self {
            views: Views::new(
                store.clone(),
                Arc::clone(&hub),
                draws.clone(),
                Arc::clone(&page_context),
            ),
            agents: Arc::clone(&page_context.agents),
            gate: Arc::new(gate::Gate { keys, hosts, allowed_origins }),
            attempts: Arc::default(),
            store,
            hub,
            sessions,
            catalog,
            metrics,
            page_context,
            draws,
            data,
            _alive: alive,
            stopping,
        })
    }

    /// Ends the sign-ins if the token or the password was changed while no server ran. Must be
    /// called before the first request, because it closes open connections.
    pub async fn end_outdated_sign_ins(&self) {
        self.gate.keys.end_outdated_or_warn().await;
    }

    /// Ends the sign-ins whenever the token or the password has been changed, until the server
    /// stops.
    pub fn watch_secrets(&self) -> impl Future<Output = ()> + use<> {
        keys::watch_secrets(Arc::clone(&self.gate), self.stopping.clone())
    }

    fn store(&self) -> &Store {
        &self.store
    }

    /// Waits for a permit to read and render something large, such as a page.
    async fn draw_permit(&self) -> DrawPermit {
        self.draws.permit().await
    }

    /// Returns the absolute URL of a stored file for a client that addresses the server as `host`.
    fn file_url(&self, host: &str, file: &Attachment) -> String {
        self.gate.hosts.address(host, &format!("/api/blobs/{}", file.blob))
    }
}

/// Addresses at which the server is reached, its access token and its data folder.
pub struct Edge {
    pub token: String,
    pub listen: SocketAddr,
    /// URL at which a proxy in front of the server is reached; `None` without a proxy.
    pub public_url: Option<String>,
    pub allowed_origins: Vec<String>,
    pub data: PathBuf,
}

/// Maximum size in bytes of a request body and of a WebSocket frame.
const BODY_MAX: usize = 8 * 1024 * 1024;
/// Maximum size in bytes of a file to import.
const FILE_MAX: usize = 256 * 1024 * 1024;

pub fn router(app: App) -> Router {
    let router = routes::routes()
        .into_iter()
        .fold(Router::new(), |router, route| router.route(route.path, route.handler));
    router
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(from_fn_with_state(app.clone(), gate::check_access))
        .with_state(app)
}
