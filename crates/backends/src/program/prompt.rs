//! The message that begins a run. The program keeps the conversation itself, so it only gets the newest
//! message.

use std::borrow::Cow;

use serde_json::{Value, json};

/// Prompt for the model where there is no new message: continue an answer that broke off.
pub(crate) const NUDGE: &str = "Continue.";

/// Returns the newest message, if a person wrote it. An answer behind the last message broke off: the program
/// has had that message, and is asked to continue.
pub(crate) fn newest(history: &[Value]) -> Cow<'_, Value> {
    match history.last() {
        Some(message) if message["role"] == "user" => Cow::Borrowed(message),
        _ => Cow::Owned(json!({ "role": "user", "content": NUDGE })),
    }
}
