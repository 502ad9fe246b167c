//! Transcript to HTML, in one place. Everything an agent or a tool says is untrusted and escaped.
//!
//! `page.rs` draws the whole page. While it is open, `live.rs` draws what changed and says how to get
//! there, as ops (`html/op.rs`) on elements that have an id (`html/element.rs`). Both call the same functions,
//! so that a page that was watched and a page that was loaded are the same.

mod assets;
mod export;
mod html;
mod live;
mod message;
mod page;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod text;
mod view;

pub use assets::{Asset, assets, assets_version, stylesheet};
pub use export::{Export, export_html, export_markdown};
pub use html::element::Element;
pub use html::op::Op;
pub use live::Live;
pub use message::covers;
pub use message::exchange::{Peers, embedded, embedded_approvals};
pub use message::is_picture;
pub use message::long_text::{html_at, text_at};
pub use message::shown_parts::earlier_parts;
pub use message::weight::weight;
pub use message::whole_body::{BodyKind, whole_body, whole_text};
pub use page::chrome::WINDOW;
pub use page::grants::{Grants, ListedGrant, grants_page};
pub use page::pulse::Pulse;
pub use page::search_results::{SearchHit, SearchResults, search_results_page};
pub use page::settings::{ListedServer, Reveal, Settings, Theme, ToolDisplay};
pub use page::sidebar::{ListedSession, SessionList, session_list, session_list_version};
pub use page::{
    ListedAgent, OpenSession, Page, SignIn, UnknownMessages, error_page, messages_page, page,
    sign_in_page, sign_out_page,
};
pub use text::invisible::is_invisible;
pub use text::{ansi, code, diff, json, markdown};
pub use view::{Bodies, Files, View};
