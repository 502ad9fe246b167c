//! Operations that change an open page.

use serde::{Serialize, Serializer};

/// Operation of a patch, which changes one element of an open page. An operation on an unknown id
/// does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Replaces an element.
    Put {
        /// Id of the element to replace.
        id: String,
        /// HTML of the new element.
        html: String,
    },
    /// Appends a new element as the last child of another.
    Add {
        /// Id of the parent of the new element.
        parent: String,
        /// HTML of the new element.
        html: String,
    },
    /// Inserts a new element before another.
    Before {
        /// Id of the element before which the new one is inserted.
        next: String,
        /// HTML of the new element.
        html: String,
    },
    /// Moves an element within its parent.
    Move {
        /// Id of the element to move.
        id: String,
        /// Id of the sibling before which the element is moved; `None` for the end of the parent.
        before: Option<String>,
    },
    /// Appends text to the content of an element.
    Text {
        /// Id of the element whose content grows.
        id: String,
        /// Text to append, not escaped.
        text: String,
    },
    /// Sets or removes an attribute of an element.
    Attr {
        /// Id of the element whose attribute changes.
        id: String,
        /// Name of the attribute to set or remove.
        name: String,
        /// New value of the attribute; `None` removes the attribute.
        value: Option<String>,
    },
    /// Removes an element.
    Drop {
        /// Id of the element to remove.
        id: String,
    },
}

/// Serialises a patch operation as `["put", id, html]`, `["add", parent, html]`, `["before", next,
/// html]`, `["move", id, next]`, `["text", id, text]`, `["attr", id, name, value]` or `["drop",
/// id]`.
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
