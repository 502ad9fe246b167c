//! Operations that change an open page.

use serde::{Serialize, Serializer};

/// A change of the page. An operation on an unknown id does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Replaces the element.
    Put {
        /// Id of the element.
        id: String,
        /// The new element.
        html: String,
    },
    /// Appends an element as the last child.
    Add {
        /// Id of the parent.
        parent: String,
        /// The element.
        html: String,
    },
    /// Inserts an element before another one.
    Before {
        /// Id of the other element.
        next: String,
        /// The element.
        html: String,
    },
    /// Moves the element within its parent.
    Move {
        /// Id of the element.
        id: String,
        /// Id of the sibling to move it before; `None` for the end.
        before: Option<String>,
    },
    /// Appends text to the element's content.
    Text {
        /// Id of the element.
        id: String,
        /// The text.
        text: String,
    },
    /// Sets an attribute.
    Attr {
        /// Id of the element.
        id: String,
        /// Name of the attribute.
        name: String,
        /// The value; `None` removes the attribute.
        value: Option<String>,
    },
    /// Removes the element.
    Drop {
        /// Id of the element.
        id: String,
    },
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
