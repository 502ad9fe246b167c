//! The row of a session: its summary, and lookups by session.
//!
//! The head is not in the row: a delta must not touch it. It is the larger of two last keys.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};
use transcript::{ClientId, MessageId, Millis, Seq, SessionId, Summary};

use crate::Error;
use crate::files::connection::seq;
use crate::log::damage::is_damage;
use crate::log::read;

/// Id, summary and head of a session in a list.
pub type Listed = (SessionId, Summary, Seq);

pub(crate) fn key(db: &Connection, id: &SessionId) -> Result<Option<i64>, Error> {
    let mut find = db.prepare_cached("SELECT key FROM sessions WHERE id = ?1")?;
    Ok(find.query_row(params![id.as_str()], |row| row.get(0)).optional()?)
}

/// Returns the head of a session. The closing record of a folded stream comes after its deltas, so
/// the tables `records` and `deltas` suffice.
pub(crate) fn head(db: &Connection, session: i64) -> Result<Seq, Error> {
    let mut find = db.prepare_cached(
        "SELECT max(ifnull((SELECT max(seq) FROM records WHERE session = ?1), 0),
                    ifnull((SELECT max(seq) FROM deltas WHERE session = ?1), 0))",
    )?;
    Ok(find.query_row(params![session], |row| row.get(0)).map(seq)?)
}

pub(crate) fn summary(db: &Connection, session: i64) -> Result<Summary, Error> {
    let mut find = db.prepare_cached("SELECT summary FROM sessions WHERE key = ?1")?;
    find.query_row(params![session], |row| Ok(sound_summary(db, session, row.get_ref(0)?)))?
}

pub(crate) fn summary_and_head(db: &Connection, session: i64) -> Result<(Summary, Seq), Error> {
    Ok((summary(db, session)?, head(db, session)?))
}

/// Parses the summary of a session, or rebuilds it from the records if it is damaged.
fn sound_summary(db: &Connection, session: i64, json: ValueRef<'_>) -> Result<Summary, Error> {
    let read = json.as_str().ok().and_then(|it| serde_json::from_str(it).ok());
    if let Some(summary) = read {
        return Ok(summary);
    }
    tracing::error!(session, "the summary of a session is damaged; rebuilding it from the records");
    let id = SessionId::new("");
    let records = read::all_records(db, &id, session)?;
    let mut summary = Summary::default();
    for stored in records {
        summary.apply(&stored.record());
    }
    Ok(summary)
}

/// Creates the row of a session and returns its key.
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

/// Creates the row of a staged session, which makes the session visible.
pub(crate) fn insert_staged(
    db: &Connection,
    key: i64,
    id: &SessionId,
    summary: &Summary,
) -> Result<(), Error> {
    db.prepare_cached("DELETE FROM deleted WHERE session = ?1")?.execute(params![key])?;
    db.prepare_cached(
        "INSERT INTO sessions (key, id, summary, updated_at, archived, attention)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        key,
        id.as_str(),
        json(summary)?,
        summary.updated_at.0,
        summary.archived,
        needs_attention(summary),
    ])?;
    Ok(())
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
    before: Option<&(Millis, SessionId)>,
) -> Result<Vec<Listed>, Error> {
    let mut find = db.prepare_cached(
        "SELECT key, id, summary FROM sessions
         WHERE (?1 IS NULL OR archived = ?1) AND (updated_at, id) < (?2, ?3)
         ORDER BY updated_at DESC, id DESC LIMIT ?4",
    )?;
    // No id is above this character.
    let (at, id) = before.map_or((i64::MAX, "\u{10ffff}"), |(at, id)| (at.0, id.as_str()));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    listed(db, find.query(params![archived, at, id, limit])?)
}

/// Reads session rows with the columns key, id and summary. Damaged sessions are logged and left
/// out.
fn listed(db: &Connection, mut rows: Rows<'_>) -> Result<Vec<Listed>, Error> {
    let mut listed = Vec::new();
    loop {
        match rows.next() {
            Ok(Some(row)) => match listed_row(db, row) {
                Ok(session) => listed.push(session),
                Err(error) if error.is_damage() => {
                    tracing::error!(%error, "a session is damaged and not listed");
                }
                Err(error) => return Err(error),
            },
            // List the sessions that could be read.
            Err(error) if is_damage(&error) && !listed.is_empty() => {
                tracing::error!(%error, "the list of sessions is damaged");
                return Ok(listed);
            }
            Err(error) => return Err(error.into()),
            Ok(None) => return Ok(listed),
        }
    }
}

fn listed_row(db: &Connection, row: &Row<'_>) -> Result<Listed, Error> {
    let key = row.get(0)?;
    let id = SessionId::new(row.get::<_, String>(1)?);
    Ok((id, sound_summary(db, key, row.get_ref(2)?)?, head(db, key)?))
}

/// Returns the last changed session of an agent, other than `but` and archived ones.
pub(crate) fn latest_of(
    db: &Connection,
    agent: &str,
    but: &SessionId,
) -> Result<Option<SessionId>, Error> {
    let mut find = db.prepare_cached(
        "SELECT id FROM sessions
         WHERE archived = 0 AND id <> ?2 AND
               CASE WHEN json_valid(summary) THEN json_extract(summary, '$.agent') END = ?1
         ORDER BY updated_at DESC, id DESC LIMIT 1",
    )?;
    let id: Option<String> =
        find.query_row(params![agent, but.as_str()], |row| row.get(0)).optional()?;
    Ok(id.map(SessionId::new))
}

pub(crate) fn needing_attention(db: &Connection) -> Result<Vec<Listed>, Error> {
    let mut find = db
        .prepare_cached("SELECT key, id, summary FROM sessions WHERE attention = 1 ORDER BY key")?;
    listed(db, find.query([])?)
}

/// Returns the summaries and heads of these sessions. Sessions that do not exist are left out.
pub(crate) fn summaries(db: &Connection, ids: Vec<SessionId>) -> Result<Vec<Listed>, Error> {
    let mut found = Vec::new();
    for id in ids {
        let Some(key) = key(db, &id)? else { continue };
        let (summary, head) = summary_and_head(db, key)?;
        found.push((id, summary, head));
    }
    Ok(found)
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
