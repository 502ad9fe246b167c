//! The message that begins a run. The program keeps the conversation itself, so it gets only the newest
//! message.

use std::borrow::Cow;

use serde_json::{Value, json};

/// Prompt that makes a program continue an answer that broke off, used if there is no new message.
pub(crate) const NUDGE: &str = "Continue.";

/// Returns the newest message of the conversation, or a prompt to continue if an answer follows it:
/// the program already has the message, and its answer broke off.
pub(crate) fn newest(history: &[Value]) -> Cow<'_, Value> {
    match history.last() {
        Some(message) if message["role"] == "user" => Cow::Borrowed(message),
        _ => Cow::Owned(json!({ "role": "user", "content": NUDGE })),
    }
}
