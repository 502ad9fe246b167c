//! The commands that Pi takes: one JSON object a line.

use serde_json::{Map, Value, json};

use crate::Verdict;
use crate::emitter::Emitter;
use crate::program::newest;

/// A message for the model: text, and pictures in Pi's form.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) text: String,
    images: Vec<Value>,
}

impl Prompt {
    /// Builds the prompt from the newest message of the conversation.
    pub(super) fn newest(history: &[Value]) -> Self {
        Self::of(&newest(history))
    }

    /// Converts an OpenAI chat message to a prompt for Pi.
    pub(super) fn of(message: &Value) -> Self {
        let content = &message["content"];
        let pieces = content.as_array().map_or(&[][..], Vec::as_slice);
        let mut texts: Vec<&str> = content.as_str().into_iter().collect();
        texts.extend(pieces.iter().filter_map(|it| it["text"].as_str()));
        let images = pieces.iter().filter_map(|it| image(it["image_url"]["url"].as_str()?));
        Self { text: texts.join("\n\n"), images: images.collect() }
    }

    fn into_command(self, kind: &str, id: &str) -> Map<String, Value> {
        let mut command = Map::new();
        command.insert("id".to_owned(), id.into());
        command.insert("type".to_owned(), kind.into());
        command.insert("message".to_owned(), self.text.into());
        if !self.images.is_empty() {
            command.insert("images".to_owned(), self.images.into());
        }
        command
    }
}

/// Converts a `data:` URL to a picture for Pi. `None` for other URLs, which Pi does not fetch.
fn image(url: &str) -> Option<Value> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(json!({ "type": "image", "data": data, "mimeType": media_type }))
}

/// Writes a command to Pi, and returns the id that its response will have. `name` is the beginning
/// of the id.
pub(super) fn send(name: &str, command: impl FnOnce(&str) -> String, out: &mut Emitter) -> String {
    let id = format!("{name}-{}", out.next_request());
    out.write(command(&id));
    id
}

/// Returns the command that sends Pi a prompt. If Pi begins a turn by itself at the same time, the
/// prompt follows it.
pub(super) fn prompt(id: &str, prompt: Prompt) -> String {
    let mut command = prompt.into_command("prompt", id);
    command.insert("streamingBehavior".to_owned(), "followUp".into());
    Value::Object(command).to_string()
}

pub(super) fn steer(id: &str, prompt: Prompt) -> String {
    Value::Object(prompt.into_command("steer", id)).to_string()
}

pub(super) fn abort(id: &str) -> String {
    json!({ "id": id, "type": "abort" }).to_string()
}

pub(super) fn get_state(id: &str) -> String {
    json!({ "id": id, "type": "get_state" }).to_string()
}

pub(super) fn cancel_dialog(id: &str) -> String {
    json!({ "type": "extension_ui_response", "id": id, "cancelled": true }).to_string()
}

/// Returns the command that answers an extension's dialog with text.
pub(super) fn answer_dialog(id: &str, words: &str) -> String {
    json!({ "type": "extension_ui_response", "id": id, "value": words }).to_string()
}

/// Returns the command that answers an extension's dialog with yes or no.
pub(super) fn confirm(id: &str, verdict: &Verdict) -> String {
    let allowed = matches!(verdict, Verdict::Allowed { .. });
    json!({ "type": "extension_ui_response", "id": id, "confirmed": allowed }).to_string()
}

/// Returns the command that answers an approval request of Callboard's Pi extension.
pub(super) fn decide(id: &str, verdict: &Verdict) -> String {
    let decision = match verdict {
        Verdict::Allowed { arguments: None, .. } => json!({ "allow": true }),
        Verdict::Allowed { arguments: Some(edited), .. } => match as_object(edited) {
            Some(input) => json!({ "allow": true, "input": input }),
            None => denied("The arguments, as the user changed them, are no JSON object."),
        },
        Verdict::Denied { feedback: None } => denied("The user refused this call; nothing ran."),
        Verdict::Denied { feedback: Some(why) } => {
            denied(&format!("The user refused this call and says: {why}"))
        }
        Verdict::TimedOut => denied("Nobody decided about this call in time; nothing ran."),
    };
    let value = decision.to_string();
    json!({ "type": "extension_ui_response", "id": id, "value": value }).to_string()
}

/// Parses the arguments of a tool call as a JSON object. `None` if they are not one.
pub(super) fn as_object(arguments: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(arguments).ok()
}

fn denied(reason: &str) -> Value {
    json!({ "allow": false, "reason": reason })
}
