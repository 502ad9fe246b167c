//! HTML as patches see it: elements with ids, the operations on them, escaping and icons.

pub(crate) mod element;
pub(crate) mod escape;
pub(crate) mod icon;
pub(crate) mod op;
