//! Import of AG-UI's messages; `events.rs` imports its events.
//!
//! The messages do not contain times, the way a run or a call ended (an error is recognized by the text of the
//! result), steered messages, and actions of sub-agents.

mod events;

use serde_json::Value;
use transcript::MessageRole;

use crate::import::{
    CallResult, Entry, Holds, List, LogBuilder, Setting, arguments_text, as_text, error_info,
    items, result_of,
};
use crate::incoming::File;

pub(crate) use events::EVENTS;

pub(crate) const MESSAGES: List = List {
    of: "messages",
    tag: "role",
    words: &["user", "assistant", "tool", "reasoning", "system", "developer", "activity"],
    fields: &[
        ("id", &[Holds::Text]),
        ("content", &[Holds::Text, Holds::List, Holds::Object]),
        ("toolCalls", &[Holds::List]),
    ],
    read: import,
};

/// Imports a list of AG-UI messages as the log of a new session.
pub fn import(messages: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let mut builder = LogBuilder::new(setting);
    items(messages).iter().for_each(|it| message(it, &mut builder));
    builder.into_entries()
}

fn message(message: &Value, builder: &mut LogBuilder<'_>) {
    let id = as_text(message, "id");
    let (text, files) = content(&message["content"]);
    match message["role"].as_str() {
        Some("user") => builder.input_message(id, MessageRole::User, &text, &files),
        Some("system" | "developer") => {
            builder.input_message(id, MessageRole::System, &text, &files)
        }
        Some("assistant") => {
            builder.step_of(id);
            if message["content"].is_string() {
                builder.text_as(id, &text);
            }
            items(&message["toolCalls"]).iter().for_each(|it| call(it, builder));
        }
        Some("reasoning") => {
            builder.step_of(id);
            builder.thinking(id, &text, false);
        }
        Some("tool") => result(message, &text, builder),
        _ => builder.unrecognized("message", &message.to_string()),
    }
}

fn call(call: &Value, builder: &mut LogBuilder<'_>) {
    let function = &call["function"];
    let arguments = match &function["arguments"] {
        Value::String(text) => text.clone(),
        other => arguments_text(other),
    };
    let name = as_text(function, "name").unwrap_or_default();
    builder.call(as_text(call, "id"), name, &arguments);
}

fn result(message: &Value, text: &str, builder: &mut LogBuilder<'_>) {
    let id = as_text(message, "toolCallId");
    let came = match as_text(message, "error") {
        Some(_) => CallResult::Failed(error_info(&message["error"])),
        None => CallResult::Output(result_of(text)),
    };
    match builder.open_call(id, None) {
        Some(call) => builder.result(&call, came),
        None => builder.orphan(id, "", came),
    }
}

/// Returns the text and the files of an AG-UI message's `content`, which is a string or a list of
/// texts and files. A file that cannot be read has an empty URL, so it counts as lost.
fn content(content: &Value) -> (String, Vec<File>) {
    if let Value::String(text) = content {
        return (text.clone(), Vec::new());
    }
    let pieces = items(content);
    let texts = pieces.iter().filter_map(|it| as_text(it, "text"));
    let files = pieces.iter().filter(|it| it["type"] != "text").map(|it| {
        let file = super::incoming::any_file(it, "content");
        let missing = |_| File { media_type: String::new(), name: None, url: String::new() };
        file.unwrap_or_else(missing)
    });
    (texts.collect::<Vec<_>>().join("\n\n"), files.collect())
}
