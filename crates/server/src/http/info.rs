//! What there is: agents, tools, and whether the server is alive.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::App;
use crate::agents::AgentInfo;
use crate::tools::{ToolSpec, Tools};

pub(super) async fn healthz() -> Response {
    "ok".into_response()
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

pub(super) async fn tools() -> Json<ToolList> {
    Json(ToolList { tools: Tools::specs() })
}
