//! Reading the log: a range of it, with or without the deltas that later records cover.
//!
//! The work is bounded by what is returned, by the deltas of the range that are not folded yet, and by
//! a segment of each stream; never by the length of a session or of a stream.

use std::collections::HashMap;

use transcript::{Millis, Record, ResponseId, Seq, SessionId, event_from_body, to_json};

use crate::Error;
use crate::files::connection::{int, seq};
use crate::log::body::{self, Kept};
use crate::log::damage::{KeptRecord, checked, is_object, stand_in};
use crate::log::fold_unrecognized::FoldUnrecognized;
use crate::log::session;
use crate::log::stream::{Delta, StreamRow};
use crate::sql::{Db, Row, params};

/// A range of a session's log to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRange {
    /// Sequence number after which records are read.
    pub after: Seq,
    /// Sequence number of the last record to read. The log is read as it was then; `None` for its
    /// current state.
    pub up_to: Option<Seq>,
    /// Maximum number of records to return.
    pub limit: usize,
    /// Whether to return every record as it was appended. Otherwise deltas that a closing record
    /// covers are left out, and those of closed output are merged.
    pub deltas: bool,
}

/// Records of a range of a session's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The records, in the order of their sequence numbers.
    pub records: Vec<Stored>,
    /// Sequence number of the session's last record at the moment of reading; zero if there is no
    /// such session.
    pub head: Seq,
}

/// A record with its body as it was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Sequence number of the record.
    pub seq: Seq,
    /// Time of the record.
    pub at: Millis,
    /// Session of the record.
    pub session_id: SessionId,
    /// Run of the record; `None` if it belongs to none.
    pub response_id: Option<ResponseId>,
    /// JSON of the record's event.
    pub body: String,
}

impl Stored {
    /// Returns the JSON of the record.
    pub fn to_json(&self) -> String {
        to_json(self.seq, self.at, &self.session_id, self.response_id.as_ref(), &self.body)
    }

    /// Parses the record. Fields that this version does not know remain in `body` alone.
    pub fn record(&self) -> Record {
        let (session, response) = (self.session_id.clone(), self.response_id.clone());
        Record::new(self.seq, self.at, session, response, event_from_body(&self.body))
    }
}

impl From<&Record> for Stored {
    fn from(record: &Record) -> Self {
        Self {
            seq: record.seq,
            at: record.at,
            session_id: record.session_id.clone(),
            response_id: record.response_id.clone(),
            body: record.body(),
        }
    }
}

pub(crate) fn read(db: &Db, id: &SessionId, range: ReadRange) -> Result<Page, Error> {
    let Some(session) = session::key(db, id)? else {
        return Ok(Page { records: Vec::new(), head: Seq(0) });
    };
    let head = session::head(db, session)?;
    let horizon = range.up_to.map_or(head, |it| it.min(head));
    let span = Span { id, session, after: range.after, end: horizon, horizon, response: None };
    let records = match range.deltas {
        true => span.every_record(db, range.limit)?,
        false => span.without_covered(db, range.limit)?,
    };
    Ok(Page { records, head })
}

/// Returns all records of a session that are not deltas.
pub(crate) fn all_records(db: &Db, id: &SessionId, session: i64) -> Result<Vec<Stored>, Error> {
    let head = session::head(db, session)?;
    let all = Span { id, session, after: Seq(0), end: head, horizon: head, response: None };
    all.records(db, usize::MAX)
}

/// Returns the body of the record with a sequence number; `None` if there is none or it is a delta.
pub(crate) fn record_at(db: &Db, session: i64, at: Seq) -> Result<Option<String>, Error> {
    let kept = db.first(
        "SELECT body, cuts FROM records WHERE session = ?1 AND seq = ?2",
        params![session, int(at)],
        |row| Ok(Kept { body: row.get(0)?, cuts: row.get(1)? }),
    )?;
    kept.map(|kept| body::restore(db, kept)).transpose()
}

/// Returns the records about the queue from `first` on, by their index.
pub(crate) fn about_queue(
    db: &Db,
    id: &SessionId,
    session: i64,
    first: Seq,
) -> Result<Vec<Stored>, Error> {
    let sql = db.pick(ABOUT_QUEUE, ABOUT_QUEUE_POSTGRES);
    db.all(sql, params![session, int(first)], |row| record(db, id, row))
}

/// Query for the records about the queue. The condition is exactly that of the index, which is
/// named because SQLite would choose the primary key.
pub(crate) const ABOUT_QUEUE: &str = r#"
    SELECT seq, at, response, body, cuts, sum FROM records INDEXED BY records_about_queue
    WHERE session = ?1 AND seq >= ?2
      AND (body GLOB '{"type":"message_*' OR body GLOB '{"type":"queue_*')
    ORDER BY seq"#;

/// The same query for PostgreSQL.
const ABOUT_QUEUE_POSTGRES: &str = r#"
    SELECT seq, at, response, body, cuts, sum FROM records
    WHERE session = ?1 AND seq >= ?2
      AND (body LIKE '{"type":"message\_%' OR body LIKE '{"type":"queue\_%')
    ORDER BY seq"#;

/// Returns the record of a database row, or the notice that replaces a damaged one.
fn record(db: &Db, id: &SessionId, row: &Row<'_>) -> Result<Stored, Error> {
    match sound_record(db, id, row) {
        Err(error) if error.is_damage() => {
            let seq = seq(row.get(0)?);
            tracing::error!(session = %id, %seq, %error, "a record is damaged");
            let at = Millis(row.get(1).unwrap_or_default());
            let run = row.get::<Option<String>>(2).unwrap_or_default().map(ResponseId::new);
            Ok(stand_in(id, seq, at, run))
        }
        record => record,
    }
}

fn sound_record(db: &Db, id: &SessionId, row: &Row<'_>) -> Result<Stored, Error> {
    let KeptRecord { seq, at, response, kept } = checked(row)?;
    let body = body::restore(db, kept)?;
    if !is_object(&body) {
        return Err(Error::Damaged("the body is no JSON object".to_owned()));
    }
    let response_id = response.map(ResponseId::new);
    Ok(Stored { seq, at, session_id: id.clone(), response_id, body })
}

/// A part of a session's log, `after < seq <= end`, as it was when `horizon` was its last record.
#[derive(Clone, Copy)]
pub(crate) struct Span<'a> {
    pub(crate) id: &'a SessionId,
    pub(crate) session: i64,
    pub(crate) after: Seq,
    pub(crate) end: Seq,
    /// Sequence number as of which the log is read. A stream that closed later counts as open.
    pub(crate) horizon: Seq,
    /// Run whose records are read; `None` for all records.
    pub(crate) response: Option<&'a ResponseId>,
}

impl Span<'_> {
    fn every_record(mut self, db: &Db, limit: usize) -> Result<Vec<Stored>, Error> {
        // Numbers have no gaps.
        self.end = self.end.min(Seq(self.after.0.saturating_add(limit as u64)));
        let mut found = self.records(db, limit)?;
        let mut young = Vec::new();
        for stream in self.streams(db)? {
            found.extend(self.packed(db, &stream, limit)?);
            if !stream.is_folded() {
                young.push(stream);
            }
        }
        found.extend(self.young(db, young, limit)?);
        found.sort_by_key(|it| it.seq);
        Ok(self.with_missing(found))
    }

    /// Adds a notice for each missing record. Sequence numbers have no gaps, so a missing record
    /// could not be read.
    fn with_missing(&self, found: Vec<Stored>) -> Vec<Stored> {
        let expected = self.end.0.saturating_sub(self.after.0);
        if found.len() as u64 == expected {
            return found;
        }
        let mut all = Vec::with_capacity(found.len());
        let mut found = found.into_iter().peekable();
        let mut at = Millis(0);
        for seq in (self.after.0 + 1..=self.end.0).map(Seq) {
            let next = found.next_if(|it| it.seq == seq);
            let next = next.unwrap_or_else(|| stand_in(self.id, seq, at, None));
            at = next.at;
            all.push(next);
            // A replaced record may also have been found as a delta.
            while found.next_if(|it| it.seq == seq).is_some() {}
        }
        all
    }

    pub(crate) fn without_covered(mut self, db: &Db, limit: usize) -> Result<Vec<Stored>, Error> {
        let mut found = self.records(db, limit)?;
        if found.len() == limit {
            self.end = found.last().map_or(self.after, |it| it.seq);
        }
        let mut young = Vec::new();
        for stream in self.streams(db)? {
            match (stream.is_closed(self.horizon), stream.is_folded()) {
                (true, _) if stream.is_output() => {
                    let deltas = self.unless_damaged(&stream, stream.deltas(db))?;
                    let merged = stream.merged(self.id, deltas);
                    found.extend(merged.into_iter().filter(|it| self.contains(it.seq)));
                }
                (true, _) => (),
                (false, is_folded) => {
                    found.extend(self.packed(db, &stream, limit)?);
                    if !is_folded {
                        young.push(stream);
                    }
                }
            }
        }
        found.extend(self.young(db, young, limit)?);
        found.sort_unstable_by_key(|it| it.seq);
        found.truncate(limit);
        Ok(found)
    }

    fn contains(&self, seq: Seq) -> bool {
        self.after < seq && seq <= self.end
    }

    fn records(&self, db: &Db, limit: usize) -> Result<Vec<Stored>, Error> {
        match self.records_at_once(db, limit) {
            Err(error) if error.is_damage() => self.records_one_by_one(db, limit),
            found => found,
        }
    }

    /// Reads the records one by one, because some pages of the table cannot be read.
    fn records_one_by_one(&self, db: &Db, limit: usize) -> Result<Vec<Stored>, Error> {
        let mut found = Vec::new();
        for seq in (self.after.0 + 1..=self.end.0).map(Seq) {
            if found.len() == limit {
                break;
            }
            let sql = "SELECT seq, at, response, body, cuts, sum FROM records
                       WHERE session = ?1 AND seq = ?2";
            let found_here = db.first(sql, params![self.session, int(seq)], |row| {
                let record = record(db, self.id, row)?;
                let is_wanted =
                    self.response.is_none() || self.response == record.response_id.as_ref();
                Ok(is_wanted.then_some(record))
            });
            match found_here {
                // No row: a delta.
                Ok(record) => found.extend(record.flatten()),
                Err(error) if error.is_damage() => {
                    tracing::error!(session = %self.id, %seq, %error, "a record cannot be read");
                    found.push(stand_in(self.id, seq, Millis(0), self.response.cloned()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn records_at_once(&self, db: &Db, limit: usize) -> Result<Vec<Stored>, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (session, after, end) = (self.session, int(self.after), int(self.end));
        let mut found = Vec::new();
        let mut fold = FoldUnrecognized::default();
        match self.response {
            Some(response) => {
                let sql = "SELECT seq, at, response, body, cuts, sum FROM records
                           WHERE session = ?1 AND seq > ?2 AND seq <= ?3 AND response = ?5
                           ORDER BY seq LIMIT ?4";
                let params = params![session, after, end, limit, response.as_str()];
                db.each(sql, params, |row| {
                    found.extend(fold.take(record(db, self.id, row)?));
                    Ok(true)
                })?;
            }
            None => {
                let sql = "SELECT seq, at, response, body, cuts, sum FROM records
                           WHERE session = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4";
                found = db.all(sql, params![session, after, end, limit], |row| {
                    record(db, self.id, row)
                })?;
            }
        }
        found.extend(fold.finish());
        Ok(found)
    }

    fn streams(&self, db: &Db) -> Result<Vec<StreamRow>, Error> {
        let mut streams = StreamRow::overlapping(db, self.session, self.after, self.end)?;
        if self.response.is_some() {
            streams.retain(|it| it.response.as_ref() == self.response);
        }
        Ok(streams)
    }

    fn packed(&self, db: &Db, stream: &StreamRow, limit: usize) -> Result<Vec<Stored>, Error> {
        let deltas = self.unless_damaged(stream, stream.packed(db, self.after..self.end, limit))?;
        Ok(deltas.into_iter().map(|it| stream.stored(self.id, it)).collect())
    }

    /// Returns the deltas of a stream. If they are damaged, this is logged and there are none.
    fn unless_damaged(
        &self,
        stream: &StreamRow,
        deltas: Result<Vec<Delta>, Error>,
    ) -> Result<Vec<Delta>, Error> {
        match deltas {
            Err(error) if error.is_damage() => {
                let (session, first) = (self.id, stream.first());
                tracing::error!(%session, %first, %error, "the deltas of a stream are damaged");
                Ok(Vec::new())
            }
            deltas => deltas,
        }
    }

    /// Returns the deltas of streams that are not folded.
    fn young(&self, db: &Db, streams: Vec<StreamRow>, limit: usize) -> Result<Vec<Stored>, Error> {
        let mut found = Vec::new();
        if streams.is_empty() {
            return Ok(found);
        }
        let streams: HashMap<i64, StreamRow> = streams.into_iter().map(|it| (it.key, it)).collect();
        let sql = "SELECT stream, seq, at, \"offset\", text FROM deltas
                   WHERE session = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq";
        db.each(sql, params![self.session, int(self.after), int(self.end)], |row| {
            let Some(stream) = streams.get(&row.get(0)?) else { return Ok(true) };
            if found.len() == limit {
                return Ok(false);
            }
            let delta = Delta {
                seq: seq(row.get(1)?),
                at: Millis(row.get(2)?),
                offset: row.get::<Option<i64>>(3)?.map(i64::cast_unsigned),
                text: row.get(4)?,
            };
            found.push(stream.stored(self.id, delta));
            Ok(true)
        })?;
        Ok(found)
    }
}
