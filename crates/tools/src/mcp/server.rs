//! One MCP server: started when it is needed, called, and restarted when it has exited.
//!
//! Concurrent callers wait for the same start. After a failed start the next one waits with exponential
//! backoff; a server that exits later is restarted immediately.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backends::ToolOutcome;
use rmcp::ServiceError;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use transcript::{ErrorCode, ErrorInfo, OutputStream};

use super::connection::{Connection, RunningCall, describe};
use super::tool::{McpTool, read_list};
use super::{McpServerInfo, McpSettings, State, StoreFile, content};
use crate::processes::Mark;
use crate::{ToolContext, ToolEvent, failed, interrupted};

/// Backoff after the first failed start of an MCP server: doubled after each further failure, up to
/// [`MAX_PAUSE`].
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Number of bytes of progress lines after which no more progress of an MCP tool call is reported.
const MAX_PROGRESS: u64 = 64 * 1024;

/// An MCP server with its connection and tools.
pub(super) struct Server {
    pub(super) settings: McpSettings,
    mark: Mark,
    keep: StoreFile,
    known: Mutex<Known>,
    /// The current connection to the MCP server, if any. Locked while it is opened, so that
    /// concurrent callers wait for the same start.
    current: tokio::sync::Mutex<Option<Arc<Connection>>>,
    stopping: watch::Sender<bool>,
}

struct Known {
    state: State,
    tools: Vec<Arc<McpTool>>,
    error: Option<String>,
    connection: Option<Arc<Connection>>,
    /// Number of consecutive failed starts of the MCP server.
    failures: u32,
    not_before: Option<Instant>,
}

/// Reason why an MCP tool call has no result.
enum Failure {
    /// The tool call was stopped. If it was sent already, the MCP server was notified.
    Stopped,
    /// The MCP server has lost Callboard's MCP session and has not run the tool call.
    SessionLost,
    Error(ErrorInfo),
}

impl Server {
    pub(super) fn new(settings: McpSettings, owner: &str, keep: StoreFile) -> Self {
        Self {
            mark: Mark::of_mcp_server(&format!("{} of {owner}", settings.id)),
            settings,
            keep,
            known: Mutex::new(Known {
                state: State::NotStarted,
                tools: Vec::new(),
                error: None,
                connection: None,
                failures: 0,
                not_before: None,
            }),
            current: tokio::sync::Mutex::default(),
            stopping: watch::Sender::new(false),
        }
    }

    /// Returns the tools that the MCP server listed last. They stay when it exits, because the next
    /// tool call restarts it.
    pub(super) fn tools(&self) -> Vec<Arc<McpTool>> {
        self.known().tools.clone()
    }

    pub(super) fn info(&self) -> McpServerInfo {
        let known = self.known();
        let open = known.connection.as_ref().filter(|it| it.is_open());
        McpServerInfo {
            id: self.settings.id.clone(),
            state: known.state,
            tools: known.tools.iter().map(|it| it.name.clone()).collect(),
            error: known.error.clone(),
            pid: open.and_then(|it| it.pid()),
        }
    }

    /// Returns whether waiting for the MCP server would not change its known tools.
    pub(super) fn is_settled(&self) -> bool {
        let known = self.known();
        match known.state {
            State::NotStarted => false,
            State::Starting => known.failures > 0 || !known.tools.is_empty(),
            State::Ready => known.connection.as_ref().is_none_or(|it| !it.tools_changed()),
            State::Failed => true,
        }
    }

    pub(super) fn may_try_again(&self) -> bool {
        let known = self.known();
        known.state == State::Failed && known.not_before.is_none_or(|it| it <= Instant::now())
    }

    pub(super) fn why_unusable(&self) -> Option<ErrorInfo> {
        let error = self.known().error.clone();
        error.map(|it| self.unusable(&it))
    }

    /// Returns the connection to the MCP server, opening it and listing its tools if needed.
    /// Opening continues even if the caller is dropped.
    pub(super) async fn connected(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let this = Arc::clone(self);
        let opening = tokio::spawn(async move { this.connect().await });
        opening.await.unwrap_or_else(|_| Err("its start broke down".to_owned()))
    }

    async fn connect(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let mut current = self.current.lock().await;
        if let Some(connection) = current.as_ref().filter(|it| it.is_open()) {
            if connection.tools_changed() {
                self.read_tools(connection).await?;
            }
            return Ok(Arc::clone(connection));
        }
        if let Some(lost) = current.take() {
            lost.end().await;
        }
        self.mark_starting()?;
        match self.open().await {
            Ok(connection) => {
                *current = Some(Arc::clone(&connection));
                tokio::spawn(Arc::clone(self).watch(Arc::clone(&connection)));
                Ok(connection)
            }
            Err(why) => {
                tracing::warn!(server = self.settings.id, error = why, "an MCP server failed");
                self.note_failure(&why);
                Err(why)
            }
        }
    }

    /// Sets the state of the MCP server to `Starting`, or fails if it must not be started now.
    fn mark_starting(&self) -> Result<(), String> {
        let missing = &self.settings.missing;
        let mut known = self.known();
        let pause = known.not_before.map(|it| it.saturating_duration_since(Instant::now()));
        let problem = match pause {
            _ if self.is_stopping() => Some("Callboard is stopping".to_owned()),
            _ if !missing.is_empty() => Some(format!(
                "{} is not set. Set it, then start Callboard again",
                missing.join(", ")
            )),
            Some(pause) if !pause.is_zero() => Some(format!(
                "{}. It is tried again in {} seconds at the earliest",
                known.error.clone().unwrap_or_default(),
                pause.as_secs() + 1
            )),
            _ => None,
        };
        match problem {
            Some(why) => {
                known.state = State::Failed;
                known.error.get_or_insert_with(|| why.clone());
                Err(why)
            }
            None => {
                known.state = State::Starting;
                Ok(())
            }
        }
    }

    async fn open(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let stopping = self.stopping.subscribe();
        let connection = Connection::open(&self.settings, &self.mark, stopping).await?;
        let connection = Arc::new(connection);
        if let Err(why) = self.read_tools(&connection).await {
            connection.end().await;
            return Err(why);
        }
        let mut known = self.known();
        known.state = State::Ready;
        known.connection = Some(Arc::clone(&connection));
        (known.error, known.failures, known.not_before) = (None, 0, None);
        let n_tools = known.tools.len();
        drop(known);
        tracing::info!(server = self.settings.id, tools = n_tools, "an MCP server is ready");
        Ok(connection)
    }

    async fn read_tools(self: &Arc<Self>, connection: &Connection) -> Result<(), String> {
        let limit = self.settings.time_limit;
        let mut stopping = self.stopping.subscribe();
        let listed = tokio::select! {
            listed = timeout(limit, connection.list_tools()) => listed,
            _ = stopping.wait_for(|it| *it) => return Err("Callboard is stopping".to_owned()),
        };
        let listed = listed.unwrap_or_else(|_| {
            Err(format!("it did not list its tools within {} seconds", limit.as_secs()))
        })?;
        let tools = read_list(&self.settings.id, &listed, &Arc::downgrade(self));
        self.known().tools = tools.into_iter().map(Arc::new).collect();
        Ok(())
    }

    fn note_failure(&self, why: &str) {
        let mut known = self.known();
        known.failures += 1;
        let pause = PAUSE.saturating_mul(1 << (known.failures - 1).min(16)).min(MAX_PAUSE);
        known.not_before = Some(Instant::now() + pause);
        known.state = State::Failed;
        known.error = Some(why.to_owned());
    }

    /// Waits until the connection is lost, and then marks the MCP server as failed.
    async fn watch(self: Arc<Self>, connection: Arc<Connection>) {
        let why = connection.lost().await;
        let mut known = self.known();
        let is_ours = known.connection.as_ref().is_some_and(|it| Arc::ptr_eq(it, &connection));
        if is_ours && known.state == State::Ready && !self.is_stopping() {
            tracing::warn!(server = self.settings.id, error = why, "an MCP server was lost");
            known.state = State::Failed;
            known.error = Some(why);
        }
    }

    /// Ends the connection to the MCP server and aborts a start in progress.
    pub(super) async fn stop(&self) {
        self.stopping.send_replace(true);
        if let Some(connection) = self.current.lock().await.take() {
            connection.end().await;
        }
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unusable(&self, why: &str) -> ErrorInfo {
        let message = format!("The MCP server '{}' cannot be used: {why}.", self.settings.id);
        ErrorInfo::new(ErrorCode::ToolFailed, message)
    }
}

impl McpTool {
    pub(crate) fn time_limit(&self) -> Duration {
        self.server.upgrade().map(|it| it.settings.time_limit).unwrap_or_default()
    }

    /// Runs a tool call on the MCP server and returns its outcome, soon after the stop signal at
    /// the latest.
    pub(crate) async fn call(
        &self,
        arguments: Map<String, Value>,
        context: &ToolContext,
    ) -> ToolOutcome {
        let Some(server) = self.server.upgrade() else { return failed(interrupted()) };
        let mut outcome = self.try_call(&server, &arguments, context).await;
        if let Err(Failure::SessionLost) = outcome {
            outcome = self.try_call(&server, &arguments, context).await;
        }
        match outcome {
            Ok(answer) => content::outcome(answer, &server.keep).await,
            Err(Failure::Stopped) => failed(interrupted()),
            Err(Failure::SessionLost) => failed(server.unusable("it forgets who we are")),
            Err(Failure::Error(error)) => failed(error),
        }
    }

    async fn try_call(
        &self,
        server: &Arc<Server>,
        arguments: &Map<String, Value>,
        context: &ToolContext,
    ) -> Result<Value, Failure> {
        let connection = tokio::select! {
            connected = server.connected() => connected,
            () = context.stopped.wait() => return Err(Failure::Stopped),
        };
        let connection = connection.map_err(|why| Failure::Error(server.unusable(&why)))?;
        let call = connection.call(&self.own_name, arguments.clone()).await;
        let answer = match call {
            Ok(call) => follow(call, context).await?,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(classify(server, &connection, &error).await),
        }
    }
}

/// Reports the progress of an MCP tool call, and waits for its result or its stop signal.
async fn follow(
    mut call: RunningCall,
    context: &ToolContext,
) -> Result<Result<Value, ServiceError>, Failure> {
    let mut offset = 0;
    loop {
        tokio::select! {
            biased;
            Some(line) = call.progress.recv(), if offset < MAX_PROGRESS => {
                let length = line.len() as u64;
                let stream = OutputStream::Stdout;
                context.report(ToolEvent::Output { stream, offset, delta: line }).await;
                offset += length;
            }
            answer = &mut call.handle.rx => {
                let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
                return Ok(answer.map(|it| serde_json::to_value(it).unwrap_or_default()));
            }
            () = context.stopped.wait() => {
                let _ = call.handle.cancel(Some("nobody waits for it any more".to_owned())).await;
                return Err(Failure::Stopped);
            }
        }
    }
}

/// Classifies an error of an MCP tool call, and marks the connection as closed if it is unusable.
async fn classify(server: &Server, connection: &Connection, error: &ServiceError) -> Failure {
    match error {
        // Not all servers answer 404 for a session that they have lost.
        ServiceError::McpError(error)
            if connection.is_http()
                && (-32099..=-32000).contains(&error.code.0)
                && error.message.to_ascii_lowercase().contains("session") =>
        {
            connection.mark_closed();
            Failure::SessionLost
        }
        ServiceError::McpError(error) => {
            Failure::Error(ErrorInfo::new(ErrorCode::ToolError, error.message.to_string()))
        }
        ServiceError::TransportClosed if !connection.is_http() => {
            Failure::Error(server.unusable(&connection.lost().await))
        }
        error => {
            connection.mark_closed();
            Failure::Error(server.unusable(&describe(error)))
        }
    }
}
