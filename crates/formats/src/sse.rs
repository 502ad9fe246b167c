//! Server-sent events, as every streaming endpoint writes them.

use std::fmt::Display;

/// Media type of a stream of server-sent events.
pub const MEDIA_TYPE: &str = "text/event-stream";

/// Server-sent comment that keeps a connection open; clients ignore it.
pub const KEEP_ALIVE: &str = ": still there\n\n";

/// The shortest server-sent comment.
pub const EMPTY_COMMENT: &str = ":\n\n";

/// Server-sent event that ends a response, in formats with an end mark.
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// Returns a server-sent event without a name. The data is JSON on one line.
pub fn event(data: impl Display) -> String {
    format!("data: {data}\n\n")
}

/// Returns a server-sent event with a name, and with the id from which a client resumes.
pub fn named_event(name: &str, id: impl Display, data: impl Display) -> String {
    format!("event: {name}\nid: {id}\ndata: {data}\n\n")
}

/// Returns a server-sent comment.
pub fn comment(text: &str) -> String {
    format!(": {text}\n\n")
}
