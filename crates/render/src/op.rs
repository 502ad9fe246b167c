//! What leads from one state of the page to the next.

/// One change of the page. An operation on an id that is not there does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Replaces the element.
    Put { id: String, html: String },
    /// Appends the element as the parent's last child.
    Add { parent: String, html: String },
    /// Appends text to the element's content.
    Text { id: String, text: String },
    /// Removes the element.
    Drop { id: String },
}
