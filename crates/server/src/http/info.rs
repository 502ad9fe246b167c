//! Agents, tools, MCP servers, and the health check.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use tools::ToolSpec;
use tools::mcp::McpServerInfo;

use super::App;
use super::error::{HttpError, RequestCode};
use crate::agents::AgentInfo;

pub(super) async fn healthz(State(app): State<App>) -> Result<Response, HttpError> {
    // This route is public, so it does not name the folder.
    let lost =
        "the data folder was removed or replaced, so nothing can be stored; the log says more";
    match app.store().check_files() {
        Ok(()) => Ok("ok".into_response()),
        Err(_) => Err(HttpError::new(RequestCode::Storage, lost)),
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct AgentList {
    agents: Vec<AgentInfo>,
}

pub(super) async fn agents(State(app): State<App>) -> Json<AgentList> {
    Json(AgentList { agents: app.shared.agents.infos() })
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ToolList {
    tools: Vec<ToolSpec>,
}

/// Lists the tools. Those of MCP servers are included as far as they are known now.
pub(super) async fn tools(State(app): State<App>) -> Json<ToolList> {
    Json(ToolList { tools: app.shared.tools.specs() })
}

#[derive(Serialize, JsonSchema)]
pub(super) struct McpServerList {
    servers: Vec<McpServerInfo>,
}

pub(super) async fn mcp_servers(State(app): State<App>) -> Json<McpServerList> {
    Json(McpServerList { servers: app.shared.tools.mcp().infos() })
}
