//! Texts as HTML, independent of sessions and messages: Markdown, code, diffs, JSON and terminal output.

pub mod ansi;
pub(crate) mod budget;
pub mod code;
pub mod diff;
pub(crate) mod invisible;
pub mod json;
pub mod markdown;
pub(crate) mod quantity;
