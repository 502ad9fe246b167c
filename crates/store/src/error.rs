//! Errors of opening, of writing, and of everything else.
//!
//! All messages for users are here, with what to do.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use tokio_postgres::error::SqlState;
use transcript::Seq;

use crate::Holder;

/// Error of [`Store::open`](crate::Store::open).
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has locked the data folder.
    #[error("the data folder {} is in use by {by}; stop that, or choose another folder", dir.display())]
    Held {
        /// Path of the data folder.
        dir: PathBuf,
        /// The process that has locked the folder.
        by: Holder,
    },
    /// The schema of the database is newer than this program knows.
    #[error(
        "the data was written by a newer version (schema {found}, this version knows up to {known}); \
         use that version, or another data folder"
    )]
    TooNew {
        /// Version of the schema in the database.
        found: i64,
        /// Newest schema version that this program knows.
        known: i64,
    },
    /// The file system failed while the store was opened.
    #[error("cannot use {}: {error}", path.display())]
    Io {
        /// Path that could not be used.
        path: PathBuf,
        /// Error of the file system.
        error: io::Error,
    },
    /// The database file is damaged.
    #[error("{}", corrupt(file, error))]
    Corrupt {
        /// Path of the database file.
        file: PathBuf,
        /// Error of the database.
        error: DatabaseError,
    },
    /// The database file is empty although the data folder was in use.
    #[error(
        "{} is empty, but {} shows that the folder was in use: restore a backup in its place, or remove it \
         to begin without sessions",
        file.display(), other.display()
    )]
    Emptied {
        /// Path of the database file.
        file: PathBuf,
        /// Path of another file, which shows that the folder was in use.
        other: PathBuf,
    },
    /// The disk of the data folder is full.
    #[error("no space is left in {}: free some, and start again", dir.display())]
    NoSpace {
        /// Path of the data folder.
        dir: PathBuf,
    },
    /// The database failed while the store was opened.
    #[error("cannot open the database: {0}")]
    Db(DatabaseError),
    /// The address of a PostgreSQL server cannot be parsed.
    #[error(
        "the address of the store is invalid: give a URL such as postgres://user:password@host/database"
    )]
    Url,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up for the connection to the database: {0}")]
    Tls(String),
    /// The PostgreSQL server cannot be reached, or refuses the connection.
    #[error("cannot use the database {server}: {error}")]
    Server {
        /// Host, port and database, without user and password.
        server: String,
        /// The failure.
        error: DatabaseError,
    },
    /// The encoding of the database has not all characters.
    #[error(
        "the database {server} has the encoding {encoding}, which has not all characters: create one with \
         CREATE DATABASE callboard ENCODING 'UTF8' TEMPLATE template0"
    )]
    Encoding {
        /// Host, port and database, without user and password.
        server: String,
        /// Encoding of the database.
        encoding: String,
    },
}

/// Error of a write to the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The head of the log is not the expected one, because another writer was first or the caller
    /// was wrong. Nothing was written.
    #[error("the log is at {head}, not where this append expected it")]
    Conflict {
        /// Sequence number of the log's last record.
        head: Seq,
    },
    /// The records do not continue the log: they are not numbered from the expected head on, or
    /// they name another session.
    #[error("the records do not continue the log they are appended to")]
    Misnumbered,
    /// The disk of the data folder is full.
    #[error("no space is left in the data folder; free some, and the next message is stored again")]
    NoSpace,
    /// The database file at this path was removed or replaced while the store was open.
    #[error("{}", lost(.0))]
    Lost(PathBuf),
    /// The write failed for another reason, which the text describes.
    #[error("the log could not be written: {0}")]
    Storage(String),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

/// Error of a read from the store, or of its maintenance.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database failed.
    #[error("the database could not be used: {0}")]
    Db(DatabaseError),
    /// Stored data is damaged, as the text describes.
    #[error("the data is damaged: {0}")]
    Damaged(String),
    /// The database file is damaged.
    #[error("{}", corrupt(file, error))]
    Corrupt {
        /// Path of the database file.
        file: PathBuf,
        /// Error of the database.
        error: DatabaseError,
    },
    /// The file system failed.
    #[error("the file system failed: {0}")]
    Io(#[from] io::Error),
    /// The file to write exists already.
    #[error("{} exists already; choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    /// A backup of a store in PostgreSQL was requested.
    #[error("the store is a PostgreSQL database, which has backups of its own: use pg_dump")]
    OnServer,
    /// The read was cancelled, or its time limit was reached.
    #[error("the read was cancelled")]
    Interrupted,
    /// The database file at this path was removed or replaced while the store was open.
    #[error("{}", lost(.0))]
    Lost(PathBuf),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

/// Failure of the database that holds a store.
#[derive(Debug)]
pub struct DatabaseError(pub(crate) Cause);

#[derive(Debug)]
pub(crate) enum Cause {
    Sqlite(rusqlite::Error),
    Postgres(tokio_postgres::Error),
}

impl DatabaseError {
    /// Returns the error of the embedded database, if it is one.
    pub(crate) fn sqlite(&self) -> Option<&rusqlite::Error> {
        match &self.0 {
            Cause::Sqlite(error) => Some(error),
            Cause::Postgres(_) => None,
        }
    }

    fn is_full(&self) -> bool {
        match &self.0 {
            Cause::Sqlite(error) => error.sqlite_error_code() == Some(ErrorCode::DiskFull),
            Cause::Postgres(error) => error.code() == Some(&SqlState::DISK_FULL),
        }
    }

    /// Returns whether the statement was cancelled.
    pub(crate) fn is_interrupted(&self) -> bool {
        match &self.0 {
            Cause::Sqlite(error) => {
                error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
            }
            Cause::Postgres(error) => error.code() == Some(&SqlState::QUERY_CANCELED),
        }
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Sqlite(error) => error.fmt(f),
            // The error itself says only that there is one.
            Cause::Postgres(error) => match (error.as_db_error(), error.source()) {
                (Some(error), _) => f.write_str(error.message()),
                (None, Some(source)) => write!(f, "{error}: {source}"),
                (None, None) => error.fmt(f),
            },
        }
    }
}

impl std::error::Error for DatabaseError {}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Db(DatabaseError(Cause::Postgres(error)))
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Db(DatabaseError(Cause::Postgres(error)))
    }
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Db(DatabaseError(Cause::Sqlite(error)))
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Db(DatabaseError(Cause::Sqlite(error)))
    }
}

impl Error {
    /// Returns whether the error says that the disk is full.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Db(error) if error.is_full())
    }

    /// Adds the path of the database file to an error about damage.
    pub(crate) fn in_file(self, file: impl FnOnce() -> PathBuf) -> Self {
        match self {
            Self::Db(error) if error.sqlite().is_some_and(is_corrupt) => {
                Self::Corrupt { file: file(), error }
            }
            error => error,
        }
    }
}

impl OpenError {
    /// Adds the path of the database file to an error about damage.
    pub(crate) fn in_file(self, file: impl FnOnce() -> PathBuf) -> Self {
        match self {
            Self::Db(error) if error.sqlite().is_some_and(is_corrupt) => {
                Self::Corrupt { file: file(), error }
            }
            error => error,
        }
    }
}

/// Returns whether an SQLite error says that a page cannot be read, or that the file is not a
/// database.
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
            | Error::OnServer
            | Error::Interrupted => Self::Storage(error.to_string()),
        }
    }
}

fn corrupt(file: &Path, error: &DatabaseError) -> String {
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
