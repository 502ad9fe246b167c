//! What leads from one state of the page to the next.

use serde::{Serialize, Serializer};

/// One change of the page. An operation on an id that is not there does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Replaces the element.
    Put { id: String, html: String },
    /// Appends the element as the parent's last child.
    Add { parent: String, html: String },
    /// Sets the element before the one that is there.
    Before { next: String, html: String },
    /// Moves the element before another child of its parent, or to the end.
    Move { id: String, before: Option<String> },
    /// Appends text to the element's content.
    Text { id: String, text: String },
    /// Sets an attribute; none removes it.
    Attr { id: String, name: String, value: Option<String> },
    /// Removes the element.
    Drop { id: String },
}

/// `["put", id, html]`, `["add", parent, html]`, `["before", next, html]`, `["move", id, next]`,
/// `["text", id, text]`, `["attr", id, name, value]`, `["drop", id]`.
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
