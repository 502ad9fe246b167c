//! Deletion of sessions: immediately for every reader, then row by row.
//!
//! One transaction takes the session away and notes that rows of it are left. Those go in bounded
//! steps, between other writes; a crash in between only delays them. The writer overwrites what it
//! deletes, and in the end the write-ahead log is cut, in which older copies lie.
//!
//! That alone leaves something behind at times: where SQLite has moved a row to another page, the
//! page where it was keeps a copy in its unused middle, and rows of other sessions keep that page.
//! Only compacting removes those. Up to a size it is done after each deletion.

use tokio::sync::oneshot;
use transcript::SessionId;

use crate::log::stage::Staged;
use crate::log::{blob, session};
use crate::search::index;
use crate::sql::{Db, params};
use crate::writer::Job;
use crate::{AppendError, Error, Store};

const ROWS_AT_ONCE: usize = 1000;
const BLOBS_AT_ONCE: usize = 16;

/// Tables with rows of sessions, each with the column that identifies a row of a session.
pub(crate) const TABLES: [(&str, &str); 8] = [
    ("records", "seq"),
    ("deltas", "seq"),
    ("streams", "key"),
    ("segments", "first_seq"),
    ("messages", "number"),
    ("client_ids", "client_id"),
    ("queue", "message_id"),
    ("raw_lines", "first"),
];

impl Store {
    /// Deletes a session and returns whether it existed. Afterwards nothing of it can be read: no
    /// record, no search result, no blob that only it names. In a store of up to 16 MiB its bytes
    /// are removed from the files as well, in a larger one by [`Store::compact`] at the latest. If
    /// a reader still uses an older state, or if the removal fails (for example on a full disk),
    /// the bytes are removed later.
    pub async fn delete_session(&self, session: &SessionId) -> Result<bool, AppendError> {
        let _permit = self.write_permit().await?;
        let (done, answer) = oneshot::channel();
        self.send(Job::Delete { session: session.clone(), done });
        answer.await.unwrap_or(Err(AppendError::Closed))
    }

    /// Rewrites the database, which frees unused space and removes all remains of deleted data.
    /// Every append waits meanwhile: some seconds per gigabyte.
    pub async fn compact(&self) -> Result<(), AppendError> {
        let _permit = self.write_permit().await?;
        let (done, answer) = oneshot::channel();
        self.send(Job::Compact { done });
        answer.await.unwrap_or(Err(AppendError::Closed)).map(drop)
    }
}

/// Deletes the row of a session, which hides the session, and returns its key. `None` if there is
/// no such session.
pub(crate) fn begin(db: &Db, id: &SessionId) -> Result<Option<i64>, Error> {
    let Some(key) = session::key(db, id)? else { return Ok(None) };
    db.execute("INSERT INTO deleted (session) VALUES (?1)", params![key])?;
    db.execute("DELETE FROM sessions WHERE key = ?1", params![key])?;
    Ok(Some(key))
}

/// Returns the key of a deleted session with rows left; `None` if there is none. Staged sessions
/// are skipped.
pub(crate) fn next(db: &Db, staged: &Staged) -> Result<Option<i64>, Error> {
    Ok(all(db)?.into_iter().find(|it| !staged.contains(*it)))
}

/// Returns the keys of the deleted and staged sessions with rows left.
pub(crate) fn all(db: &Db) -> Result<Vec<i64>, Error> {
    db.all("SELECT session FROM deleted ORDER BY session", params![], |row| row.get(0))
}

/// Deletes a bounded number of rows of a deleted session. Returns true if none is left.
pub(crate) fn step(db: &Db, session: i64) -> Result<bool, Error> {
    if index::remove_some(db, session)? > 0 {
        return Ok(false);
    }
    for (table, column) in TABLES {
        if delete_rows(db, session, table, column)? > 0 {
            return Ok(false);
        }
    }
    if delete_blobs(db, session)? > 0 {
        return Ok(false);
    }
    db.execute("DELETE FROM deleted WHERE session = ?1", params![session])?;
    Ok(true)
}

fn delete_rows(db: &Db, session: i64, table: &str, column: &str) -> Result<usize, Error> {
    db.execute(
        &format!(
            "DELETE FROM {table} WHERE session = ?1 AND {column} IN
         (SELECT {column} FROM {table} WHERE session = ?1 LIMIT {ROWS_AT_ONCE})"
        ),
        params![session],
    )
}

fn delete_blobs(db: &Db, session: i64) -> Result<usize, Error> {
    let hashes: Vec<Vec<u8>> = db.all(
        &format!(
            "DELETE FROM blob_uses WHERE session = ?1 AND hash IN
         (SELECT hash FROM blob_uses WHERE session = ?1 LIMIT {BLOBS_AT_ONCE})
         RETURNING hash"
        ),
        params![session],
        |row| row.get(0),
    )?;
    for hash in &hashes {
        blob::remove_unnamed(db, hash)?;
    }
    Ok(hashes.len())
}
