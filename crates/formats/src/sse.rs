//! Server-sent events, as every streaming endpoint writes them.

use std::fmt::Display;

/// Media type of a stream of events.
pub const MEDIA_TYPE: &str = "text/event-stream";

/// Comment that keeps a connection open; clients ignore it.
pub const KEEP_ALIVE: &str = ": still there\n\n";

/// The shortest comment.
pub const EMPTY_COMMENT: &str = ":\n\n";

/// Last event of the formats that mark their end.
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// Writes an event without a name. The data is JSON on one line.
pub fn event(data: impl Display) -> String {
    format!("data: {data}\n\n")
}

/// Writes an event with a name and the id from which a client resumes.
pub fn named_event(name: &str, id: impl Display, data: impl Display) -> String {
    format!("event: {name}\nid: {id}\ndata: {data}\n\n")
}

/// Writes a comment.
pub fn comment(text: &str) -> String {
    format!(": {text}\n\n")
}
