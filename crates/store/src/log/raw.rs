//! Raw output of programs, beside the log.
//!
//! Lines come in batches and are compressed together: neighbours are much alike. Each says which
//! records were made of it. They are kept for some time and then removed; the log does not need them.

use std::ops::RangeInclusive;

use transcript::{Millis, RawLine, Seq, SessionId};

use crate::files::connection::{int, seq};
use crate::log::{blob, session};
use crate::sql::{Db, Params, params};
use crate::{AppendError, Error, Store};

/// A raw line of a program's output, with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedLine {
    /// Number of the line in its session: 1, 2, 3, ...
    pub number: u64,
    /// The raw line.
    pub line: RawLine,
}

/// Number of bytes of text with which a page of raw lines ends.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of batches of raw lines that are removed in one transaction.
const SWEPT_AT_ONCE: usize = 1000;

impl Store {
    /// Stores the next raw lines of a session. Does nothing if the session does not exist.
    pub async fn add_raw(
        &self,
        session: &SessionId,
        lines: Vec<RawLine>,
    ) -> Result<(), AppendError> {
        let session = session.clone();
        self.write(move |db| match session::key(db, &session)? {
            Some(key) => add(db, key, &lines),
            None => Ok(()),
        })
        .await
    }

    /// Returns up to `limit` raw lines of a session after a line number, in order.
    pub async fn raw(
        &self,
        session: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NumberedLine>, Error> {
        self.read_session(session, move |db, _, key| {
            // Batches follow each other without a gap: the first one needed is the last that begins
            // early enough.
            let sql = "SELECT first, lines FROM raw_lines
                 WHERE session = ?1 AND last > ?2 AND first >=
                   coalesce((SELECT max(first) FROM raw_lines WHERE session = ?1 AND first <= ?2), 0)
                 ORDER BY first";
            page(db, sql, params![key, number(after)], limit, |it| it.number > after)
        })
        .await
    }

    /// Returns up to `limit` raw lines after a line number from which a range of records was made,
    /// including lines between them that made no record.
    pub async fn raw_of(
        &self,
        session: &SessionId,
        records: RangeInclusive<Seq>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NumberedLine>, Error> {
        let (first, last) = (int(*records.start()), int(*records.end()));
        self.read_session(session, move |db, _, key| {
            // A batch may begin with a line that made no record, and so stands before the batch's first.
            let sql = "SELECT first, lines FROM raw_lines
                 WHERE session = ?1 AND last > ?2 AND first_seq - 1 <= ?4 AND last_seq >= ?3
                 ORDER BY first";
            page(db, sql, params![key, number(after), first, last], limit, |it| {
                it.number > after && is_of(&it.line, &records)
            })
        })
        .await
    }

    /// Removes raw lines that were read before a time. Returns false if there may be more.
    pub async fn sweep_raw(&self, before: Millis) -> Result<bool, AppendError> {
        self.write(move |db| {
            let removed = db.execute(
                &format!(
                    "DELETE FROM raw_lines WHERE (session, first) IN
                     (SELECT session, first FROM raw_lines WHERE at < ?1 LIMIT {SWEPT_AT_ONCE})"
                ),
                params![before.0],
            )?;
            Ok(removed < SWEPT_AT_ONCE)
        })
        .await
    }
}

/// Returns whether a raw line belongs to one of the records.
fn is_of(line: &RawLine, records: &RangeInclusive<Seq>) -> bool {
    let made_any = line.from <= line.to;
    let begins_before_end = line.from <= *records.end();
    // What made none stands before the record that would have been its own.
    begins_before_end
        && if made_any { line.to >= *records.start() } else { line.from > *records.start() }
}

fn add(db: &Db, session: i64, lines: &[RawLine]) -> Result<(), Error> {
    let Some(newest) = lines.last() else { return Ok(()) };
    let last: Option<i64> = db.first(
        "SELECT last FROM raw_lines WHERE session = ?1 ORDER BY first DESC LIMIT 1",
        params![session],
        |row| row.get(0),
    )?;
    let first = last.unwrap_or(0) + 1;
    let made = || lines.iter().filter(|it| it.from <= it.to);
    let first_seq = made().map(|it| it.from).min().unwrap_or(newest.from);
    let last_seq = made().map(|it| it.to).max().unwrap_or(newest.to);
    db.execute(
        "INSERT INTO raw_lines (session, first, last, first_seq, last_seq, at, lines)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            session,
            first,
            first + lines.len() as i64 - 1,
            int(first_seq),
            int(last_seq),
            newest.at.0,
            pack(lines)?,
        ],
    )?;
    Ok(())
}

fn page(
    db: &Db,
    sql: &str,
    params: Params<'_>,
    limit: usize,
    is_wanted: impl Fn(&NumberedLine) -> bool,
) -> Result<Vec<NumberedLine>, Error> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    db.each(sql, params, |row| {
        let lines = unpack(row.get(0)?, &row.get::<Vec<u8>>(1)?)?;
        for line in lines.into_iter().filter(&is_wanted) {
            if found.len() >= limit || bytes >= PAGE_BYTES {
                return Ok(false);
            }
            bytes += line.line.text.len();
            found.push(line);
        }
        Ok(true)
    })?;
    Ok(found)
}

fn number(line: u64) -> i64 {
    i64::try_from(line).unwrap_or(i64::MAX)
}

/// Time, first and last record, and text of each raw line.
type Packed = Vec<(i64, u64, u64, String)>;

fn pack(lines: &[RawLine]) -> Result<Vec<u8>, Error> {
    let packed: Vec<_> = lines.iter().map(|it| (it.at.0, it.from.0, it.to.0, &it.text)).collect();
    let json = serde_json::to_vec(&packed).map_err(|it| Error::Damaged(it.to_string()))?;
    blob::compress(&json)
}

fn unpack(first: i64, packed: &[u8]) -> Result<Vec<NumberedLine>, Error> {
    let json = blob::decompress(packed)?;
    let lines: Packed =
        serde_json::from_slice(&json).map_err(|it| Error::Damaged(it.to_string()))?;
    let numbered = |(n, (at, from, to, text)): (u64, (i64, u64, u64, String))| {
        let line = RawLine { at: Millis(at), from: Seq(from), to: Seq(to), text };
        NumberedLine { number: n, line }
    };
    Ok((seq(first).0..).zip(lines).map(numbered).collect())
}
