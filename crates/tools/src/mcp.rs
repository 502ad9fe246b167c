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
    /// Id of the MCP server. It neither contains `__` nor ends with `_`, so that the name of a tool
    /// identifies its server.
    pub id: String,
    /// Transport over which the MCP server is reached.
    pub transport: ServerTransport,
    /// Timeout of the MCP server's start, and of each call of its tools.
    pub time_limit: Duration,
    /// Names of environment variables that the configuration of the MCP server requires but that
    /// are not set.
    pub missing: Vec<String>,
}

/// Transport over which an MCP server is reached.
#[derive(Clone)]
pub enum ServerTransport {
    /// The MCP server is a program that Callboard starts and talks to over its stdin and stdout.
    Program {
        /// Program of the MCP server and its arguments.
        command: Vec<String>,
        /// Folder in which the program of the MCP server runs.
        folder: PathBuf,
        /// Complete environment of the MCP server's program, as names and values.
        environment: Vec<(OsString, OsString)>,
    },
    /// The MCP server is a service that is reached over Streamable HTTP.
    Url {
        /// URL of the MCP server.
        url: String,
        /// HTTP headers of every request to the MCP server, as names and values, which may contain
        /// keys.
        headers: Vec<(String, String)>,
    },
}

/// Omits the environment and the HTTP headers of an MCP server, which may contain keys.
impl std::fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { command, .. } => f.debug_tuple("Program").field(command).finish(),
            Self::Url { url, .. } => f.debug_tuple("Url").field(url).finish(),
        }
    }
}

/// Function that stores a file to which the result of a tool call refers, and returns its hash.
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
    /// The MCP server was not started, because it has not been needed yet.
    NotStarted,
    /// The MCP server is being started.
    Starting,
    /// The tools of the MCP server can be called.
    Ready,
    /// The MCP server did not start or has exited; it is restarted when it is needed.
    Failed,
}

/// An MCP server in the response of `GET /api/mcp`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerInfo {
    /// Id of the MCP server.
    pub id: String,
    /// State of the MCP server.
    pub state: State,
    /// Names of the MCP server's tools, as agents call them.
    pub tools: Vec<String>,
    /// Last error of the MCP server; absent if there was none since its last successful start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Process id of the MCP server's program; absent while no program runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl McpServerInfo {
    /// Describes the state of the MCP server in a short text for people.
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

/// Time that an agent waits for MCP servers to start before it continues without their tools.
const START_TIMEOUT: Duration = Duration::from_secs(30);

impl McpServers {
    /// Returns the configured MCP servers without starting them. `owner` marks the environment of
    /// their programs and must be unique among the Callboard servers that run at the same time.
    pub fn new(servers: Vec<McpSettings>, owner: &str, keep: &StoreFile) -> Self {
        let server = |it| Arc::new(Server::new(it, owner, Arc::clone(keep)));
        Self { servers: servers.into_iter().map(server).collect() }
    }

    /// Returns every currently known tool of the MCP servers, in a fixed order.
    pub(crate) fn tools(&self) -> Vec<Arc<McpTool>> {
        self.servers.iter().flat_map(|it| it.tools()).collect()
    }

    pub(crate) fn find(&self, tool: &str) -> Option<Arc<McpTool>> {
        self.owner_of(tool)?.tools().into_iter().find(|it| it.name == tool)
    }

    /// Waits until it is known whether an MCP tool with this name exists, which may start its
    /// server.
    pub async fn discover(&self, tool: &str) {
        if self.may_offer(tool)
            && let Some(server) = self.owner_of(tool)
        {
            let _ = server.connected().await;
        }
    }

    /// Returns whether connecting to the MCP server of a tool may reveal the tool or change it.
    pub fn may_offer(&self, tool: &str) -> bool {
        let Some(server) = self.owner_of(tool) else { return false };
        !server.is_settled() || self.find(tool).is_none() && server.may_try_again()
    }

    /// Returns the error of the MCP server to which a tool that was not found belongs by its name.
    /// `None` if there is no such server or it has no error.
    pub fn why_missing(&self, tool: &str) -> Option<ErrorInfo> {
        self.owner_of(tool)?.why_unusable()
    }

    /// Returns a future that waits for the tools of the selected MCP servers, up to a timeout.
    /// `None` if there is nothing to wait for.
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

    /// Connects to all MCP servers, including those that were not needed yet.
    pub async fn try_all(&self) {
        join_all(self.servers.iter().map(|it| it.connected())).await;
    }

    /// Returns the states of all MCP servers.
    pub fn infos(&self) -> Vec<McpServerInfo> {
        self.servers.iter().map(|it| it.info()).collect()
    }

    /// Closes the connections to all MCP servers and waits until their programs have ended. No
    /// program is started after this.
    pub async fn stop(&self) {
        join_all(self.servers.iter().map(|it| it.stop())).await;
    }

    fn owner_of(&self, tool: &str) -> Option<&Arc<Server>> {
        let id = server_of(tool)?;
        self.servers.iter().find(|it| it.settings.id == id)
    }
}
