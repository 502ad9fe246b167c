//! The row of a session: its summary, and lookups by session.
//!
//! The head is not in the row: a delta must not touch it. It is the larger of two last keys.

use transcript::{ClientId, MessageId, Millis, Seq, SessionId, Summary};

use crate::Error;
use crate::files::connection::seq;
use crate::log::read;
use crate::sql::{Cell, Db, Params, Row, params};

/// Id, summary and head of a session in a list.
pub type Listed = (SessionId, Summary, Seq);

pub(crate) fn key(db: &Db, id: &SessionId) -> Result<Option<i64>, Error> {
    db.first("SELECT key FROM sessions WHERE id = ?1", params![id.as_str()], |row| row.get(0))
}

/// Returns the head of a session. The closing record of a folded stream comes after its deltas, so
/// the tables `records` and `deltas` suffice.
pub(crate) fn head(db: &Db, session: i64) -> Result<Seq, Error> {
    db.one(
        "SELECT coalesce(max(seq), 0) FROM
         (SELECT max(seq) AS seq FROM records WHERE session = ?1
          UNION ALL SELECT max(seq) FROM deltas WHERE session = ?1) AS last",
        params![session],
        |row| row.get(0),
    )
    .map(seq)
}

pub(crate) fn summary(db: &Db, session: i64) -> Result<Summary, Error> {
    db.one("SELECT summary FROM sessions WHERE key = ?1", params![session], |row| {
        sound_summary(db, session, row.cell(0)?)
    })
}

pub(crate) fn summary_and_head(db: &Db, session: i64) -> Result<(Summary, Seq), Error> {
    Ok((summary(db, session)?, head(db, session)?))
}

/// Parses the summary of a session, or rebuilds it from the records if it is damaged.
fn sound_summary(db: &Db, session: i64, json: Cell<'_>) -> Result<Summary, Error> {
    let read = json.text().and_then(|it| serde_json::from_str(it).ok());
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
pub(crate) fn insert(db: &Db, id: &SessionId, summary: &Summary) -> Result<i64, Error> {
    // Not the key of a deleted session: rows of that may be left.
    db.one("INSERT INTO sessions (key, id, summary, updated_at, archived, attention)
         SELECT 1 + coalesce(max(key), 0), ?1, ?2, ?3, ?4, ?5
         FROM (SELECT max(key) AS key FROM sessions UNION ALL SELECT max(session) FROM deleted) AS used
         RETURNING key", params![
        id.as_str(),
        json(summary)?,
        summary.updated_at.0,
        summary.archived,
        needs_attention(summary),
    ], |row| row.get(0))
}

/// Creates the row of a staged session, which makes the session visible.
pub(crate) fn insert_staged(
    db: &Db,
    key: i64,
    id: &SessionId,
    summary: &Summary,
) -> Result<(), Error> {
    db.send("DELETE FROM deleted WHERE session = ?1", params![key])?;
    db.send(
        "INSERT INTO sessions (key, id, summary, updated_at, archived, attention)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            key,
            id.as_str(),
            json(summary)?,
            summary.updated_at.0,
            summary.archived,
            needs_attention(summary),
        ],
    )?;
    Ok(())
}

pub(crate) fn update(db: &Db, session: i64, summary: &Summary) -> Result<(), Error> {
    db.send(
        "UPDATE sessions SET summary = ?2, updated_at = ?3, archived = ?4, attention = ?5
         WHERE key = ?1",
        params![
            session,
            json(summary)?,
            summary.updated_at.0,
            summary.archived,
            needs_attention(summary),
        ],
    )?;
    Ok(())
}

pub(crate) fn list(
    db: &Db,
    archived: Option<bool>,
    limit: usize,
    before: Option<&(Millis, SessionId)>,
) -> Result<Vec<Listed>, Error> {
    // No id is above this character.
    let (at, id) = before.map_or((i64::MAX, "\u{10ffff}"), |(at, id)| (at.0, id.as_str()));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (least, most) = archived.map_or((false, true), |it| (it, it));
    listed(
        db,
        "SELECT key, id, summary FROM sessions
         WHERE archived BETWEEN ?1 AND ?2 AND (updated_at, id) < (?3, ?4)
         ORDER BY updated_at DESC, id DESC LIMIT ?5",
        params![least, most, at, id, limit],
    )
}

/// Reads session rows with the columns key, id and summary. Damaged sessions are logged and left
/// out.
fn listed(db: &Db, sql: &str, params: Params<'_>) -> Result<Vec<Listed>, Error> {
    let mut listed = Vec::new();
    let read = db.each(sql, params, |row| {
        match listed_row(db, row) {
            Ok(session) => listed.push(session),
            Err(error) if error.is_damage() => {
                tracing::error!(%error, "a session is damaged and not listed");
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    });
    match read {
        // List the sessions that could be read.
        Err(error) if error.is_damage() && !listed.is_empty() => {
            tracing::error!(%error, "the list of sessions is damaged");
            Ok(listed)
        }
        read => read.map(|()| listed),
    }
}

fn listed_row(db: &Db, row: &Row<'_>) -> Result<Listed, Error> {
    let key = row.get(0)?;
    let id = SessionId::new(row.get::<String>(1)?);
    Ok((id, sound_summary(db, key, row.cell(2)?)?, head(db, key)?))
}

/// Returns the last changed session of an agent, other than `but` and archived ones.
pub(crate) fn latest_of(db: &Db, agent: &str, but: &SessionId) -> Result<Option<SessionId>, Error> {
    let named = db.pick(
        "CASE WHEN json_valid(summary) THEN json_extract(summary, '$.agent') END",
        "summary::json ->> 'agent'",
    );
    let sql = format!(
        "SELECT id FROM sessions WHERE archived = 0 AND id <> ?2 AND {named} = ?1
         ORDER BY updated_at DESC, id DESC LIMIT 1"
    );
    let id: Option<String> = db.first(&sql, params![agent, but.as_str()], |row| row.get(0))?;
    Ok(id.map(SessionId::new))
}

pub(crate) fn needing_attention(db: &Db) -> Result<Vec<Listed>, Error> {
    listed(db, "SELECT key, id, summary FROM sessions WHERE attention = 1 ORDER BY key", params![])
}

/// Returns the summaries and heads of these sessions. Sessions that do not exist are left out.
pub(crate) fn summaries(db: &Db, ids: Vec<SessionId>) -> Result<Vec<Listed>, Error> {
    let mut found = Vec::new();
    for id in ids {
        let Some(key) = key(db, &id)? else { continue };
        let (summary, head) = summary_and_head(db, key)?;
        found.push((id, summary, head));
    }
    Ok(found)
}

pub(crate) fn message_of_client_id(
    db: &Db,
    session: i64,
    client_id: &ClientId,
) -> Result<Option<MessageId>, Error> {
    let id: Option<String> = db.first(
        "SELECT message_id FROM client_ids WHERE session = ?1 AND client_id = ?2",
        params![session, client_id.as_str()],
        |row| row.get(0),
    )?;
    Ok(id.map(MessageId::new))
}

pub(crate) fn queue_start(db: &Db, session: i64) -> Result<Option<Seq>, Error> {
    let first: Option<i64> =
        db.one("SELECT min(first_seq) FROM queue WHERE session = ?1", params![session], |row| {
            row.get(0)
        })?;
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
