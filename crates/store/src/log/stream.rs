//! Streams and their deltas as they are kept: row by row while young, packed once folded.
//!
//! The fields that all deltas of a stream share are kept once, as its *head*: the delta event with an
//! empty delta. Every way of reading goes through [`StreamRow`], so it cannot matter whether a stream
//! is folded.

use std::ops::Range;

use transcript::stream::{self, StreamKey};
use transcript::{
    Event, Millis, OutputStream, Record, ResponseId, Seq, SessionId, event_from_body,
};

use crate::Error;
use crate::files::connection::{int, seq};
use crate::log::read::{Stored, record_at};
use crate::log::{blob, pack};
use crate::sql::{Cell, Db, Row, params};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delta {
    pub(crate) seq: Seq,
    pub(crate) at: Millis,
    pub(crate) offset: Option<u64>,
    pub(crate) text: String,
}

/// Returns the name of a stream, which is unique within its session.
pub(crate) fn name(key: &StreamKey) -> String {
    match key {
        StreamKey::Text(id) => format!("text:{id}"),
        StreamKey::Thinking(id) => format!("thinking:{id}"),
        StreamKey::Arguments(id) => format!("arguments:{id}"),
        StreamKey::Output(id, OutputStream::Stdout) => format!("stdout:{id}"),
        StreamKey::Output(id, OutputStream::Stderr) => format!("stderr:{id}"),
    }
}

pub(crate) fn head_of(event: &Event) -> Event {
    with_delta(event, Some(0), String::new())
}

fn with_delta(head: &Event, at: Option<u64>, text: String) -> Event {
    let mut event = head.clone();
    match &mut event {
        Event::TextDelta { delta, .. }
        | Event::ThinkingDelta { delta, .. }
        | Event::ToolArgumentsDelta { delta, .. } => *delta = text,
        Event::ToolOutputDelta { offset, delta, .. } => {
            *offset = at.unwrap_or(0);
            *delta = text;
        }
        // Only deltas continue a stream.
        _ => (),
    }
    event
}

pub(crate) struct StreamRow {
    pub(crate) key: i64,
    pub(crate) session: i64,
    pub(crate) response: Option<ResponseId>,
    pub(crate) head: Event,
    first: Seq,
    last: Option<Seq>,
    closed: Option<Seq>,
    folded: Folded,
}

/// Place where the deltas of a stream are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folded {
    /// The deltas are in the table `deltas`; of a long stream that is being folded, the first ones
    /// are in `segments`.
    No,
    /// The deltas are packed in the stream's own row.
    Whole,
    Segments,
}

const COLUMNS: &str = "key, session, response, head, first_seq, last_seq, closed_seq, folded";

impl StreamRow {
    fn from_row(row: &Row<'_>) -> Result<Self, Error> {
        Ok(Self {
            key: row.get(0)?,
            session: row.get(1)?,
            response: row.get::<Option<String>>(2)?.map(ResponseId::new),
            head: event_from_body(row.text(3)?),
            first: seq(row.get(4)?),
            last: row.get::<Option<i64>>(5)?.map(seq),
            closed: row.get::<Option<i64>>(6)?.map(seq),
            folded: match row.get::<i64>(7)? {
                1 | 4 => Folded::Whole,
                3 => Folded::Segments,
                _ => Folded::No,
            },
        })
    }

    pub(crate) fn named(db: &Db, session: i64, name: &str) -> Result<Option<Self>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM streams WHERE session = ?1 AND name = ?2");
        db.first(&sql, params![session, name], Self::from_row)
    }

    /// Returns the streams that have a delta in `after < seq <= end`, and possibly others that are
    /// close to it.
    pub(crate) fn overlapping(
        db: &Db,
        session: i64,
        after: Seq,
        end: Seq,
    ) -> Result<Vec<Self>, Error> {
        // What was open at `after` was open when the last stream before it began.
        let low: Option<i64> = db.first(
            "SELECT low FROM streams WHERE session = ?1 AND first_seq <= ?2
                 ORDER BY first_seq DESC LIMIT 1",
            params![session, int(after)],
            |row| row.get(0),
        )?;
        let sql = format!(
            "SELECT {COLUMNS} FROM streams WHERE session = ?1 AND first_seq BETWEEN ?2 AND ?3
             AND (last_seq IS NULL OR last_seq > ?4)"
        );
        let low = low.unwrap_or_else(|| int(after));
        db.all(&sql, params![session, low, int(end), int(after)], Self::from_row)
    }

    pub(crate) fn to_fold(db: &Db, limit: usize) -> Result<Vec<Self>, Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM streams WHERE folded = 0 AND closed_seq IS NOT NULL
             ORDER BY key LIMIT ?1"
        );
        db.all(&sql, params![limit as i64], Self::from_row)
    }

    /// Returns long streams that an earlier version has folded into one row.
    pub(crate) fn to_split(db: &Db, limit: usize) -> Result<Vec<Self>, Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM streams INDEXED BY streams_to_split
             WHERE folded = 1 AND length(deltas) > 16384 ORDER BY key LIMIT ?1"
        );
        db.all(&sql, params![limit as i64], Self::from_row)
    }

    pub(crate) fn is_output(&self) -> bool {
        matches!(self.head, Event::ToolOutputDelta { .. })
    }

    /// Returns whether the stream has no delta left in the table `deltas`.
    pub(crate) fn is_folded(&self) -> bool {
        self.folded != Folded::No
    }

    pub(crate) fn is_closed(&self, horizon: Seq) -> bool {
        self.closed.is_some_and(|closed| closed <= horizon)
    }

    pub(crate) fn is_closed_at(&self, seq: Seq) -> bool {
        self.closed == Some(seq)
    }

    pub(crate) fn first(&self) -> Seq {
        self.first
    }

    /// Returns all deltas of the stream, in order.
    pub(crate) fn deltas(&self, db: &Db) -> Result<Vec<Delta>, Error> {
        let mut deltas = self.packed(db, Seq(0)..Seq(u64::MAX), usize::MAX)?;
        if !self.is_folded() {
            deltas.extend(self.rows(db, usize::MAX)?);
        }
        Ok(deltas)
    }

    /// Returns the first `limit` deltas of the stream that are in the table `deltas`.
    pub(crate) fn rows(&self, db: &Db, limit: usize) -> Result<Vec<Delta>, Error> {
        let (first, last) = (int(self.first), self.last.map_or(i64::MAX, int));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        db.all(
            "SELECT seq, at, \"offset\", text FROM deltas
             WHERE session = ?1 AND seq BETWEEN ?2 AND ?3 AND stream = ?4 ORDER BY seq LIMIT ?5",
            params![self.session, first, last, self.key, limit],
            |row| {
                Ok(Delta {
                    seq: seq(row.get(0)?),
                    at: Millis(row.get(1)?),
                    offset: row.get::<Option<i64>>(2)?.map(i64::cast_unsigned),
                    text: row.get(3)?,
                })
            },
        )
    }

    /// Returns the stream's packed deltas with `range.start < seq <= range.end`, in order. Stops
    /// after the segment in which `limit` is reached.
    pub(crate) fn packed(
        &self,
        db: &Db,
        Range { start: after, end }: Range<Seq>,
        limit: usize,
    ) -> Result<Vec<Delta>, Error> {
        let is_inside = |it: &Delta| after < it.seq && it.seq <= end;
        Ok(match self.folded {
            // Only a closed stream is being folded.
            Folded::No if self.closed.is_none() => Vec::new(),
            Folded::No | Folded::Segments => self.segments(db, after..end, limit)?,
            Folded::Whole => self.unfold(db)?.into_iter().filter(is_inside).collect(),
        })
    }

    fn segments(
        &self,
        db: &Db,
        Range { start: after, end }: Range<Seq>,
        limit: usize,
    ) -> Result<Vec<Delta>, Error> {
        let mut deltas = Vec::new();
        let sql = "SELECT first_seq, deltas, text FROM segments
             WHERE session = ?1 AND stream = ?2 AND first_seq <= ?4 AND first_seq >=
               coalesce((SELECT max(first_seq) FROM segments
                       WHERE session = ?1 AND stream = ?2 AND first_seq <= ?3), 0)
             ORDER BY first_seq";
        db.each(sql, params![self.session, self.key, int(after), int(end)], |row| {
            let text = Text::from_cell(row.cell(2)?)?.read()?.unwrap_or_default();
            let packed = row.cell(1)?.bytes().unwrap_or_default();
            let segment = self.unpack(seq(row.get(0)?), packed, &text)?.into_iter();
            deltas.extend(segment.filter(|it| after < it.seq && it.seq <= end));
            Ok(deltas.len() < limit)
        })?;
        Ok(deltas)
    }

    pub(crate) fn has_segments(&self, db: &Db) -> Result<bool, Error> {
        db.exists(
            "SELECT 1 FROM segments WHERE session = ?1 AND stream = ?2",
            params![self.session, self.key],
        )
    }

    fn unfold(&self, db: &Db) -> Result<Vec<Delta>, Error> {
        let (packed, kept) =
            db.one("SELECT deltas, text FROM streams WHERE key = ?1", params![self.key], |row| {
                Ok((row.get::<Vec<u8>>(0)?, Text::from_cell(row.cell(1)?)?))
            })?;
        let text = match kept.read()? {
            Some(text) => text,
            None => self.closing_text(db)?.unwrap_or_default(),
        };
        self.unpack(self.first, &packed, &text)
    }

    fn unpack(&self, first: Seq, packed: &[u8], text: &str) -> Result<Vec<Delta>, Error> {
        pack::unpack(first, self.is_output(), packed, text)
            .ok_or_else(|| Error::Damaged(format!("stream {} cannot be unfolded", self.key)))
    }

    /// Returns the text of the record that closed the stream; `None` if the stream is open or that
    /// record has no text.
    pub(crate) fn closing_text(&self, db: &Db) -> Result<Option<String>, Error> {
        let Some(closed) = self.closed else { return Ok(None) };
        let Some(body) = record_at(db, self.session, closed)? else { return Ok(None) };
        Ok(match event_from_body(&body) {
            Event::TextDone { text, .. } | Event::ThinkingDone { text, .. } => Some(text),
            Event::ToolArgumentsDone { arguments, .. } => Some(arguments),
            // Other closing records do not repeat what they close.
            _ => None,
        })
    }

    pub(crate) fn stored(&self, session: &SessionId, delta: Delta) -> Stored {
        let event = with_delta(&self.head, delta.offset, delta.text);
        self.stored_event(session, delta.seq, delta.at, event)
    }

    /// Returns the deltas as records, with neighbours merged. Each has the sequence number and the
    /// time of its last delta.
    pub(crate) fn merged(&self, session: &SessionId, deltas: Vec<Delta>) -> Vec<Stored> {
        let mut merged: Vec<(Seq, Millis, Event)> = Vec::new();
        for delta in deltas {
            let event = with_delta(&self.head, delta.offset, delta.text);
            if let Some((last_seq, last_at, last)) = merged.last_mut()
                && stream::merge(last, &event)
            {
                (*last_seq, *last_at) = (delta.seq, delta.at);
                continue;
            }
            merged.push((delta.seq, delta.at, event));
        }
        let stored = |(seq, at, event)| self.stored_event(session, seq, at, event);
        merged.into_iter().map(stored).collect()
    }

    fn stored_event(&self, session: &SessionId, seq: Seq, at: Millis, event: Event) -> Stored {
        Stored::from(&Record::new(seq, at, session.clone(), self.response.clone(), event))
    }
}

/// The stored text of a folded stream.
enum Text {
    OfClosing,
    Plain(Vec<u8>),
    Compressed(Vec<u8>),
}

impl Text {
    /// PostgreSQL has both forms as bytes. No text begins like compressed data: its second byte cannot
    /// follow its first in UTF-8.
    fn from_cell(cell: Cell<'_>) -> Result<Self, Error> {
        Ok(match cell {
            Cell::Null => Self::OfClosing,
            Cell::Bytes(data) if data.starts_with(&ZSTD_MAGIC) => Self::Compressed(data.to_vec()),
            cell => Self::Plain(cell.bytes().ok_or_else(wrong_type)?.to_vec()),
        })
    }

    /// Returns the text; `None` if it is in the record that closed the stream.
    fn read(self) -> Result<Option<String>, Error> {
        match self {
            Self::OfClosing => Ok(None),
            Self::Plain(text) => utf8(text).map(Some),
            Self::Compressed(data) => utf8(blob::decompress(&data)?).map(Some),
        }
    }
}

/// First bytes of data that zstd has compressed.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

fn wrong_type() -> Error {
    Error::Damaged("a stream's text has a wrong type".to_owned())
}

fn utf8(bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|_| Error::Damaged("a stream's text is not text".to_owned()))
}
