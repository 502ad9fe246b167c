//! The lines that we write to the program.

use serde_json::{Value, json};

use crate::program::NUDGE;

/// Returns the line that sends a user's message to Claude Code, which reports under `uuid` what
/// became of it.
pub(super) fn user(uuid: &str, message: &Value) -> String {
    let content = content(message);
    let message = json!({ "role": "user", "content": content });
    json!({ "type": "user", "uuid": uuid, "message": message }).to_string()
}

pub(super) fn interrupt(request_id: &str) -> String {
    request(request_id, json!({ "subtype": "interrupt" }))
}

/// Returns the line that takes back a message which Claude Code has not read yet.
pub(super) fn take_back(request_id: &str, uuid: &str) -> String {
    request(request_id, json!({ "subtype": "cancel_async_message", "message_uuid": uuid }))
}

pub(super) fn stop_task(request_id: &str, task_id: &str) -> String {
    request(request_id, json!({ "subtype": "stop_task", "task_id": task_id }))
}

pub(super) fn allow(request_id: &str, input: &Value) -> String {
    answer(request_id, json!({ "behavior": "allow", "updatedInput": input }))
}

/// Returns the line that refuses a tool call. The model gets `message` instead of a result, and
/// continues.
pub(super) fn deny(request_id: &str, message: &str) -> String {
    answer(request_id, json!({ "behavior": "deny", "message": message }))
}

/// Returns the line that rejects a request of an unknown kind, because Claude Code waits for an
/// answer.
pub(super) fn refuse(request_id: &str) -> String {
    let error = "Callboard does not know this request.";
    let response = json!({ "subtype": "error", "request_id": request_id, "error": error });
    json!({ "type": "control_response", "response": response }).to_string()
}

/// Returns the text of an OpenAI chat message.
pub(super) fn text_of(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().filter_map(|it| it.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n\n")
        }
        _ => String::new(),
    }
}

fn request(request_id: &str, request: Value) -> String {
    json!({ "type": "control_request", "request_id": request_id, "request": request }).to_string()
}

fn answer(request_id: &str, response: Value) -> String {
    let response = json!({ "subtype": "success", "request_id": request_id, "response": response });
    json!({ "type": "control_response", "response": response }).to_string()
}

/// Converts the content of an OpenAI chat message to content blocks for Claude Code.
fn content(message: &Value) -> Vec<Value> {
    let mut content: Vec<Value> = match message.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().filter_map(state).collect(),
        _ => {
            Some(text_of(message)).filter(|it| !it.is_empty()).map(text_piece).into_iter().collect()
        }
    };
    if content.is_empty() {
        content.push(text_piece(NUDGE.to_owned()));
    }
    content
}

fn state(state: &Value) -> Option<Value> {
    if let Some(text) = state.get("text").and_then(Value::as_str) {
        return Some(text_piece(text.to_owned()));
    }
    let url = state.get("image_url")?.get("url")?.as_str()?;
    let data = url.strip_prefix("data:").and_then(|it| it.split_once(";base64,"));
    let source = match data {
        Some((media_type, data)) => {
            json!({ "type": "base64", "media_type": media_type, "data": data })
        }
        None => json!({ "type": "url", "url": url }),
    };
    Some(json!({ "type": "image", "source": source }))
}

fn text_piece(text: String) -> Value {
    json!({ "type": "text", "text": text })
}

/// Returns a UUID for an id, deterministically (FNV-1a). Claude Code requires UUIDs for messages,
/// and reports under them.
pub(super) fn uuid_of(id: &str) -> String {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = id.bytes().fold(BASIS, |hash, it| (hash ^ u128::from(it)).wrapping_mul(PRIME));
    let hex = format!("{hash:032x}");
    // Version 8 is for custom uuids.
    format!("{}-{}-8{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}
