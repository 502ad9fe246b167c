//! A tool of an MCP server, as a model is told about it and as it is called.

use std::sync::{Arc, Weak};

use serde_json::{Map, Value, json};

use super::names;
use super::server::Server;
use crate::arguments::Schema;

/// More tools of one server are not looked at.
pub(super) const MAX_TOOLS: usize = 500;
const MAX_DESCRIPTION: usize = 8 * 1024;
const MAX_SCHEMA: usize = 64 * 1024;

pub(crate) struct McpTool {
    /// Ours: `server__tool`.
    pub(crate) name: String,
    /// What the server calls it.
    pub(super) own_name: String,
    pub(crate) description: String,
    /// Schema of the arguments; always of an object.
    pub(crate) schema: Arc<Schema>,
    pub(super) server: Weak<Server>,
}

/// The tools of a list that can be used. One that makes no sense spoils no other.
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

/// As providers take it: they want to be told that it is an object, and which fields it has, also
/// where there are none; some refuse to be told the dialect.
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
