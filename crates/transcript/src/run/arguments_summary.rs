//! One-line summary of a call's arguments.

use serde_json::{Map, Value};

const MAX_ARGUMENTS: usize = 3;
const MAX_CHARS: usize = 27;

/// Returns a one-line summary of a tool call's arguments, which are given as JSON text: the first
/// three of them, such as `query: 'dbplus', types: ['program']`.
///
/// Empty if there are none or the text is not a JSON object.
pub fn arguments_summary(arguments: &str) -> String {
    let arguments: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
    let parts = arguments.iter().take(MAX_ARGUMENTS);
    join(parts.map(|(name, value)| format!("{name}: {}", cut_value(value))))
}

fn cut_value(value: &Value) -> String {
    match value {
        // Cut before quoting, so that the closing quote stays.
        Value::String(text) => quote(&cut(text)),
        other => cut(&plain(other)),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Array(items) => format!("[{}]", join(items.iter().map(plain))),
        Value::Object(fields) => {
            format!(
                "{{{}}}",
                join(fields.iter().map(|(name, it)| format!("{name}: {}", plain(it))))
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn quote(text: &str) -> String {
    format!("'{text}'")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
