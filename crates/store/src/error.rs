//! What can go wrong, by who asks: opening, appending, and everything else.
//!
//! All wording for people is here, and says what to do where something can be done.

use std::io;
use std::path::{Path, PathBuf};

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
    #[error("{}", corrupt(file, error))]
    Corrupt { file: PathBuf, error: rusqlite::Error },
    #[error(
        "{} is empty, but {} shows that the folder was in use: restore a backup in its place, or remove it \
         to begin without sessions",
        file.display(), other.display()
    )]
    Emptied { file: PathBuf, other: PathBuf },
    #[error("no space is left in {}: free some, and start again", dir.display())]
    NoSpace { dir: PathBuf },
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
    #[error("{}", lost(.0))]
    Lost(PathBuf),
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
    #[error("{}", corrupt(file, error))]
    Corrupt { file: PathBuf, error: rusqlite::Error },
    #[error("the file system failed: {0}")]
    Io(#[from] io::Error),
    #[error("{} exists already; choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    #[error("the read was cancelled")]
    Interrupted,
    #[error("{}", lost(.0))]
    Lost(PathBuf),
    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// Returns whether the disk is full.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Db(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull))
    }

    /// Adds the file's name to an error about a damaged database.
    pub(crate) fn in_file(self, file: impl FnOnce() -> PathBuf) -> Self {
        match self {
            Self::Db(error) if is_corrupt(&error) => Self::Corrupt { file: file(), error },
            error => error,
        }
    }
}

impl OpenError {
    /// Adds the file's name to an error about a damaged database.
    pub(crate) fn in_file(self, file: impl FnOnce() -> PathBuf) -> Self {
        match self {
            Self::Db(error) if is_corrupt(&error) => Self::Corrupt { file: file(), error },
            error => error,
        }
    }
}

/// Returns whether SQLite cannot read a page, or the file is not a database.
pub(crate) fn is_corrupt(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

impl From<&Error> for AppendError {
    fn from(error: &Error) -> Self {
        match error {
            Error::Closed => Self::Closed,
            Error::Lost(path) => Self::Lost(path.clone()),
            error if error.is_full() => Self::NoSpace,
            Error::Db(_)
            | Error::Damaged(_)
            | Error::Corrupt { .. }
            | Error::Io(_)
            | Error::Exists(_)
            | Error::Interrupted => Self::Storage(error.to_string()),
        }
    }
}

fn corrupt(file: &Path, error: &rusqlite::Error) -> String {
    format!(
        "{} is damaged ({error}): stop the server, copy the folder, see what `callboard doctor` finds, and \
         restore a backup",
        file.display()
    )
}

fn lost(path: &Path) -> String {
    format!(
        "{} was removed or replaced while the server runs, so nothing can be stored. Move it back; or save \
         what the server still has (POST /api/backup), and start it again",
        path.display()
    )
}
