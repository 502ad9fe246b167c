//! The centre of Callboard: what can happen in a session, and what that makes of it.
//!
//! [`Event`]s are written to a session's log as numbered [`Record`]s. [`Transcript::apply`] folds
//! them into messages. The page, exports, other people's formats and the history that a model gets
//! are all made from that, so they cannot disagree.
//!
//! This crate does no I/O, reads no clock, draws no random number and never fails: what makes no
//! sense is kept and skipped.

mod answer;
mod arguments_summary;
mod as_sent;
mod body;
mod call;
mod closing;
mod commentary;
mod covers;
mod error_code;
mod event;
mod excerpt;
mod figures;
mod ids;
#[cfg(any(test, feature = "logs"))]
pub mod logs;
mod message;
mod opening;
mod place;
mod queue;
mod record;
mod rest;
mod result_files;
mod result_summary;
mod sender;
mod settling;
pub mod stream;
mod summary;
mod tally;
mod time;
mod transcript;

#[cfg(test)]
mod tests;

pub use arguments_summary::arguments_summary;
pub use as_sent::{AsSent, Link, is_link};
pub use body::{BODY_EDGE, Body};
pub use closing::{Ending, Spent, close, pause};
pub use covers::{Covers, Extent};
pub use error_code::{ErrorCode, ErrorInfo};
pub use event::*;
pub use excerpt::{EXCERPT_PIECE, weight};
pub use figures::*;
pub use ids::*;
pub use message::*;
pub use opening::missing_start;
pub use place::{FOREIGN_PART, MAX_UNRECOGNIZED};
pub use queue::{Queue, Queued};
pub use record::{Record, event_from_body, to_json};
pub use rest::{IMPORTED, put_to_rest};
pub use result_files::result_files;
pub use sender::Introduced;
pub use settling::settle_result;
pub use summary::{Linked, OpenExchange, SessionState, Summary};
pub use time::Millis;
pub use transcript::{Change, Transcript, is_of_session};
