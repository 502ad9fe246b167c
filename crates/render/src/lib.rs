//! Transcript to HTML, in one place. Everything an agent or a tool says is untrusted and escaped.
//!
//! `page.rs` draws the whole page. While it is open, `live.rs` draws what changed and says how to get
//! there, as ops (`op.rs`) on elements that have an id (`tree.rs`). Both call the same functions, so
//! that a page that was watched and a page that was loaded are the same.

pub mod ansi;
mod badge;
mod call;
pub mod code;
mod conversation;
pub mod diff;
#[cfg(any(test, feature = "testing"))]
mod dom;
mod escape;
mod exchange;
mod export;
mod form;
mod found;
mod icon;
pub mod json;
mod live;
pub mod markdown;
mod message;
mod op;
mod page;
mod part;
mod pulse;
mod queue;
mod room;
mod sequence;
mod settings;
mod sidebar;
mod surroundings;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod tool;
mod transfer;
mod tree;
mod view;
mod whole;
mod words;

pub use exchange::{Peers, embedded};
pub use export::{Export, export_html, export_markdown};
pub use found::{FoundHit, Search, found_page};
pub use live::Live;
pub use message::is_picture;
pub use op::Op;
pub use page::{
    ListedAgent, OpenSession, Page, SignIn, Unknown, error_page, messages_page, page, sign_in_page,
};
pub use pulse::Pulse;
pub use settings::{ListedGrant, ListedServer, Reveal, Settings, Theme, ToolDisplay};
pub use sidebar::{ListedSession, SessionList, session_list};
pub use surroundings::WINDOW;
pub use tree::Element;
pub use view::{Bodies, BodyKind, Files, View};
pub use whole::{whole_body, whole_text};
