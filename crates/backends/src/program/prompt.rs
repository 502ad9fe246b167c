//! What a program is told when a run begins. It remembers the conversation itself, so it is only told
//! what is new.

use std::borrow::Cow;

use serde_json::{Value, json};

/// What the model gets where nobody said anything new: an answer that broke off is to go on.
pub(crate) const NUDGE: &str = "Continue.";

/// The newest message, if a person said it. What stands after the last that a person said is an answer
/// that broke off: the program has had that message, and is told to go on.
pub(crate) fn newest(history: &[Value]) -> Cow<'_, Value> {
    match history.last() {
        Some(message) if message["role"] == "user" => Cow::Borrowed(message),
        _ => Cow::Owned(json!({ "role": "user", "content": NUDGE })),
    }
}
