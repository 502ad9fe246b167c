//! Transcript to HTML, in one place. Everything an agent or a tool says is untrusted and escaped.

pub mod ansi;
pub mod code;
pub mod diff;
#[cfg(test)]
mod dom;
mod escape;
pub mod json;
pub mod markdown;
mod message;
mod op;
mod page;

pub use op::Op;
pub use page::{ListedSession, Page, error_page, page, sign_in_page};
