//! Damaged data: detection, and the record that replaces a damaged one.
//!
//! A record that cannot be read as it was written is replaced by a notice under the same number; all
//! other records are served. Nothing is repaired on disk.

use transcript::{Event, Level, Millis, Record, ResponseId, Seq, SessionId};

use crate::Error;
use crate::error::is_corrupt;
use crate::log::body::Kept;
use crate::log::read::Stored;
use crate::sql::Row;

/// Returns the checksum over the columns of a record.
pub(crate) fn sum(seq: Seq, at: Millis, response: Option<&str>, kept: &Kept) -> i64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seq.0.to_le_bytes());
    hasher.update(&at.0.to_le_bytes());
    for text in [response, Some(&kept.body), kept.cuts.as_deref()] {
        // Lengths are included, so that the columns cannot be shifted against each other.
        let text = text.unwrap_or("");
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
    i64::from(u32::from_le_bytes([a, b, c, d]))
}

/// A row of the table `records` whose checksum was verified.
pub(crate) struct KeptRecord {
    pub(crate) seq: Seq,
    pub(crate) at: Millis,
    pub(crate) response: Option<String>,
    pub(crate) kept: Kept,
}

/// Reads a row of the table `records` with the columns seq, at, response, body, cuts, sum. Returns
/// an error if it is damaged.
pub(crate) fn checked(row: &Row<'_>) -> Result<KeptRecord, Error> {
    let kept = Kept { body: row.get(3)?, cuts: row.get(4)? };
    let (seq, at) = (crate::files::connection::seq(row.get(0)?), Millis(row.get(1)?));
    let response: Option<String> = row.get(2)?;
    let written: Option<i64> = row.get(5)?;
    if written.is_some_and(|it| it != sum(seq, at, response.as_deref(), &kept)) {
        return Err(Error::Damaged(format!("record {seq} is not as it was written")));
    }
    Ok(KeptRecord { seq, at, response, kept })
}

/// Returns whether a text is a complete JSON object.
pub(crate) fn is_object(body: &str) -> bool {
    body.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok()
}

/// Returns the notice that replaces a damaged record, under the same sequence number.
pub(crate) fn stand_in(id: &SessionId, seq: Seq, at: Millis, run: Option<ResponseId>) -> Stored {
    let text = format!(
        "Record {seq} of session {id} is damaged and cannot be shown. The rest of the session is as it was. \
         `callboard doctor` lists damaged records; a backup may have this one."
    );
    let event = Event::Notice { level: Level::Error, text };
    Stored::from(&Record::new(seq, at, id.clone(), run, event))
}

impl Error {
    /// Returns whether the error says that stored data is damaged, so that a retry cannot help.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Damaged(_) | Self::Corrupt { .. } => true,
            Self::Db(error) => error.sqlite().is_some_and(is_damage),
            Self::Io(_)
            | Self::Exists(_)
            | Self::OnServer
            | Self::Interrupted
            | Self::Lost(_)
            | Self::Closed => false,
        }
    }
}

/// Returns whether an SQLite error says that a page cannot be read, or that a column has a value of
/// the wrong type.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    is_corrupt(error)
        || matches!(
            error,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..)
        )
}
