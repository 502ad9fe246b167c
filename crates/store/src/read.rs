//! Reading the log: a range of it, with or without the deltas that later records cover.
//!
//! The work is bounded by what is returned and by the deltas of the range that are not folded yet,
//! never by the length of the session.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use transcript::{Millis, Record, ResponseId, Seq, SessionId, event_from_body, to_json};

use crate::body::{self, Kept};
use crate::sql::{int, seq};
use crate::stream::{Delta, StreamRow};
use crate::{Error, session};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRange {
    pub after: Seq,
    /// Read the log as it was at this number.
    pub up_to: Option<Seq>,
    /// How many records to return at most.
    pub limit: usize,
    /// Every record as it was appended. Otherwise deltas that a closing record covers are left out,
    /// and those of closed output are merged.
    pub deltas: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub records: Vec<Stored>,
    /// Of the session, at the moment of reading; zero if there is no such session.
    pub head: Seq,
}

/// A record with its body as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub seq: Seq,
    pub at: Millis,
    pub session_id: SessionId,
    pub response_id: Option<ResponseId>,
    pub body: String,
}

impl Stored {
    pub fn to_json(&self) -> String {
        to_json(self.seq, self.at, &self.session_id, self.response_id.as_ref(), &self.body)
    }

    /// Typed. Fields that this version does not know are in `body` alone.
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

pub(crate) fn read(db: &Connection, id: &SessionId, range: ReadRange) -> Result<Page, Error> {
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

/// The body of one record that is not a delta.
pub(crate) fn record_at(db: &Connection, session: i64, at: Seq) -> Result<Option<String>, Error> {
    let kept = db
        .prepare_cached("SELECT body, cuts FROM records WHERE session = ?1 AND seq = ?2")?
        .query_row(params![session, int(at)], |row| {
            Ok(Kept { body: row.get(0)?, cuts: row.get(1)? })
        })
        .optional()?;
    kept.map(|kept| body::restore(db, kept)).transpose()
}

/// Records from `first` on of messages that wait, by their index.
pub(crate) fn about_queue(
    db: &Connection,
    id: &SessionId,
    session: i64,
    first: Seq,
) -> Result<Vec<Stored>, Error> {
    let mut find = db.prepare_cached(ABOUT_QUEUE)?;
    let mut rows = find.query(params![session, int(first)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(record(db, id, row)?);
    }
    Ok(found)
}

/// The condition is that of the index, to the letter. Left to itself SQLite takes the primary key.
pub(crate) const ABOUT_QUEUE: &str = r#"
    SELECT seq, at, response, body, cuts FROM records INDEXED BY records_about_queue
    WHERE session = ?1 AND seq >= ?2
      AND (body GLOB '{"type":"message_*' OR body GLOB '{"type":"queue_*')
    ORDER BY seq"#;

fn record(db: &Connection, id: &SessionId, row: &Row<'_>) -> Result<Stored, Error> {
    let kept = Kept { body: row.get(3)?, cuts: row.get(4)? };
    Ok(Stored {
        seq: seq(row.get(0)?),
        at: Millis(row.get(1)?),
        session_id: id.clone(),
        response_id: row.get::<_, Option<String>>(2)?.map(ResponseId::new),
        body: body::restore(db, kept)?,
    })
}

/// A piece of a session's log: `after < seq <= end`, seen from `horizon`.
#[derive(Clone, Copy)]
pub(crate) struct Span<'a> {
    pub(crate) id: &'a SessionId,
    pub(crate) session: i64,
    pub(crate) after: Seq,
    pub(crate) end: Seq,
    /// A stream that closes behind this counts as open.
    pub(crate) horizon: Seq,
    /// Only records of this run.
    pub(crate) response: Option<&'a ResponseId>,
}

impl Span<'_> {
    fn every_record(mut self, db: &Connection, limit: usize) -> Result<Vec<Stored>, Error> {
        // Numbers have no gaps.
        self.end = self.end.min(Seq(self.after.0.saturating_add(limit as u64)));
        let mut found = self.records(db, limit)?;
        let (folded, young): (Vec<_>, Vec<_>) =
            self.streams(db)?.into_iter().partition(StreamRow::is_folded);
        for stream in folded {
            found.extend(self.one_by_one(&stream, stream.deltas(db)?));
        }
        found.extend(self.young(db, young, limit)?);
        found.sort_unstable_by_key(|it| it.seq);
        Ok(found)
    }

    pub(crate) fn without_covered(
        mut self,
        db: &Connection,
        limit: usize,
    ) -> Result<Vec<Stored>, Error> {
        let mut found = self.records(db, limit)?;
        if found.len() == limit {
            self.end = found.last().map_or(self.after, |it| it.seq);
        }
        let mut young = Vec::new();
        for stream in self.streams(db)? {
            match (stream.is_closed(self.horizon), stream.is_folded()) {
                (true, _) if stream.is_output() => {
                    let merged = stream.merged(self.id, stream.deltas(db)?);
                    found.extend(merged.into_iter().filter(|it| self.contains(it.seq)));
                }
                (true, _) => (),
                (false, true) => found.extend(self.one_by_one(&stream, stream.deltas(db)?)),
                (false, false) => young.push(stream),
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

    fn records(&self, db: &Connection, limit: usize) -> Result<Vec<Stored>, Error> {
        let mut find = db.prepare_cached(
            "SELECT seq, at, response, body, cuts FROM records
             WHERE session = ?1 AND seq > ?2 AND seq <= ?3 AND (?4 IS NULL OR response = ?4)
             ORDER BY seq LIMIT ?5",
        )?;
        let response = self.response.map(ResponseId::as_str);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows =
            find.query(params![self.session, int(self.after), int(self.end), response, limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(record(db, self.id, row)?);
        }
        Ok(found)
    }

    fn streams(&self, db: &Connection) -> Result<Vec<StreamRow>, Error> {
        let mut streams = StreamRow::overlapping(db, self.session, self.after, self.end)?;
        if self.response.is_some() {
            streams.retain(|it| it.response.as_ref() == self.response);
        }
        Ok(streams)
    }

    fn one_by_one(&self, stream: &StreamRow, deltas: Vec<Delta>) -> Vec<Stored> {
        let inside = deltas.into_iter().filter(|it| self.contains(it.seq));
        inside.map(|it| stream.stored(self.id, it)).collect()
    }

    /// The deltas of these streams, none of which is folded.
    fn young(
        &self,
        db: &Connection,
        streams: Vec<StreamRow>,
        limit: usize,
    ) -> Result<Vec<Stored>, Error> {
        let mut found = Vec::new();
        if streams.is_empty() {
            return Ok(found);
        }
        let streams: HashMap<i64, StreamRow> = streams.into_iter().map(|it| (it.key, it)).collect();
        let mut find = db.prepare_cached(
            "SELECT stream, seq, at, offset, text FROM deltas
             WHERE session = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq",
        )?;
        let mut rows = find.query(params![self.session, int(self.after), int(self.end)])?;
        while let Some(row) = rows.next()? {
            let Some(stream) = streams.get(&row.get(0)?) else { continue };
            if found.len() == limit {
                break;
            }
            let delta = Delta {
                seq: seq(row.get(1)?),
                at: Millis(row.get(2)?),
                offset: row.get::<_, Option<i64>>(3)?.map(i64::cast_unsigned),
                text: row.get(4)?,
            };
            found.push(stream.stored(self.id, delta));
        }
        Ok(found)
    }
}
