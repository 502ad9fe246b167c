//! MCP server over streamable HTTP that offers Callboard's own tools to the programs that it runs.
//!
//! It listens on a separate loopback port, independent of the public address, and requires a pass
//! (`passes.rs`). Requests need no handshake. The only state between requests are the pending calls,
//! which can be cancelled.

mod calling;
mod message;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::auth::hosts::Hosts;
use crate::error::{HttpError, RequestCode};
use crate::listener;
use message::{Message, failure, success};
use runtime::Sessions;
use runtime::passes::{Holder, PATH, Passes};

/// Supported versions of the MCP protocol, the newest first. Their differences do not affect this
/// server.
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
/// Description of Callboard's MCP server, for programs that let the model search for tools.
const INSTRUCTIONS: &str = "Tools of Callboard, the server that runs this conversation: list the other \
                            agents, send one of them a question or a task, and leave notes for the \
                            people who read the conversation.";
const PARSE_ERROR: i32 = -32700;
const METHOD_NOT_FOUND: i32 = -32601;

/// State of the MCP server for programs, shared by all requests to it.
#[derive(Clone)]
pub struct ProgramMcp {
    sessions: Sessions,
    passes: Arc<Passes>,
    hosts: Arc<Hosts>,
    /// Sender that is dropped with the last connection to the MCP server.
    _alive: mpsc::Sender<()>,
}

impl ProgramMcp {
    /// Binds a loopback port at which programs reach Callboard's MCP server.
    pub async fn bind() -> std::io::Result<TcpListener> {
        TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    pub async fn serve(
        listener: TcpListener,
        sessions: Sessions,
        passes: Arc<Passes>,
        stopping: watch::Receiver<bool>,
    ) -> std::io::Result<()> {
        let hosts = Arc::new(Hosts::new(listener.local_addr()?, None));
        let (alive, all_gone) = mpsc::channel(1);
        let app = Self { sessions, passes, hosts, _alive: alive };
        let router = Router::new()
            .route(PATH, post(answer))
            .layer(from_fn_with_state(app.clone(), check_pass))
            .with_state(app);
        listener::serve(listener, router, stopping, all_gone).await;
        Ok(())
    }

    /// Checks the pass in a program's request and returns the process to which the pass belongs.
    /// Requests with headers of browsers are refused, because programs are not browsers.
    fn admit(&self, headers: &HeaderMap) -> Result<Arc<Holder>, HttpError> {
        let text = |name| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
        if !self.hosts.is_ours(text(HOST)) {
            let message = "use the address that Callboard gave to the program";
            return Err(HttpError::new(RequestCode::ForbiddenHost, message));
        }
        if headers.contains_key(ORIGIN) || headers.contains_key("sec-fetch-site") {
            let message = "these tools are for programs, not for web pages";
            return Err(HttpError::new(RequestCode::ForbiddenOrigin, message));
        }
        let holder =
            text(AUTHORIZATION).strip_prefix("Bearer ").and_then(|it| self.passes.holder(it));
        holder.ok_or_else(|| {
            let message = "send the token of a program that Callboard has started and that still runs, as \
                           'Authorization: Bearer TOKEN'";
            HttpError::new(RequestCode::Unauthorized, message)
        })
    }
}

async fn check_pass(State(app): State<ProgramMcp>, mut request: Request, next: Next) -> Response {
    match app.admit(request.headers()) {
        Ok(holder) => {
            request.extensions_mut().insert(holder);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

async fn answer(
    State(app): State<ProgramMcp>,
    Extension(holder): Extension<Arc<Holder>>,
    body: Bytes,
) -> Response {
    let Ok(Message { id, method, params }) = serde_json::from_slice(&body) else {
        let why = "The body is not a JSON-RPC message.";
        return (StatusCode::BAD_REQUEST, Json(failure(&Value::Null, PARSE_ERROR, why)))
            .into_response();
    };
    match (method.as_deref(), id) {
        (Some("notifications/cancelled"), None) => {
            holder.cancel(&params["requestId"].to_string());
            StatusCode::ACCEPTED.into_response()
        }
        // Other notifications need no action, and this server sends no requests that could be
        // answered.
        (_, None) | (None, _) => StatusCode::ACCEPTED.into_response(),
        (Some("tools/call"), Some(id)) => calling::start(app.sessions, &holder, id, &params),
        (Some(method), Some(id)) => Json(app.about(method, &id, &params)).into_response(),
    }
}

impl ProgramMcp {
    /// Returns the response to a request about the MCP server itself, which needs no session.
    fn about(&self, method: &str, id: &Value, params: &Value) -> Value {
        match method {
            "initialize" => success(id, handshake(params)),
            "ping" => success(id, json!({})),
            "tools/list" => {
                let tools = self.sessions.program_tools().map(|it| {
                    json!({ "name": it.name, "description": it.description, "inputSchema": it.parameters })
                });
                success(id, json!({ "tools": tools.collect::<Vec<_>>() }))
            }
            other => failure(id, METHOD_NOT_FOUND, &format!("There is no method {other:?} here.")),
        }
    }
}

fn handshake(params: &Value) -> Value {
    let wanted = params["protocolVersion"].as_str();
    let version = VERSIONS.into_iter().find(|it| Some(*it) == wanted).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "callboard", "version": env!("CARGO_PKG_VERSION") },
        "instructions": INSTRUCTIONS,
    })
}
