//! Operations that change an open page.

use serde::{Serialize, Serializer};

/// A change of the page. An operation on an unknown id does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Replaces the element.
    Put { id: String, html: String },
    /// Appends the element as the parent's last child.
    Add { parent: String, html: String },
    /// Inserts the element before the one with the id `next`.
    Before { next: String, html: String },
    /// Moves the element before another child of its parent, or to the end.
    Move { id: String, before: Option<String> },
    /// Appends text to the element's content.
    Text { id: String, text: String },
    /// Sets an attribute; no value removes it.
    Attr { id: String, name: String, value: Option<String> },
    /// Removes the element.
    Drop { id: String },
}

/// Serialises as `["put", id, html]`, `["add", parent, html]`, `["before", next, html]`, `["move", id,
/// next]`, `["text", id, text]`, `["attr", id, name, value]` or `["drop", id]`.
impl Serialize for Op {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Put { id, html } => ("put", id, html).serialize(serializer),
            Self::Add { parent, html } => ("add", parent, html).serialize(serializer),
            Self::Before { next, html } => ("before", next, html).serialize(serializer),
            Self::Move { id, before } => ("move", id, before).serialize(serializer),
            Self::Text { id, text } => ("text", id, text).serialize(serializer),
            Self::Attr { id, name, value } => ("attr", id, name, value).serialize(serializer),
            Self::Drop { id } => ("drop", id).serialize(serializer),
        }
    }
}
