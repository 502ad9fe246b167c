//! Builds a step's request from the settings, the conversation and the tools.

use serde_json::{Map, Value, json};

use super::Settings;
use crate::Request;

const PATH: &str = "/chat/completions";

pub(super) fn chat(settings: &Settings, history: &[Value], tools: &[Value]) -> Request {
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), "text/event-stream".to_owned()),
    ];
    let key = settings.api_key.as_ref();
    headers.extend(key.map(|key| ("authorization".to_owned(), format!("Bearer {key}"))));
    headers.extend(settings.headers.iter().cloned());
    Request {
        method: "POST",
        url: url(&settings.base_url),
        headers,
        body: Value::Object(body(settings, history, tools)).to_string().into(),
        idle_timeout_ms: settings.idle_timeout_ms,
    }
}

/// Returns the URL for chat completions: the base URL with the path, before its query if it has
/// one.
fn url(base_url: &str) -> String {
    let (base, query) = match base_url.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (base_url, String::new()),
    };
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix(PATH).unwrap_or(base);
    format!("{base}{PATH}{query}")
}

fn body(settings: &Settings, history: &[Value], tools: &[Value]) -> Map<String, Value> {
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
    set("model", json!(settings.model));
    set("messages", json!(history));
    if !tools.is_empty() {
        set("tools", json!(tools));
    }
    set("stream", json!(true));
    set("stream_options", json!({ "include_usage": true }));
    body.extend(settings.body.clone());
    body.retain(|key, _| !settings.omit.contains(key));
    body
}
