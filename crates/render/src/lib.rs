//! Draws transcripts as HTML. All text of agents and tools is untrusted and escaped.
//!
//! `page.rs` draws the whole page. While a page is open, `live.rs` draws what changed as operations
//! (`html/op.rs`) on elements that have an id (`html/element.rs`). Both call the same functions, so that a
//! patched page equals a freshly loaded one.
//!
//! # Example
//!
//! Drawing a transcript as a standalone HTML file:
//!
//! ```
//! use render::{Export, Files, Peers, Settings, export_html};
//! use transcript::{Record, SessionId, Transcript};
//!
//! let log = r#"
//! {"seq":1,"at":"2026-11-15T18:44:28.000Z","sessionId":"s","type":"user_message","messageId":"m","text":"Hi"}
//! {"seq":2,"at":"2026-11-15T18:44:28.100Z","sessionId":"s","responseId":"r","type":"run_start","agent":"demo","trigger":"user"}
//! {"seq":3,"at":"2026-11-15T18:44:28.200Z","sessionId":"s","responseId":"r","type":"text_done","partId":"r.0","text":"**Hello** <you>"}
//! {"seq":4,"at":"2026-11-15T18:44:28.300Z","sessionId":"s","responseId":"r","type":"run_finish","status":"completed"}
//! "#;
//! let records = log.trim().lines().map(Record::from_json).collect::<Result<Vec<_>, _>>()?;
//! let mut transcript = Transcript::whole();
//! transcript.extend(&records);
//!
//! let html = export_html(
//!     &transcript,
//!     Export {
//!         session: &SessionId::new("s"),
//!         settings: &Settings::default(),
//!         stylesheet: "",
//!         files: Files::default(),
//!         peers: Peers::default(),
//!     },
//! );
//! assert!(html.contains("<strong>Hello</strong> &lt;you&gt;"));
//! # Ok::<(), serde_json::Error>(())
//! ```

#![warn(missing_docs)]

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
