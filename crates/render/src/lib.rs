//! Transcript to HTML, in one place. Everything an agent or a tool says is untrusted and escaped.
//!
//! `page.rs` draws the whole page. While it is open, `live.rs` draws what changed and says how to get
//! there, as ops (`op.rs`) on elements that have an id (`tree.rs`). Both call the same functions, so
//! that a page that was watched and a page that was loaded are the same.

pub mod ansi;
mod badge;
mod call;
mod card;
pub mod code;
mod conversation;
pub mod covers;
pub mod diff;
#[cfg(any(test, feature = "testing"))]
mod dom;
mod escape;
mod exchange;
mod export;
mod form;
mod found;
mod grants;
mod icon;
pub mod json;
mod live;
mod long;
pub mod markdown;
mod message;
mod op;
mod page;
mod part;
mod parts;
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
mod visible;
mod weight;
mod whole;
mod words;

pub use exchange::{Peers, embedded, embedded_questions};
pub use export::{Export, export_html, export_markdown};
pub use found::{FoundHit, Search, found_page};
pub use grants::{Grants, ListedGrant, grants_page};
pub use live::Live;
pub use long::{html_at, text_at};
pub use message::is_picture;
pub use op::Op;
pub use page::{
    ListedAgent, OpenSession, Page, SignIn, Unknown, error_page, messages_page, page, sign_in_page,
    sign_out_page,
};
pub use parts::earlier_parts;
pub use pulse::Pulse;
pub use settings::{ListedServer, Reveal, Settings, Theme, ToolDisplay};
pub use sidebar::{ListedSession, SessionList, session_list, session_list_version};
pub use surroundings::WINDOW;
pub use tree::Element;
pub use view::{Bodies, BodyKind, Files, View};
pub use visible::is_invisible;
pub use weight::weight;
pub use whole::{whole_body, whole_text};
