//! MCP servers: programs and services that bring tools of their own.
//!
//! A server is started when its tools are first needed, stays, and is started again when it has died
//! and is needed. Its tools are known by names of ours, `server__tool`. What it says is untrusted:
//! names, schemas and results are cut to what a model and a page can take.

mod connection;
mod content;
mod heard;
mod names;
mod process;
mod server;
mod tool;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::timeout;
use transcript::ErrorInfo;

pub use self::names::{is_server_id, server_of};
use self::server::Server;
pub(crate) use self::tool::McpTool;

/// A server as it is configured.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// Neither holds `__` nor ends with `_`, so that a tool's name says whose it is.
    pub id: String,
    pub transport: ServerTransport,
    /// For the start, and for each call.
    pub time_limit: Duration,
    /// Variables that it needs and that are not set.
    pub missing: Vec<String>,
}

/// How a server is reached.
#[derive(Clone)]
pub enum ServerTransport {
    /// A program that we start, spoken with over its stdin and stdout.
    Program { command: Vec<String>, folder: PathBuf, environment: Vec<(OsString, OsString)> },
    /// Streamable HTTP.
    Url { url: String, headers: Vec<(String, String)> },
}

/// Without what may hold keys.
impl std::fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { command, .. } => f.debug_tuple("Program").field(command).finish(),
            Self::Url { url, .. } => f.debug_tuple("Url").field(url).finish(),
        }
    }
}

/// Puts a file where results can name it; gives its hash.
pub type StoreFile =
    Arc<dyn Fn(Vec<u8>) -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// All servers that are configured.
#[derive(Clone, Default)]
pub struct McpServers {
    servers: Arc<[Arc<Server>]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    NotStarted,
    Starting,
    Ready,
    /// It did not start, or it has died; it is started again when it is needed.
    Failed,
}

/// A server as `GET /api/mcp` shows it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerInfo {
    pub id: String,
    pub state: State,
    /// The names of its tools, as agents call them.
    pub tools: Vec<String>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Of the program, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl McpServerInfo {
    pub fn in_words(&self) -> String {
        match (self.state, self.tools.len()) {
            (State::NotStarted, _) => "not started: nobody needed it yet".to_owned(),
            (State::Starting, _) => "starting".to_owned(),
            (State::Ready, 1) => "ready, 1 tool".to_owned(),
            (State::Ready, n) => format!("ready, {n} tools"),
            (State::Failed, _) => "failed; started again when it is needed".to_owned(),
        }
    }
}

/// How long an agent waits for servers before it goes on without their tools.
const PATIENCE: Duration = Duration::from_secs(30);

impl McpServers {
    /// `owner` is found in the environment of the programs: no two that run at a time may have the same.
    pub fn new(servers: Vec<McpSettings>, owner: &str, keep: &StoreFile) -> Self {
        let server = |it| Arc::new(Server::new(it, owner, Arc::clone(keep)));
        Self { servers: servers.into_iter().map(server).collect() }
    }

    /// Every tool that is known now, in a fixed order.
    pub(crate) fn tools(&self) -> Vec<Arc<McpTool>> {
        self.servers.iter().flat_map(|it| it.tools()).collect()
    }

    pub(crate) fn find(&self, tool: &str) -> Option<Arc<McpTool>> {
        self.owner_of(tool)?.tools().into_iter().find(|it| it.name == tool)
    }

    /// Ends when it is known whether there is such a tool, which may take a start.
    pub async fn discover(&self, tool: &str) {
        if self.may_bring(tool)
            && let Some(server) = self.owner_of(tool)
        {
            let _ = server.connected().await;
        }
    }

    /// Whether what is known of the tool may change with the next look.
    pub fn may_bring(&self, tool: &str) -> bool {
        let Some(server) = self.owner_of(tool) else { return false };
        !server.is_settled() || self.find(tool).is_none() && server.may_try_again()
    }

    /// Why a tool is not there that a server might have.
    pub fn why_missing(&self, tool: &str) -> Option<ErrorInfo> {
        self.owner_of(tool)?.why_unusable()
    }

    /// Ends when the tools of these servers are known, or will not be soon. None if that is so already.
    pub fn getting_ready(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Option<BoxFuture<'static, ()>> {
        let wanted = self.servers.iter().filter(|it| is_wanted(&it.settings.id));
        let (settled, unsettled): (Vec<_>, Vec<_>) =
            wanted.cloned().partition(|it| it.is_settled());
        // One that failed is given another chance, for which nobody waits.
        for server in settled.into_iter().filter(|it| it.may_try_again()) {
            tokio::spawn(async move { server.connected().await.map(drop) });
        }
        if unsettled.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            let all = join_all(unsettled.iter().map(|it| it.connected()));
            let _ = timeout(PATIENCE, all).await;
        }))
    }

    /// Tries all, also those that nobody needed yet.
    pub async fn try_all(&self) {
        join_all(self.servers.iter().map(|it| it.connected())).await;
    }

    pub fn infos(&self) -> Vec<McpServerInfo> {
        self.servers.iter().map(|it| it.info()).collect()
    }

    /// Ends all programs, and waits for it. None is started after this.
    pub async fn stop(&self) {
        join_all(self.servers.iter().map(|it| it.stop())).await;
    }

    fn owner_of(&self, tool: &str) -> Option<&Arc<Server>> {
        let id = server_of(tool)?;
        self.servers.iter().find(|it| it.settings.id == id)
    }
}
