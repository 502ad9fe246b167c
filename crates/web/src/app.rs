//! The state of the HTTP server, and the parts of it that handlers get.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::FromRef;
use runtime::Sessions;
use runtime::agents::AgentCatalog;
use runtime::agents::tool_catalog::ToolCatalog;
use runtime::draw_pool::DrawPool;
use runtime::live::hub::Hub;
use runtime::live::page_context::PageContext;
use runtime::live::pulse::Pulses;
use runtime::live::views::Views;
use runtime::metrics::Metrics;
use store::Store;
use tokio::sync::{mpsc, watch};

use crate::api::import_export::Importer;
use crate::api::sessions::SessionObjects;
use crate::auth::gate::Gate;
use crate::auth::hosts::Hosts;
use crate::auth::keys::{self, Keys};
use crate::auth::sign_in::Attempts;
use crate::compat::CompatState;
use crate::listener::StopSignal;
use crate::pages::PageState;
use crate::ws::socket::SocketState;

/// State of the HTTP server that all requests share. A handler gets only the parts that it needs.
#[derive(Clone)]
pub struct App {
    parts: Parts,
    views: Views,
    context: Arc<PageContext>,
    draws: DrawPool,
    pub(crate) gate: Arc<Gate>,
    pub(crate) attempts: Arc<Attempts>,
    stop: StopSignal,
}

/// Components of the server that HTTP requests use.
#[derive(Clone)]
pub struct Parts {
    pub store: Store,
    pub hub: Arc<Hub>,
    pub sessions: Sessions,
    pub agents: AgentCatalog,
    pub tools: ToolCatalog,
    pub metrics: Arc<Metrics>,
    pub pulses: Arc<Pulses>,
    /// Whether raw lines of programs are stored, so that pages can link to them.
    pub keeps_raw: bool,
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

impl App {
    /// Creates the state for an HTTP server that is reached at `edge`. `alive` is dropped with the
    /// last connection.
    pub async fn new(
        parts: Parts,
        edge: Edge,
        alive: mpsc::Sender<()>,
        stopping: watch::Receiver<bool>,
    ) -> Result<Self, store::Error> {
        let Edge { token, listen, public_url, allowed_origins, data } = edge;
        let is_secure = public_url.as_deref().is_some_and(|it| it.starts_with("https://"));
        let keys = Keys::load(token, listen.port(), is_secure, data, parts.store.clone()).await?;
        let hosts = Arc::new(Hosts::new(listen, public_url.as_deref()));
        let (agents, pulses) = (parts.agents.clone(), Arc::clone(&parts.pulses));
        let context = Arc::new(PageContext::new(agents, pulses, parts.keeps_raw));
        let draws = DrawPool::default();
        let (store, hub) = (parts.store.clone(), Arc::clone(&parts.hub));
        Ok(Self {
            views: Views::new(store, hub, draws.clone(), Arc::clone(&context)),
            parts,
            context,
            draws,
            gate: Arc::new(Gate { keys, hosts, allowed_origins }),
            attempts: Arc::default(),
            stop: StopSignal::new(stopping, alive),
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
        keys::watch_secrets(Arc::clone(&self.gate), self.stop.detached())
    }
}

macro_rules! parts_of_app {
    ($($type:ty: $app:ident => $part:expr;)*) => {$(
        impl FromRef<App> for $type {
            fn from_ref($app: &App) -> Self {
                $part
            }
        }
    )*};
}

parts_of_app! {
    Store: app => app.parts.store.clone();
    Sessions: app => app.parts.sessions.clone();
    AgentCatalog: app => app.parts.agents.clone();
    ToolCatalog: app => app.parts.tools.clone();
    Arc<Hub>: app => Arc::clone(&app.parts.hub);
    Arc<Metrics>: app => Arc::clone(&app.parts.metrics);
    Arc<PageContext>: app => Arc::clone(&app.context);
    Arc<Gate>: app => Arc::clone(&app.gate);
    Arc<Hosts>: app => Arc::clone(&app.gate.hosts);
    Arc<Attempts>: app => Arc::clone(&app.attempts);
    DrawPool: app => app.draws.clone();
    StopSignal: app => app.stop.clone();
    SessionObjects: app => Self {
        store: app.parts.store.clone(),
        pulses: Arc::clone(&app.parts.pulses),
    };
    Importer: app => Self {
        store: app.parts.store.clone(),
        sessions: app.parts.sessions.clone(),
        agents: app.parts.agents.clone(),
        objects: SessionObjects::from_ref(app),
    };
    CompatState: app => Self {
        store: app.parts.store.clone(),
        hub: Arc::clone(&app.parts.hub),
        sessions: app.parts.sessions.clone(),
        agents: app.parts.agents.clone(),
        hosts: Arc::clone(&app.gate.hosts),
        stop: app.stop.clone(),
    };
    PageState: app => Self {
        store: app.parts.store.clone(),
        sessions: app.parts.sessions.clone(),
        agents: app.parts.agents.clone(),
        tools: app.parts.tools.clone(),
        context: Arc::clone(&app.context),
        draws: app.draws.clone(),
    };
    SocketState: app => Self {
        store: app.parts.store.clone(),
        hub: Arc::clone(&app.parts.hub),
        sessions: app.parts.sessions.clone(),
        metrics: Arc::clone(&app.parts.metrics),
        views: app.views.clone(),
        pages: PageState::from_ref(app),
        stop: app.stop.clone(),
    };
}
