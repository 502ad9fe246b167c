//! The place of each message in the log, so that a page of messages is read from those records alone.
//!
//! Lookups by id name their index: without statistics SQLite takes the primary key for as good, and
//! goes through all messages of the session.

use transcript::{Event, Record, ResponseId, Seq, SessionId, event_from_body};

use crate::Error;
use crate::files::connection::{int, seq};
use crate::log::read::{Span, Stored};
use crate::log::session;
use crate::sql::{Db, Row, params};

/// A message of a session, with its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// Number of the message in its session, in order of appearance: 1, 2, 3, ...
    pub number: u64,
    /// Id of a sent message, id of a run, or `n{seq}` for an aside.
    pub id: String,
    /// Kind of the message.
    pub kind: MessageKind,
    /// Sequence number of the message's first record.
    pub first: Seq,
    /// Sequence number of the message's last record that is not a delta.
    pub last: Seq,
    /// Whether the message is a run that has not finished.
    pub open: bool,
    /// Whether an edit or a retry has replaced the message.
    pub superseded: bool,
}

/// Kind of a message in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A message that a person or another agent has sent.
    Said,
    /// The message of a run.
    Answer,
    /// A record that belongs to no run but is shown as a message, such as a notice.
    Aside,
}

/// A window of a session's messages: the newest `limit` ones that begin before a sequence number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// Sequence number before which the messages begin; `None` for the end of the session.
    pub before: Option<Seq>,
    /// Maximum number of messages in the window.
    pub limit: usize,
}

impl MessageKind {
    fn word(self) -> &'static str {
        match self {
            Self::Said => "said",
            Self::Answer => "answer",
            Self::Aside => "aside",
        }
    }

    fn from_word(word: &str) -> Self {
        match word {
            "said" => Self::Said,
            "answer" => Self::Answer,
            _ => Self::Aside,
        }
    }
}

pub(crate) fn is_aside(record: &Record) -> bool {
    record.response_id.is_none()
        && matches!(
            record.event,
            Event::Notice { .. }
                | Event::Unrecognized { .. }
                | Event::AgentMessage { .. }
                | Event::AgentCallbackResult { .. }
        )
}

const COLUMNS: &str = "number, id, kind, first_seq, last_seq, open, superseded";

pub(crate) fn window(db: &Db, session: i64, window: Window) -> Result<Vec<MessageRow>, Error> {
    let before = window.before.map_or(i64::MAX, int);
    let limit = i64::try_from(window.limit).unwrap_or(i64::MAX);
    let mut rows = db.all(
        &format!(
            "SELECT {COLUMNS} FROM messages WHERE session = ?1 AND first_seq < ?2
         ORDER BY first_seq DESC LIMIT ?3"
        ),
        params![session, before, limit],
        MessageRow::from_row,
    )?;
    rows.reverse();
    Ok(rows)
}

/// Returns the window with the oldest `limit` messages that begin after a sequence number. Later
/// messages do not change it.
pub(crate) fn window_after(
    db: &Db,
    session: i64,
    after: Seq,
    limit: usize,
) -> Result<Window, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    db.one(
        "SELECT count(*), max(first_seq) FROM (SELECT first_seq FROM messages
         WHERE session = ?1 AND first_seq > ?2 ORDER BY first_seq LIMIT ?3) AS page",
        params![session, int(after), limit],
        |row| {
            let (count, last): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
            Ok(Window {
                before: Some(last.map_or(Seq(0), |it| Seq(seq(it).0 + 1))),
                limit: usize::try_from(count).unwrap_or(usize::MAX),
            })
        },
    )
}

/// Returns the window that begins with a message; `None` if there is no such message.
pub(crate) fn window_from(
    db: &Db,
    session: i64,
    id: &str,
    limit: usize,
) -> Result<Option<Window>, Error> {
    let Some(row) = by_id(db, session, id)? else { return Ok(None) };
    window_after(db, session, Seq(row.first.0.saturating_sub(1)), limit).map(Some)
}

/// Returns the number of messages of a session.
pub(crate) fn count(db: &Db, session: i64) -> Result<u64, Error> {
    let count: i64 = db.one(
        "SELECT coalesce(max(number), 0) FROM messages WHERE session = ?1",
        params![session],
        |row| row.get(0),
    )?;
    Ok(count.cast_unsigned())
}

pub(crate) fn by_id(db: &Db, session: i64, id: &str) -> Result<Option<MessageRow>, Error> {
    db.first(
        &format!(
            "SELECT {COLUMNS} FROM messages INDEXED BY messages_by_id
         WHERE session = ?1 AND id = ?2 ORDER BY number LIMIT 1"
        ),
        params![session, id],
        MessageRow::from_row,
    )
}

pub(crate) fn of_kind(
    db: &Db,
    session: i64,
    kind: MessageKind,
    id: &str,
) -> Result<Option<MessageRow>, Error> {
    db.first(
        &format!(
            "SELECT {COLUMNS} FROM messages INDEXED BY messages_by_id
         WHERE session = ?1 AND id = ?2 AND kind = ?3"
        ),
        params![session, id, kind.word()],
        MessageRow::from_row,
    )
}

/// Returns the last message of a kind that is not superseded.
pub(crate) fn last_of(
    db: &Db,
    session: i64,
    kind: MessageKind,
) -> Result<Option<MessageRow>, Error> {
    db.first(
        &format!(
            "SELECT {COLUMNS} FROM messages WHERE session = ?1 AND kind = ?2 AND superseded = 0
         ORDER BY number DESC LIMIT 1"
        ),
        params![session, kind.word()],
        MessageRow::from_row,
    )
}

/// Returns the number of messages of a kind that begin before a sequence number and are not
/// superseded.
pub(crate) fn count_before(
    db: &Db,
    session: i64,
    kind: MessageKind,
    before: Seq,
) -> Result<u64, Error> {
    let count: i64 = db.one(
        "SELECT count(*) FROM messages
         WHERE session = ?1 AND kind = ?2 AND superseded = 0 AND first_seq < ?3",
        params![session, kind.word(), int(before)],
        |row| row.get(0),
    )?;
    Ok(count.cast_unsigned())
}

/// Adds the row of a message and returns its number.
pub(crate) fn insert(
    db: &Db,
    session: i64,
    id: &str,
    kind: MessageKind,
    first: Seq,
) -> Result<u64, Error> {
    let open = kind == MessageKind::Answer;
    let number: i64 = db.one(
        "INSERT INTO messages (session, number, id, kind, first_seq, last_seq, open)
         SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4, ?4, ?5
         FROM messages WHERE session = ?1
         RETURNING number",
        params![session, id, kind.word(), int(first), open],
        |row| row.get(0),
    )?;
    Ok(number.cast_unsigned())
}

pub(crate) fn extend(
    db: &Db,
    session: i64,
    number: u64,
    last: Seq,
    open: bool,
) -> Result<(), Error> {
    db.send(
        "UPDATE messages SET last_seq = ?3, open = ?4 WHERE session = ?1 AND number = ?2",
        params![session, number.cast_signed(), int(last), open],
    )?;
    Ok(())
}

/// Marks a message and all later ones of its session as superseded.
pub(crate) fn supersede(db: &Db, session: i64, from_id: &str) -> Result<(), Error> {
    db.send(
        "UPDATE messages SET superseded = 1 WHERE session = ?1 AND number >=
             (SELECT min(number) FROM messages INDEXED BY messages_by_id
              WHERE session = ?1 AND id = ?2)",
        params![session, from_id],
    )?;
    Ok(())
}

/// Returns the records of exactly these messages, in order, without deltas that a later record
/// covers.
pub(crate) fn records(
    db: &Db,
    id: &SessionId,
    session: i64,
    rows: &[MessageRow],
) -> Result<Vec<Stored>, Error> {
    let head = session::head(db, session)?;
    let mut found = Vec::new();
    for row in rows {
        let response = ResponseId::new(row.id.as_str());
        let is_answer = row.kind == MessageKind::Answer;
        let span = Span {
            id,
            session,
            after: Seq(row.first.0.saturating_sub(1)),
            // The deltas of an open run do not move its last number.
            end: if row.open { head } else { row.last },
            horizon: head,
            response: is_answer.then_some(&response),
        };
        let mut records = span.without_covered(db, usize::MAX)?;
        if is_answer {
            records.retain(|it| !is_of_another_message(it));
        }
        found.extend(records);
    }
    found.sort_unstable_by_key(|it| it.seq);
    found.dedup_by_key(|it| it.seq);
    Ok(found)
}

/// Returns whether a record names a run without being part of its message. The type of the event is
/// checked first, so that few records need to be parsed.
fn is_of_another_message(record: &Stored) -> bool {
    const MENTIONING: [&str; 6] =
        ["session_", "agent_linked", "user_message", "message_", "queue_", "history_rewound"];
    let name = record.body.strip_prefix(r#"{"type":""#).unwrap_or("");
    MENTIONING.iter().any(|it| name.starts_with(it))
        && event_from_body(&record.body).is_session_event()
}

impl MessageRow {
    fn from_row(row: &Row<'_>) -> Result<Self, Error> {
        Ok(Self {
            number: row.get::<i64>(0)?.cast_unsigned(),
            id: row.get(1)?,
            kind: MessageKind::from_word(row.text(2)?),
            first: seq(row.get(3)?),
            last: seq(row.get(4)?),
            open: row.get(5)?,
            superseded: row.get(6)?,
        })
    }
}
