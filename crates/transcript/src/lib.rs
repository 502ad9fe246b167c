//! The centre of Callboard: the events of a session and the messages that they make.
//!
//! [`Event`]s are written to a session's log as numbered [`Record`]s. [`Transcript::apply`] folds
//! them into messages. The page, exports, foreign formats and the history that a model gets are all
//! made from those messages, so they cannot disagree.
//!
//! This crate does no I/O, reads no clock, draws no random numbers and never fails: records that make
//! no sense are kept and skipped.

mod event;
#[cfg(any(test, feature = "logs"))]
pub mod logs;
mod run;
mod session;

#[cfg(test)]
mod tests;

pub use event::*;
pub use run::*;
pub use session::*;
