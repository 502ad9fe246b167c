//! The row of a session: its summary, and what is looked up by it.
//!
//! The head is not in the row: a delta must not touch it. It is the larger of two last keys.

use rusqlite::{Connection, OptionalExtension, params};
use transcript::{ClientId, MessageId, Millis, Seq, SessionId, Summary};

use crate::Error;
use crate::sql::seq;

/// A session, its summary and its head.
pub type Listed = (SessionId, Summary, Seq);

pub(crate) fn key(db: &Connection, id: &SessionId) -> Result<Option<i64>, Error> {
    let mut find = db.prepare_cached("SELECT key FROM sessions WHERE id = ?1")?;
    Ok(find.query_row(params![id.as_str()], |row| row.get(0)).optional()?)
}

/// The closing record of a folded stream comes after its deltas, so these two tables suffice.
pub(crate) fn head(db: &Connection, session: i64) -> Result<Seq, Error> {
    let mut find = db.prepare_cached(
        "SELECT max(ifnull((SELECT max(seq) FROM records WHERE session = ?1), 0),
                    ifnull((SELECT max(seq) FROM deltas WHERE session = ?1), 0))",
    )?;
    Ok(find.query_row(params![session], |row| row.get(0)).map(seq)?)
}

pub(crate) fn summary(db: &Connection, session: i64) -> Result<Summary, Error> {
    let mut find = db.prepare_cached("SELECT summary FROM sessions WHERE key = ?1")?;
    let json: String = find.query_row(params![session], |row| row.get(0))?;
    parse(&json)
}

/// Makes the row; gives its key.
pub(crate) fn insert(db: &Connection, id: &SessionId, summary: &Summary) -> Result<i64, Error> {
    db.prepare_cached(
        // Not the key of a deleted session: rows of that may be left.
        "INSERT INTO sessions (key, id, summary, updated_at, archived, attention)
         VALUES (1 + max(ifnull((SELECT max(key) FROM sessions), 0),
                         ifnull((SELECT max(session) FROM deleted), 0)), ?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        id.as_str(),
        json(summary)?,
        summary.updated_at.0,
        summary.archived,
        needs_attention(summary),
    ])?;
    Ok(db.last_insert_rowid())
}

pub(crate) fn update(db: &Connection, session: i64, summary: &Summary) -> Result<(), Error> {
    db.prepare_cached(
        "UPDATE sessions SET summary = ?2, updated_at = ?3, archived = ?4, attention = ?5
         WHERE key = ?1",
    )?
    .execute(params![
        session,
        json(summary)?,
        summary.updated_at.0,
        summary.archived,
        needs_attention(summary),
    ])?;
    Ok(())
}

pub(crate) fn list(
    db: &Connection,
    archived: Option<bool>,
    limit: usize,
    before: Option<(Millis, &SessionId)>,
) -> Result<Vec<Listed>, Error> {
    let mut find = db.prepare_cached(
        "SELECT key, id, summary FROM sessions
         WHERE (?1 IS NULL OR archived = ?1) AND (updated_at, id) < (?2, ?3)
         ORDER BY updated_at DESC, id DESC LIMIT ?4",
    )?;
    // No id is above this character.
    let (at, id) = before.map_or((i64::MAX, "\u{10ffff}"), |(at, id)| (at.0, id.as_str()));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = find.query(params![archived, at, id, limit])?;
    let mut listed = Vec::new();
    while let Some(row) = rows.next()? {
        let summary = parse(row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?)?;
        listed.push((SessionId::new(row.get::<_, String>(1)?), summary, head(db, row.get(0)?)?));
    }
    Ok(listed)
}

/// That was changed last, of those that are not archived.
pub(crate) fn latest_of(
    db: &Connection,
    agent: &str,
    but: &SessionId,
) -> Result<Option<SessionId>, Error> {
    let mut find = db.prepare_cached(
        "SELECT id FROM sessions
         WHERE archived = 0 AND id <> ?2 AND json_extract(summary, '$.agent') = ?1
         ORDER BY updated_at DESC, id DESC LIMIT 1",
    )?;
    let id: Option<String> =
        find.query_row(params![agent, but.as_str()], |row| row.get(0)).optional()?;
    Ok(id.map(SessionId::new))
}

pub(crate) fn needing_attention(db: &Connection) -> Result<Vec<SessionId>, Error> {
    let mut find = db.prepare_cached("SELECT id FROM sessions WHERE attention = 1 ORDER BY key")?;
    let rows = find.query_map([], |row| Ok(SessionId::new(row.get::<_, String>(0)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn message_of_client_id(
    db: &Connection,
    session: i64,
    client_id: &ClientId,
) -> Result<Option<MessageId>, Error> {
    let mut find = db.prepare_cached(
        "SELECT message_id FROM client_ids WHERE session = ?1 AND client_id = ?2",
    )?;
    let id: Option<String> =
        find.query_row(params![session, client_id.as_str()], |row| row.get(0)).optional()?;
    Ok(id.map(MessageId::new))
}

pub(crate) fn queue_start(db: &Connection, session: i64) -> Result<Option<Seq>, Error> {
    let mut find = db.prepare_cached("SELECT min(first_seq) FROM queue WHERE session = ?1")?;
    let first: Option<i64> = find.query_row(params![session], |row| row.get(0))?;
    Ok(first.map(seq))
}

fn needs_attention(summary: &Summary) -> bool {
    summary.open_run.is_some()
        || summary.unanswered
        || summary.queued > 0
        || !summary.open_exchanges.is_empty()
}

fn json(summary: &Summary) -> Result<String, Error> {
    serde_json::to_string(summary).map_err(|error| Error::Damaged(error.to_string()))
}

fn parse(json: &str) -> Result<Summary, Error> {
    serde_json::from_str(json).map_err(|error| Error::Damaged(format!("a summary: {error}")))
}
