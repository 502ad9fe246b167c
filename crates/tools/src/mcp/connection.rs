//! An open connection to an MCP server: over the pipes of a program, or over HTTP.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
    Implementation, ListToolsRequest, PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RunningService};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::{Peer, RoleClient, ServiceError, serve_client};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::timeout;

use super::notifications::{Notifications, WatchedTransport};
use super::process::Process;
use super::tool::MAX_TOOLS;
use super::{McpSettings, ServerTransport};
use crate::processes::Mark;

/// Maximum size in bytes of one message of an MCP server.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
const MAX_PAGES: usize = 50;
const CONNECT: Duration = Duration::from_secs(15);
/// Timeout of closing the connection to an MCP server.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of attempts to resume a broken HTTP stream of an MCP server before its tool call fails.
const RECONNECTS: usize = 4;

/// An open connection to an MCP server.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    service: Mutex<RunningService<RoleClient, ClientConfig>>,
    notifications: Arc<Notifications>,
    process: Option<Process>,
}

/// A tool call in progress on an MCP server.
pub(super) struct RunningCall {
    pub(super) handle: RequestHandle<RoleClient>,
    pub(super) progress: mpsc::Receiver<String>,
}

impl Connection {
    /// Connects to an MCP server. The error completes the sentence "The MCP server 'x' ...: ".
    pub(super) async fn open(
        settings: &McpSettings,
        mark: &Mark,
        stopping: watch::Receiver<bool>,
    ) -> Result<Self, String> {
        let notifications = Notifications::new();
        match &settings.transport {
            ServerTransport::Program { command, folder, environment } => {
                let started = Process::start(command, folder, environment, mark.clone()).await;
                let (process, (stdout, stdin)) = started?;
                let stdout =
                    Bounded { pipe: stdout, line: 0, notifications: Arc::clone(&notifications) };
                let transport =
                    AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(usize::MAX);
                match handshake(transport, &notifications, settings.time_limit, stopping).await {
                    Ok(service) => Ok(Self::new(service, notifications, Some(process))),
                    Err(why) => {
                        let mut reasons = vec![why];
                        reasons.extend(process.exit_reasons().await);
                        process.end().await;
                        Err(reasons.join("; "))
                    }
                }
            }
            ServerTransport::Url { url, headers } => {
                let transport = http_transport(url, headers)?;
                let service =
                    handshake(transport, &notifications, settings.time_limit, stopping).await?;
                Ok(Self::new(service, notifications, None))
            }
        }
    }

    fn new(
        service: RunningService<RoleClient, ClientConfig>,
        notifications: Arc<Notifications>,
        process: Option<Process>,
    ) -> Self {
        Self { peer: service.peer().clone(), service: Mutex::new(service), notifications, process }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.notifications.is_closed() && !self.peer.is_transport_closed()
    }

    /// Marks the connection to the MCP server as unusable.
    pub(super) fn mark_closed(&self) {
        self.notifications.close();
    }

    pub(super) fn tools_changed(&self) -> bool {
        self.notifications.tools_changed()
    }

    pub(super) fn is_http(&self) -> bool {
        self.process.is_none()
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref()?.pid
    }

    /// Requests all pages of the MCP server's list of tools, up to a maximum number of pages and
    /// tools.
    pub(super) async fn list_tools(&self) -> Result<Vec<Value>, String> {
        self.notifications.clear_tools_changed();
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = self.peer.send_request(request).await.map_err(|error| describe(&error))?;
            let mut page = serde_json::to_value(page).unwrap_or_default();
            let Value::Array(listed) = page["tools"].take() else {
                return Err("its list of tools is none".to_owned());
            };
            tools.extend(listed);
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() || tools.len() > MAX_TOOLS {
                break;
            }
        }
        Ok(tools)
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<RunningCall, ServiceError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let handle = self.peer.send_request_with_option(request, options).await?;
        let progress = self.notifications.progress(&handle.progress_token);
        Ok(RunningCall { handle, progress })
    }

    /// Waits until the connection to the MCP server is closed, and returns the reason.
    pub(super) async fn lost(&self) -> String {
        self.notifications.closed().await;
        if let Some(why) = self.notifications.failure() {
            return why;
        }
        let mut reasons = match &self.process {
            Some(process) => process.exit_reasons().await,
            None => Vec::new(),
        };
        if reasons.is_empty() {
            reasons.push("the connection was closed".to_owned());
        }
        reasons.join("; ")
    }

    pub(super) async fn end(&self) {
        self.notifications.close();
        let _ = self.service.lock().await.close_with_timeout(CLOSE_TIMEOUT).await;
        if let Some(process) = &self.process {
            process.end().await;
        }
    }
}

/// Describes an error of a request to an MCP server for a person or a model.
pub(super) fn describe(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("it answered with an error: {}", error.message),
        ServiceError::TransportSend(error) => innermost(&*error.error),
        ServiceError::TransportClosed => "the connection was closed".to_owned(),
        ServiceError::UnexpectedResponse => "its answer makes no sense".to_owned(),
        error => innermost(error),
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

async fn handshake(
    transport: impl Transport<RoleClient> + 'static,
    notifications: &Arc<Notifications>,
    limit: Duration,
    mut stopping: watch::Receiver<bool>,
) -> Result<RunningService<RoleClient, ClientConfig>, String> {
    let us = Implementation::new("callboard", env!("CARGO_PKG_VERSION"));
    let config = ClientConfig::new(ClientCapabilities::default(), us)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
    let transport = WatchedTransport { transport, notifications: Arc::clone(notifications) };
    let served = tokio::select! {
        served = timeout(limit, serve_client(config, transport)) => served,
        _ = stopping.wait_for(|it| *it) => return Err("Callboard is stopping".to_owned()),
    };
    match served {
        Ok(Ok(service)) => Ok(service),
        Ok(Err(error)) => Err(format!("it cannot be spoken with: {}", innermost(&error))),
        Err(_) => Err(format!("it did not answer within {} seconds", limit.as_secs())),
    }
}

/// Returns the HTTP transport to an MCP server. It follows no redirects, because headers may
/// contain keys for one host.
fn http_transport(
    url: &str,
    headers: &[(String, String)],
) -> Result<impl Transport<RoleClient> + use<>, String> {
    let mut default_headers = HeaderMap::new();
    for (name, value) in headers {
        let pair = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, mut value) =
            pair.ok_or_else(|| format!("the header {name:?} cannot be sent"))?;
        value.set_sensitive(true);
        default_headers.insert(name, value);
    }
    let client = crate::http_client_builder()
        .user_agent(concat!("callboard/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .default_headers(default_headers)
        .build()
        .map_err(|error| innermost(&error))?;
    let mut reconnects = ExponentialBackoff::default();
    reconnects.max_times = Some(RECONNECTS);
    reconnects.base_duration = Duration::from_millis(250);
    let mut config =
        StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(MAX_MESSAGE);
    config.retry_config = Arc::new(reconnects);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Reader of an MCP server's stdout that fails when a line is longer than [`MAX_MESSAGE`], instead
/// of waiting for the end of the line.
struct Bounded<R> {
    pipe: R,
    /// Number of bytes read so far of the incomplete line of the MCP server's stdout.
    line: usize,
    notifications: Arc<Notifications>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.pipe).poll_read(cx, buf))?;
        let new = &buf.filled()[before..];
        self.line = match new.iter().rposition(|it| *it == b'\n') {
            Some(end) => new.len() - end - 1,
            None => self.line + new.len(),
        };
        if self.line <= MAX_MESSAGE {
            return Poll::Ready(Ok(()));
        }
        let why = format!("it said more than {} MiB at once", MAX_MESSAGE >> 20);
        self.notifications.fail(&why);
        Poll::Ready(Err(io::Error::other(why)))
    }
}
