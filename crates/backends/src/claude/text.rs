//! Converts the program's texts for people.

use serde_json::Value;

/// Returns the text of a `content` field of Claude Code: a string, or a list of blocks of which
/// some are texts.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|it| it.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Shortens a text of Claude Code to 300 characters, for a notice or an error message.
pub(super) fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    let text = text.trim();
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
