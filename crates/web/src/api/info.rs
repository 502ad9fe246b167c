//! Agents, tools, MCP servers, and the health check.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{HttpError, RequestCode};
use runtime::agents::tool_catalog::{McpServerInfo, ToolCatalog, ToolSpec};
use runtime::agents::{AgentCatalog, AgentInfo};
use store::Store;

pub(crate) async fn healthz(State(store): State<Store>) -> Result<Response, HttpError> {
    // This route is public, so it does not name the folder.
    let lost =
        "the data folder was removed or replaced, so nothing can be stored; the log says more";
    match store.check_files() {
        Ok(()) => Ok("ok".into_response()),
        Err(_) => Err(HttpError::new(RequestCode::Storage, lost)),
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct AgentList {
    agents: Vec<AgentInfo>,
}

pub(crate) async fn agents(State(agents): State<AgentCatalog>) -> Json<AgentList> {
    Json(AgentList { agents: agents.infos() })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ToolList {
    tools: Vec<ToolSpec>,
}

/// Responds with the list of the built-in tools and the currently known tools of MCP servers.
pub(crate) async fn tools(State(tools): State<ToolCatalog>) -> Json<ToolList> {
    Json(ToolList { tools: tools.specs() })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct McpServerList {
    servers: Vec<McpServerInfo>,
}

pub(crate) async fn mcp_servers(State(tools): State<ToolCatalog>) -> Json<McpServerList> {
    Json(McpServerList { servers: tools.mcp_servers() })
}
