//! The index: which records are in it, and how the others get there.
//!
//! It is made from the records after they were written: by the writer when it is idle, and before a
//! search. A session's items are complete up to its row in
//! `indexed`, and there are none beyond it.

use std::collections::BTreeSet;

use tokio::sync::oneshot;
use transcript::{ResponseId, Seq, event_from_body};

use crate::files::connection::{int, seq};
use crate::log::body;
use crate::log::damage::checked;
use crate::search::item::{self, Item, RecordPlace};
use crate::search::matches;
use crate::sql::{Db, Row, params};
use crate::writer::Job;
use crate::{Error, Store};

/// Number of records with which a batch of indexing ends; it also ends with `BYTES_AT_ONCE` of
/// text.
const RECORDS_AT_ONCE: usize = 1000;
const BYTES_AT_ONCE: usize = 256 * 1024;
/// Number of bytes with which a batch of removals from the search index ends. It is smaller than
/// for indexing, because removing a word takes about twenty times as long.
const BYTES_REMOVED_AT_ONCE: usize = 16 * 1024;
/// Number of bytes for which a removed item counts besides its text.
const BYTES_PER_ITEM: usize = 256;

impl Store {
    /// Adds all missing records to the search index. Writes may come between the batches; each
    /// batch is larger than what can be written meanwhile, so this ends.
    pub(crate) async fn catch_up(&self) -> Result<(), Error> {
        loop {
            let (done, answer) = oneshot::channel();
            self.send(Job::Index { done });
            if !answer.await.unwrap_or(Err(Error::Closed))? {
                return Ok(());
            }
        }
    }
}

/// Sessions with records that are not in the search index.
#[derive(Default)]
pub(crate) struct Backlog {
    sessions: BTreeSet<i64>,
    /// Whether the sessions that were not fully indexed when the store was opened are included.
    is_complete: bool,
}

impl Backlog {
    pub(crate) fn add(&mut self, session: i64) {
        self.sessions.insert(session);
    }

    /// Adds, once, the sessions that were not fully indexed when the store was opened. Returns
    /// whether any session is to be indexed.
    pub(crate) fn load_backlog(&mut self, db: &Db) -> Result<bool, Error> {
        if !self.is_complete {
            self.sessions.extend(all_behind(db)?);
            self.is_complete = true;
        }
        Ok(!self.sessions.is_empty())
    }

    /// Indexes one batch of records and returns the sessions that are fully indexed.
    pub(crate) fn index_some(&self, db: &Db) -> Result<Vec<i64>, Error> {
        let mut budget = BatchBudget { records: RECORDS_AT_ONCE, bytes: BYTES_AT_ONCE };
        let mut done = Vec::new();
        for &session in &self.sessions {
            if !index_session(db, session, &mut budget)? {
                break;
            }
            done.push(session);
        }
        Ok(done)
    }

    /// Removes sessions that are fully indexed. Called after the batch was committed.
    pub(crate) fn remove(&mut self, done: Vec<i64>) {
        for session in done {
            self.sessions.remove(&session);
        }
    }
}

/// Removes some items of a session from the search index, the last ones first, and returns their
/// number.
pub(crate) fn remove_some(db: &Db, session: i64) -> Result<usize, Error> {
    let (mut n_items, mut n_bytes) = (0, 0);
    while n_bytes < BYTES_REMOVED_AT_ONCE {
        let Some((key, size)) = last_item(db, session)? else { break };
        // The index must be told what to forget, so it goes first.
        matches::remove(db, key)?;
        db.execute("DELETE FROM items WHERE key = ?1", params![key])?;
        n_items += 1;
        n_bytes += usize::try_from(size).unwrap_or(0) + BYTES_PER_ITEM;
    }
    if n_items == 0 {
        db.execute("DELETE FROM indexed WHERE session = ?1", params![session])?;
    }
    Ok(n_items)
}

/// Returns the key of a session's last item in the search index, and the size of its text in bytes.
fn last_item(db: &Db, session: i64) -> Result<Option<(i64, i64)>, Error> {
    db.first(
        "SELECT key, octet_length(text) FROM items WHERE session = ?1
         ORDER BY seq DESC, key DESC LIMIT 1",
        params![session],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// Number of records and bytes that still fit into a batch of indexing.
struct BatchBudget {
    records: usize,
    bytes: usize,
}

impl BatchBudget {
    fn is_left(&self) -> bool {
        self.records > 0 && self.bytes > 0
    }
}

fn all_behind(db: &Db) -> Result<Vec<i64>, Error> {
    db.all(
        "SELECT key FROM sessions LEFT JOIN indexed ON indexed.session = key
         WHERE coalesce(indexed.seq, 0) <
               (SELECT max(seq) FROM records WHERE records.session = key)",
        params![],
        |row| row.get(0),
    )
}

/// Adds the missing records of a session to the search index. Returns false if the budget was used
/// up first.
fn index_session(db: &Db, session: i64, budget: &mut BatchBudget) -> Result<bool, Error> {
    // A session that is gone gets nothing new, though its records may still be there.
    let Some(start) = indexed(db, session)? else { return Ok(true) };
    // One more than fits shows whether there are more.
    let limit = budget.records as i64 + 1;
    let sql = "SELECT seq, at, response, body, cuts, sum FROM records
         WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
    let mut end = start;
    let mut is_done = true;
    db.each(sql, params![session, int(start), limit], |row| {
        if !budget.is_left() {
            is_done = false;
            return Ok(false);
        }
        budget.records -= 1;
        budget.bytes = budget.bytes.saturating_sub(index_record(db, session, row)?);
        end = seq(row.get(0)?);
        Ok(true)
    })?;
    if end > start {
        db.execute(
            "INSERT INTO indexed (session, seq) VALUES (?1, ?2)
             ON CONFLICT (session) DO UPDATE SET seq = excluded.seq",
            params![session, int(end)],
        )?;
    }
    Ok(is_done)
}

/// Returns the sequence number up to which a session is indexed; `None` if there is no such
/// session.
fn indexed(db: &Db, session: i64) -> Result<Option<Seq>, Error> {
    Ok(db.first("SELECT coalesce(indexed.seq, 0) FROM sessions LEFT JOIN indexed ON indexed.session = key
         WHERE key = ?1", params![session], |row| row.get(0))?.map(seq))
}

/// Adds the texts of a record to the search index and returns their size in bytes.
fn index_record(db: &Db, session: i64, row: &Row<'_>) -> Result<usize, Error> {
    let seq = seq(row.get(0)?);
    let response = row.get::<Option<String>>(2).unwrap_or_default().map(ResponseId::new);
    let at = RecordPlace { session, seq, response: response.as_ref() };
    let items = match items_of(db, at, row) {
        Ok(items) => items,
        // It stays damaged: to stop here would be to stop for ever.
        Err(error) if error.is_damage() => {
            tracing::error!(session, %seq, %error, "a record cannot be searched");
            return Ok(0);
        }
        Err(error) => return Err(error),
    };
    for item in &items {
        insert(db, at, row.get(1)?, item)?;
    }
    Ok(items.iter().map(|it| it.text.len()).sum())
}

fn items_of(db: &Db, at: RecordPlace<'_>, row: &Row<'_>) -> Result<Vec<Item>, Error> {
    let body = body::restore(db, checked(row)?.kept)?;
    item::items(db, at, &event_from_body(&body))
}

fn insert(db: &Db, at: RecordPlace<'_>, moment: i64, item: &Item) -> Result<(), Error> {
    let sql =
        "INSERT INTO items (session, seq, at, kind, message, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               RETURNING key";
    let key = db.one(
        sql,
        params![at.session, int(at.seq), moment, item.kind.word(), item.message, item.text,],
        |row| row.get(0),
    )?;
    matches::add(db, key, &item.text)
}
