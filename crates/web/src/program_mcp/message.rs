//! JSON-RPC messages of MCP.

use serde::Deserialize;
use serde_json::{Value, json};

/// A JSON-RPC message of a program: a notification if it has no `id`, a response if it has no
/// `method`.
#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) id: Option<Value>,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Value,
}

pub(super) fn success(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(super) fn failure(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

pub(super) fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}
