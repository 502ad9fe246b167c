//! The rules of the strictest OpenAI-compatible providers about a list of messages.

use std::collections::HashSet;

use serde_json::Value;

/// Returns an error with the first rule that the messages break.
pub fn check(messages: &[Value]) -> Result<(), String> {
    let mut ids = HashSet::new();
    let mut before = "";
    let mut rest = messages.iter().enumerate().peekable();
    while let Some((n, message)) = rest.next() {
        let role = message["role"].as_str().ok_or(format!("{n}: no role"))?;
        match (before, role) {
            ("", "system") | ("" | "system" | "assistant" | "tool", "user") => (),
            ("user" | "tool", "assistant") => (),
            _ => return Err(format!("{n}: {role} after {before:?}")),
        }
        before = role;
        let calls = message["tool_calls"].as_array();
        check_content(&message["content"], calls.is_some()).map_err(|why| format!("{n}: {why}"))?;
        let Some(calls) = calls else { continue };
        if role != "assistant" || calls.is_empty() {
            return Err(format!("{n}: calls that nobody makes"));
        }
        for call in calls {
            check_call(call).map_err(|why| format!("{n}: {why}"))?;
            let id = call["id"].as_str().unwrap_or_default();
            if id.is_empty() || !ids.insert(id) {
                return Err(format!("{n}: the id {id:?} is empty or used twice"));
            }
            let Some((_, result)) = rest.next_if(|(_, it)| it["role"] == "tool") else {
                return Err(format!("{n}: the call {id} has no result right after it"));
            };
            if result["tool_call_id"] != id {
                return Err(format!("{n}: the results do not follow the order of the calls"));
            }
            check_content(&result["content"], false).map_err(|why| format!("{id}: {why}"))?;
            before = "tool";
        }
    }
    match before {
        "user" | "tool" => Ok(()),
        last => Err(format!("it is nobody's turn after {last:?}")),
    }
}

fn check_content(content: &Value, may_be_absent: bool) -> Result<(), String> {
    let is_piece = |it: &Value| match it["type"].as_str() {
        Some("text") => it["text"].as_str().is_some_and(|it| !it.trim().is_empty()),
        Some("image_url") => it["image_url"]["url"].is_string(),
        _ => false,
    };
    let is_fine = match content {
        Value::Null => may_be_absent,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(pieces) => !pieces.is_empty() && pieces.iter().all(is_piece),
        _ => false,
    };
    if is_fine { Ok(()) } else { Err(format!("content {content}")) }
}

fn check_call(call: &Value) -> Result<(), String> {
    let name = call["function"]["name"].as_str().unwrap_or_default();
    let is_letter = |it: char| it.is_ascii_alphanumeric() || "_-".contains(it);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_letter) {
        return Err(format!("the name {name:?}"));
    }
    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Object(_)) if call["type"] == "function" => Ok(()),
        _ => Err(format!("{name} with {arguments:?}")),
    }
}
