//! The core of Callboard: the events of a session and the messages that they make.
//!
//! [`Event`]s are written to a session's log as numbered [`Record`]s. [`Transcript::apply`] folds
//! them into messages. The page, exports, foreign formats and the history that a model gets are all
//! made from those messages, so they cannot disagree.
//!
//! This crate does no I/O, reads no clock, draws no random numbers and never fails: records that make
//! no sense are kept and skipped.
//!
//! # Example
//!
//! Replaying the records of a log into messages:
//!
//! ```
//! use transcript::{Record, RunStatus, Transcript};
//!
//! let log = r#"
//! {"seq":1,"at":"2026-11-15T18:44:28.000Z","sessionId":"s","type":"user_message","messageId":"m","text":"Hi"}
//! {"seq":2,"at":"2026-11-15T18:44:28.100Z","sessionId":"s","responseId":"r","type":"run_start","agent":"demo","trigger":"user"}
//! {"seq":3,"at":"2026-11-15T18:44:28.200Z","sessionId":"s","responseId":"r","type":"text_done","partId":"r.0","text":"Hello!"}
//! {"seq":4,"at":"2026-11-15T18:44:28.300Z","sessionId":"s","responseId":"r","type":"run_finish","status":"completed"}
//! "#;
//! let records = log.trim().lines().map(Record::from_json).collect::<Result<Vec<_>, _>>()?;
//!
//! let transcript = Transcript::replay(&records);
//! assert_eq!(transcript.summary.title(), "Hi");
//! let run = transcript.message("r").and_then(|it| it.run()).expect("the run has a message");
//! assert_eq!(run.content(), "Hello!");
//! assert_eq!(run.finish.as_ref().map(|it| it.status), Some(RunStatus::Completed));
//! # Ok::<(), serde_json::Error>(())
//! ```

#![warn(missing_docs)]

mod event;
mod run;
mod session;

pub use event::*;
pub use run::*;
pub use session::*;
