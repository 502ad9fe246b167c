//! What can go wrong, by who asks: opening, appending, and everything else.
//!
//! All wording for people is here, and says what to do where something can be done.

use std::io;
use std::path::PathBuf;

use rusqlite::ErrorCode;
use transcript::Seq;

use crate::Holder;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the data folder {} is in use by {by}; stop that, or choose another folder", dir.display())]
    Held { dir: PathBuf, by: Holder },
    #[error(
        "the data was written by a newer version (schema {found}, this version knows up to {known}); \
         use that version, or another data folder"
    )]
    TooNew { found: i64, known: i64 },
    #[error("cannot use {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("cannot open the database: {0}")]
    Db(#[from] rusqlite::Error),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Somebody else has written, or the caller was mistaken. Nothing was written.
    #[error("the log is at {head}, not where this append expected it")]
    Conflict { head: Seq },
    /// The caller's mistake: the records are not numbered from the expected head on, or name
    /// another session.
    #[error("the records do not continue the log they are appended to")]
    Misnumbered,
    #[error("no space is left in the data folder; free some, and the next message is stored again")]
    NoSpace,
    #[error("the log could not be written: {0}")]
    Storage(String),
    #[error("the store is closed")]
    Closed,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the database could not be used: {0}")]
    Db(#[from] rusqlite::Error),
    #[error("the data is damaged: {0}")]
    Damaged(String),
    #[error("the file system failed: {0}")]
    Io(#[from] io::Error),
    #[error("{} exists already; choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    #[error("the store is closed")]
    Closed,
}

impl From<&Error> for AppendError {
    fn from(error: &Error) -> Self {
        match error {
            Error::Closed => Self::Closed,
            Error::Db(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                Self::NoSpace
            }
            Error::Db(_) | Error::Damaged(_) | Error::Io(_) | Error::Exists(_) => {
                Self::Storage(error.to_string())
            }
        }
    }
}
