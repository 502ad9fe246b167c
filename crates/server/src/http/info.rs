//! What there is: agents, tools, and whether the server is alive.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::App;

pub(super) async fn healthz() -> &'static str {
    "ok"
}

pub(super) async fn agents(State(app): State<App>) -> Json<Value> {
    Json(json!({ "agents": app.shared.agents.infos() }))
}

pub(super) async fn tools(State(app): State<App>) -> Json<Value> {
    let tools: Vec<Value> = app
        .shared
        .tools
        .specs()
        .into_iter()
        .map(|spec| {
            json!({
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
            })
        })
        .collect();
    Json(json!({ "tools": tools }))
}
