//! Agents, tools, MCP servers, and the health check.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use runtime::tool_catalog::McpServerInfo;
use runtime::tool_catalog::ToolSpec;
use schemars::JsonSchema;
use serde::Serialize;

use crate::App;
use crate::error::{HttpError, RequestCode};
use runtime::agents::AgentInfo;

pub(crate) async fn healthz(State(app): State<App>) -> Result<Response, HttpError> {
    // This route is public, so it does not name the folder.
    let lost =
        "the data folder was removed or replaced, so nothing can be stored; the log says more";
    match app.store().check_files() {
        Ok(()) => Ok("ok".into_response()),
        Err(_) => Err(HttpError::new(RequestCode::Storage, lost)),
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct AgentList {
    agents: Vec<AgentInfo>,
}

pub(crate) async fn agents(State(app): State<App>) -> Json<AgentList> {
    Json(AgentList { agents: app.agents.infos() })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ToolList {
    tools: Vec<ToolSpec>,
}

/// Responds with the list of the built-in tools and the currently known tools of MCP servers.
pub(crate) async fn tools(State(app): State<App>) -> Json<ToolList> {
    Json(ToolList { tools: app.catalog.specs() })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct McpServerList {
    servers: Vec<McpServerInfo>,
}

pub(crate) async fn mcp_servers(State(app): State<App>) -> Json<McpServerList> {
    Json(McpServerList { servers: app.catalog.mcp_servers() })
}
