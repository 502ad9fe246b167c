//! Writing records: into which table each goes, and what is derived from it.
//!
//! The writer remembers the sessions that it writes to, so that a delta of a known stream is one
//! insert and no lookup. What it remembers may only be what the database says: after a transaction
//! has failed, the sessions it touched are forgotten.

use std::collections::HashMap;

use transcript::stream::{StreamKey, closed_by, continued_by, delta_of};
use transcript::{
    ClientId, Event, MessageId, Record, ResponseId, Seq, SessionId, SteerState, Summary,
};

use crate::files::connection::{int, seq};
use crate::log::message::{self, MessageKind};
use crate::log::stage::Staged;
use crate::log::stream::{self, StreamRow};
use crate::log::{blob, body, damage, session};
use crate::search::index::Backlog;
use crate::sql::{Db, params};
use crate::{AppendError, Error};

/// Maximum number of sessions that the writer remembers. When it is reached, all are forgotten,
/// which costs a few lookups.
const REMEMBERED: usize = 1024;

#[derive(Default)]
pub(crate) struct Sessions {
    remembered: HashMap<SessionId, Session>,
    /// Sessions to index for search. Some may be listed without need, because failed batches add to
    /// it too.
    pub(crate) backlog: Backlog,
    /// Number of records and bytes that the open transaction has written.
    pub(crate) written: Written,
    pub(crate) staged: Staged,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Written {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl Sessions {
    pub(crate) fn forget(&mut self, id: &SessionId) {
        self.remembered.remove(id);
    }

    /// Appends records to a session's log. The outer error aborts the whole batch, the inner one
    /// only this append.
    pub(crate) fn append(
        &mut self,
        db: &Db,
        id: &SessionId,
        expected: Seq,
        records: &[Record],
    ) -> Result<Result<(), AppendError>, Error> {
        let numbers = (expected.0.saturating_add(1)..).map(Seq);
        if !records.iter().zip(numbers).all(|(it, seq)| it.seq == seq && it.session_id == *id) {
            return Ok(Err(AppendError::Misnumbered));
        }
        let head = self.session(db, id)?.map_or(Seq(0), |it| it.head);
        if head != expected {
            return Ok(Err(AppendError::Conflict { head }));
        }
        if records.is_empty() {
            return Ok(Ok(()));
        }

        let session = match self.remembered.get_mut(id) {
            Some(session) => session,
            None => {
                let session = Session::create(db, id)?;
                self.remembered.entry(id.clone()).or_insert(session)
            }
        };
        if session.append(db, records)? {
            self.backlog.add(session.key);
        }
        self.written.records += records.len() as u64;
        self.written.bytes += session.take_bytes();
        Ok(Ok(()))
    }

    fn session(&mut self, db: &Db, id: &SessionId) -> Result<Option<&Session>, Error> {
        if !self.remembered.contains_key(id) {
            if self.remembered.len() >= REMEMBERED {
                self.remembered.clear();
            }
            if let Some(session) = Session::load(db, id)? {
                self.remembered.insert(id.clone(), session);
            }
        }
        Ok(self.remembered.get(id))
    }
}

pub(crate) struct Session {
    pub(crate) key: i64,
    pub(crate) head: Seq,
    pub(crate) summary: Summary,
    /// Open streams of the session that were needed so far.
    streams: HashMap<StreamKey, OpenStream>,
    /// Message of the run that was written to last.
    answer: Option<Answer>,
    /// Number of bytes that were written since `take_bytes` was last called.
    bytes: u64,
}

/// Effects of an append: whether the summary has changed, and whether any record was not a delta.
pub(crate) struct Added {
    is_changed: bool,
    has_records: bool,
}

struct OpenStream {
    key: i64,
    head: Event,
    response: Option<ResponseId>,
    /// Sequence number of the stream's last delta.
    last: Seq,
}

struct Answer {
    id: ResponseId,
    number: u64,
    open: bool,
}

impl Session {
    fn create(db: &Db, id: &SessionId) -> Result<Self, Error> {
        let summary = Summary::default();
        let key = session::insert(db, id, &summary)?;
        Ok(Self::new(key, Seq(0), summary))
    }

    fn load(db: &Db, id: &SessionId) -> Result<Option<Self>, Error> {
        let Some(key) = session::key(db, id)? else { return Ok(None) };
        let (head, summary) = (session::head(db, key)?, session::summary(db, key)?);
        Ok(Some(Self::new(key, head, summary)))
    }

    pub(crate) fn new(key: i64, head: Seq, summary: Summary) -> Self {
        Self { key, head, summary, streams: HashMap::new(), answer: None, bytes: 0 }
    }

    /// Appends records to the session. Returns false if all of them were stored as deltas.
    fn append(&mut self, db: &Db, records: &[Record]) -> Result<bool, Error> {
        let Added { is_changed, has_records } = self.add(db, records)?;
        if is_changed {
            session::update(db, self.key, &self.summary)?;
        }
        Ok(has_records)
    }

    /// Writes records and the rows that are derived from them, but not the session's own row.
    pub(crate) fn add(&mut self, db: &Db, records: &[Record]) -> Result<Added, Error> {
        let (mut is_changed, mut has_records) = (false, false);
        for record in records {
            self.remember_answer(db, record)?;
            if !self.insert_delta(db, record)? {
                self.insert_record(db, record)?;
                self.close_streams(db, record)?;
                self.derive(db, record)?;
                is_changed |= self.summary.apply(record);
                has_records = true;
            }
            self.head = record.seq;
        }
        Ok(Added { is_changed, has_records })
    }

    /// Returns the number of bytes that were written since the last call.
    pub(crate) fn take_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.bytes)
    }

    /// Sets `answer` to the message of the run that the record belongs to, and creates its row if
    /// it is new. Does nothing if the record belongs to no run.
    fn remember_answer(&mut self, db: &Db, record: &Record) -> Result<(), Error> {
        let Some(id) = answer_id(record) else { return Ok(()) };
        if self.answer.as_ref().is_some_and(|it| it.id == *id) {
            return Ok(());
        }
        let kind = MessageKind::Answer;
        let (number, open) = match message::of_kind(db, self.key, kind, id.as_str())? {
            Some(row) => (row.number, row.open),
            None => (message::insert(db, self.key, id.as_str(), kind, record.seq)?, true),
        };
        self.answer = Some(Answer { id: id.clone(), number, open });
        Ok(())
    }

    /// Inserts a delta into its stream. Returns false if the record is not a delta, or could not be
    /// restored from the stream.
    fn insert_delta(&mut self, db: &Db, record: &Record) -> Result<bool, Error> {
        let Some(key) = continued_by(&record.event) else { return Ok(false) };
        let Some((offset, text)) = delta_of(&record.event) else { return Ok(false) };
        // A finished run's message ends at its last number, which only records move.
        let is_late =
            answer_id(record).is_some() && self.answer.as_ref().is_some_and(|it| !it.open);
        if !record.extra.is_empty() || is_late {
            return Ok(false);
        }
        let head = stream::head_of(&record.event);
        let Some(stream) = self.open_stream(db, key, record, &head)? else { return Ok(false) };
        if stream.head != head || stream.response != record.response_id {
            return Ok(false);
        }

        stream.last = record.seq;
        let stream = stream.key;
        db.send(
            "INSERT INTO deltas (session, seq, at, stream, \"offset\", text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                self.key,
                int(record.seq),
                record.at.0,
                stream,
                offset.map(u64::cast_signed),
                text,
            ],
        )?;
        self.bytes += text.len() as u64;
        Ok(true)
    }

    /// Returns the stream of a delta, which begins with this record if it is new; `None` if it is
    /// closed.
    fn open_stream(
        &mut self,
        db: &Db,
        key: StreamKey,
        record: &Record,
        head: &Event,
    ) -> Result<Option<&mut OpenStream>, Error> {
        if !self.streams.contains_key(&key) {
            let name = stream::name(&key);
            let stream = match StreamRow::named(db, self.key, &name)? {
                Some(row) if row.is_closed(self.head) => return Ok(None),
                Some(row) => self.reopen(db, row)?,
                None => self.begin(db, &name, record, head)?,
            };
            self.streams.insert(key.clone(), stream);
        }
        Ok(self.streams.get_mut(&key))
    }

    fn begin(
        &self,
        db: &Db,
        name: &str,
        record: &Record,
        head: &Event,
    ) -> Result<OpenStream, Error> {
        let json = serde_json::to_string(head).map_err(|it| Error::Damaged(it.to_string()))?;
        let response = record.response_id.clone();
        let key = db.one(
            "INSERT INTO streams (session, name, response, head, first_seq, low)
             SELECT ?1, ?2, ?3, ?4, ?5, coalesce(min(first_seq), ?5)
             FROM streams WHERE session = ?1 AND closed_seq IS NULL RETURNING key",
            params![
                self.key,
                name,
                response.as_ref().map(ResponseId::as_str),
                json,
                int(record.seq),
            ],
            |row| row.get(0),
        )?;
        Ok(OpenStream { key, head: head.clone(), response, last: record.seq })
    }

    fn reopen(&self, db: &Db, row: StreamRow) -> Result<OpenStream, Error> {
        let last: Option<i64> = db.first(
            "SELECT seq FROM deltas WHERE session = ?1 AND stream = ?2
                 ORDER BY seq DESC LIMIT 1",
            params![self.key, row.key],
            |row| row.get(0),
        )?;
        let last = last.map_or(row.first(), seq);
        Ok(OpenStream { key: row.key, head: row.head, response: row.response, last })
    }

    fn insert_record(&mut self, db: &Db, record: &Record) -> Result<(), Error> {
        let body = record.body();
        self.bytes += body.len() as u64;
        let kept = body::keep(db, self.key, body)?;
        blob::add_attached(db, self.key, &record.event)?;
        let response = record.response_id.as_ref().map(ResponseId::as_str);
        db.send(
            "INSERT INTO records (session, seq, at, response, body, cuts, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                self.key,
                int(record.seq),
                record.at.0,
                response,
                kept.body,
                kept.cuts,
                damage::sum(record.seq, record.at, response, &kept),
            ],
        )?;
        Ok(())
    }

    fn close_streams(&mut self, db: &Db, record: &Record) -> Result<(), Error> {
        for key in closed_by(&record.event) {
            let stream = match self.streams.remove(&key) {
                Some(stream) => stream,
                None => match StreamRow::named(db, self.key, &stream::name(&key))? {
                    Some(row) if !row.is_closed(self.head) => self.reopen(db, row)?,
                    _ => continue,
                },
            };
            db.send(
                "UPDATE streams SET last_seq = ?2, closed_seq = ?3 WHERE key = ?1",
                params![stream.key, int(stream.last), int(record.seq)],
            )?;
        }
        Ok(())
    }

    fn derive(&mut self, db: &Db, record: &Record) -> Result<(), Error> {
        if answer_id(record).is_some() {
            self.extend_answer(db, record)?;
        }
        if message::is_aside(record) {
            let id = format!("n{}", record.seq);
            message::insert(db, self.key, &id, MessageKind::Aside, record.seq)?;
        }
        match &record.event {
            Event::UserMessage { message_id, client_id, .. } => {
                let (id, kind) = (message_id.as_str(), MessageKind::Said);
                if message::of_kind(db, self.key, kind, id)?.is_none() {
                    message::insert(db, self.key, id, kind, record.seq)?;
                }
                self.remember_client(db, client_id.as_ref(), message_id)?;
            }
            Event::MessageQueued { message_id, client_id, .. } => {
                self.enqueue(db, message_id, record.seq)?;
                self.remember_client(db, client_id.as_ref(), message_id)?;
            }
            Event::MessageDequeued { message_id }
            | Event::MessageDropped { message_id, .. }
            | Event::MessageSteered { message_id, state: SteerState::HandedOver, .. } => {
                self.dequeue(db, message_id)?;
            }
            Event::HistoryRewound { before_message_id, .. } => {
                message::supersede(db, self.key, before_message_id)?;
            }
            // Nothing else is looked up.
            _ => (),
        }
        Ok(())
    }

    fn extend_answer(&mut self, db: &Db, record: &Record) -> Result<(), Error> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        answer.open &= !matches!(record.event, Event::RunFinish { .. });
        message::extend(db, self.key, answer.number, record.seq, answer.open)
    }

    fn remember_client(
        &self,
        db: &Db,
        client_id: Option<&ClientId>,
        message_id: &MessageId,
    ) -> Result<(), Error> {
        let Some(client_id) = client_id else { return Ok(()) };
        // One that was edited has its client\'s id again.
        db.send(
            "INSERT INTO client_ids (session, client_id, message_id) VALUES (?1, ?2, ?3)
             ON CONFLICT (session, client_id) DO UPDATE SET message_id = excluded.message_id",
            params![self.key, client_id.as_str(), message_id.as_str()],
        )?;
        Ok(())
    }

    /// Adds a message to the queue. Positions in the queue are relative, so its row names the
    /// record from which the queue has to be replayed: the first one since the queue was last
    /// empty.
    fn enqueue(&self, db: &Db, message_id: &MessageId, first: Seq) -> Result<(), Error> {
        db.send(
            "INSERT INTO queue (session, message_id, first_seq)
             SELECT ?1, ?2, coalesce(min(first_seq), ?3) FROM queue WHERE session = ?1
             ON CONFLICT DO NOTHING",
            params![self.key, message_id.as_str(), int(first)],
        )?;
        Ok(())
    }

    fn dequeue(&self, db: &Db, message_id: &MessageId) -> Result<(), Error> {
        db.send(
            "DELETE FROM queue WHERE session = ?1 AND message_id = ?2",
            params![self.key, message_id.as_str()],
        )?;
        Ok(())
    }
}

/// Returns the run whose message the record is part of; `None` if there is none.
fn answer_id(record: &Record) -> Option<&ResponseId> {
    record.response_id.as_ref().filter(|_| !record.event.is_session_event())
}
