//! Transcript to HTML, in one place. Everything an agent or a tool says is untrusted and escaped.

mod message;
mod page;

pub use page::{ListedSession, Page, error_page, page, sign_in_page};
