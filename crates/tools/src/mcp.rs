//! MCP servers: programs and services that provide tools.
//!
//! A server is started when its tools are first needed, stays running, and is restarted when it has exited
//! and is needed. Its tools get names of the form `server__tool`. Its output is untrusted: names, schemas and
//! results are cut to sizes that a model and a page can handle.

mod connection;
mod content;
mod names;
mod notifications;
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

/// Configuration of an MCP server.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// Id of the server. Neither contains `__` nor ends with `_`, so that a tool's name identifies the server.
    pub id: String,
    /// How the server is reached.
    pub transport: ServerTransport,
    /// Timeout of the start, and of each call.
    pub time_limit: Duration,
    /// Required environment variables that are not set.
    pub missing: Vec<String>,
}

/// How a server is reached.
#[derive(Clone)]
pub enum ServerTransport {
    /// A program that the server starts, over its stdin and stdout.
    Program {
        /// Program and arguments.
        command: Vec<String>,
        /// Folder in which it runs.
        folder: PathBuf,
        /// Complete environment of the program.
        environment: Vec<(OsString, OsString)>,
    },
    /// Streamable HTTP.
    Url {
        /// Address of the server.
        url: String,
        /// Headers of every request, which may contain keys.
        headers: Vec<(String, String)>,
    },
}

/// Omits everything that may contain keys.
impl std::fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { command, .. } => f.debug_tuple("Program").field(command).finish(),
            Self::Url { url, .. } => f.debug_tuple("Url").field(url).finish(),
        }
    }
}

/// Stores a file that results refer to, and returns its hash.
pub type StoreFile =
    Arc<dyn Fn(Vec<u8>) -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// All configured MCP servers.
#[derive(Clone, Default)]
pub struct McpServers {
    servers: Arc<[Arc<Server>]>,
}

/// State of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The server has not been needed yet.
    NotStarted,
    /// The server is being started.
    Starting,
    /// The server's tools can be called.
    Ready,
    /// The server did not start or has exited; it is restarted when it is needed.
    Failed,
}

/// An MCP server in the response of `GET /api/mcp`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerInfo {
    /// Id of the server.
    pub id: String,
    /// State of the server.
    pub state: State,
    /// Names of its tools, as agents call them.
    pub tools: Vec<String>,
    /// The last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Process id of the program, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl McpServerInfo {
    /// Returns the state as a short text for people.
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

/// Time that an agent waits for servers before it continues without their tools.
const START_TIMEOUT: Duration = Duration::from_secs(30);

impl McpServers {
    /// Returns the servers, none of them started. `owner` marks the environment of their programs and must be
    /// unique among the Callboard servers that run at the same time.
    pub fn new(servers: Vec<McpSettings>, owner: &str, keep: &StoreFile) -> Self {
        let server = |it| Arc::new(Server::new(it, owner, Arc::clone(keep)));
        Self { servers: servers.into_iter().map(server).collect() }
    }

    /// Returns every tool that is currently known, in a fixed order.
    pub(crate) fn tools(&self) -> Vec<Arc<McpTool>> {
        self.servers.iter().flat_map(|it| it.tools()).collect()
    }

    pub(crate) fn find(&self, tool: &str) -> Option<Arc<McpTool>> {
        self.owner_of(tool)?.tools().into_iter().find(|it| it.name == tool)
    }

    /// Resolves when it is known whether the tool exists, which may start its server.
    pub async fn discover(&self, tool: &str) {
        if self.may_offer(tool)
            && let Some(server) = self.owner_of(tool)
        {
            let _ = server.connected().await;
        }
    }

    /// Returns whether connecting to the server may change what is known of the tool.
    pub fn may_offer(&self, tool: &str) -> bool {
        let Some(server) = self.owner_of(tool) else { return false };
        !server.is_settled() || self.find(tool).is_none() && server.may_try_again()
    }

    /// Returns why a tool is missing that its server may have.
    pub fn why_missing(&self, tool: &str) -> Option<ErrorInfo> {
        self.owner_of(tool)?.why_unusable()
    }

    /// Waits for the tools of these servers, up to a timeout. `None` if there is nothing to wait for.
    pub fn wait_until_ready(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Option<BoxFuture<'static, ()>> {
        let wanted = self.servers.iter().filter(|it| is_wanted(&it.settings.id));
        let (settled, unsettled): (Vec<_>, Vec<_>) =
            wanted.cloned().partition(|it| it.is_settled());
        // A failed server is retried in the background.
        for server in settled.into_iter().filter(|it| it.may_try_again()) {
            tokio::spawn(async move { server.connected().await.map(drop) });
        }
        if unsettled.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            let all = join_all(unsettled.iter().map(|it| it.connected()));
            let _ = timeout(START_TIMEOUT, all).await;
        }))
    }

    /// Connects to all servers, including those that were not needed yet.
    pub async fn try_all(&self) {
        join_all(self.servers.iter().map(|it| it.connected())).await;
    }

    /// Returns the states of all servers.
    pub fn infos(&self) -> Vec<McpServerInfo> {
        self.servers.iter().map(|it| it.info()).collect()
    }

    /// Ends all programs and waits for their end. No program is started after this.
    pub async fn stop(&self) {
        join_all(self.servers.iter().map(|it| it.stop())).await;
    }

    fn owner_of(&self, tool: &str) -> Option<&Arc<Server>> {
        let id = server_of(tool)?;
        self.servers.iter().find(|it| it.settings.id == id)
    }
}
