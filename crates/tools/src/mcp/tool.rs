//! A tool of an MCP server: its description for models and its call.

use std::sync::{Arc, Weak};

use serde_json::{Map, Value, json};

use super::names;
use super::server::Server;
use crate::arguments::Schema;

/// Maximum number of tools of one MCP server; more are ignored.
pub(super) const MAX_TOOLS: usize = 500;
const MAX_DESCRIPTION: usize = 8 * 1024;
const MAX_SCHEMA: usize = 64 * 1024;

/// A tool of an MCP server.
pub(crate) struct McpTool {
    /// Name of the tool for agents: `server__tool`.
    pub(crate) name: String,
    /// Name that the MCP server gave the tool.
    pub(super) own_name: String,
    pub(crate) description: String,
    /// JSON schema of the MCP tool's arguments, which are always an object.
    pub(crate) schema: Arc<Schema>,
    pub(super) server: Weak<Server>,
}

/// Returns the usable tools in an MCP server's list of tools, skipping invalid ones.
pub(super) fn read_list(server_id: &str, listed: &[Value], server: &Weak<Server>) -> Vec<McpTool> {
    let usable: Vec<(&str, &Value, Value)> = listed
        .iter()
        .take(MAX_TOOLS)
        .filter_map(|it| Some((it["name"].as_str()?, it, parameters(&it["inputSchema"])?)))
        .collect();
    let own_names: Vec<&str> = usable.iter().map(|(name, ..)| *name).collect();
    let names = names::names(server_id, &own_names);
    let tools: Vec<McpTool> = usable
        .iter()
        .zip(names)
        .filter_map(|((own_name, it, parameters), name)| {
            Some(McpTool {
                name: name?,
                own_name: (*own_name).to_owned(),
                description: description(it),
                schema: Schema::new(parameters.clone()),
                server: server.clone(),
            })
        })
        .collect();
    if tools.len() < listed.len() {
        let left_out = listed.len() - tools.len();
        tracing::warn!(server = server_id, left_out, "tools of an MCP server cannot be used");
    }
    tools
}

fn description(tool: &Value) -> String {
    let words = [&tool["description"], &tool["title"], &tool["annotations"]["title"]];
    let words = words.iter().find_map(|it| it.as_str()).unwrap_or_default();
    words[..words.floor_char_boundary(MAX_DESCRIPTION)].to_owned()
}

/// Returns the JSON schema of an MCP tool's arguments as providers require it: an object with
/// `type` and `properties`, even if it has no fields, and without `$schema`, which some refuse.
/// `None` for a schema of another type or one that is too large.
fn parameters(schema: &Value) -> Option<Value> {
    let mut schema: Map<String, Value> = match schema {
        Value::Object(fields) => fields.clone(),
        Value::Null => Map::new(),
        _ => return None,
    };
    schema.remove("$schema");
    let kind = schema.entry("type").or_insert(json!("object"));
    let is_object = kind == "object";
    schema.entry("properties").or_insert(json!({}));
    let schema = Value::Object(schema);
    (is_object && schema.to_string().len() <= MAX_SCHEMA).then_some(schema)
}
