//! The assistant message of a run: its model, its reducer, and the events that end or correct it.

mod arguments_summary;
mod body;
mod call;
mod closing;
mod commentary;
mod corrections;
mod cost;
pub(crate) mod excerpt;
mod message;
mod part_traits;
mod parts;
mod reducer;
mod result_files;
mod result_summary;

pub use arguments_summary::arguments_summary;
pub use body::{BODY_EDGE, Body};
pub use call::*;
pub use closing::{Ending, close, pause};
pub use corrections::{correct_result_code, implied_start};
pub use cost::RunCost;
pub use excerpt::{EXCERPT_PIECE, weight};
pub use message::*;
pub(crate) use parts::standalone_part;
pub use parts::{FOREIGN_PART, MAX_UNRECOGNIZED};
pub use result_files::result_files;
