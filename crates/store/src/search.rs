//! Search: which items have all the words of a query, the best first.
//!
//! Whatever the text of a query, it is words and never syntax. The index is brought up to date
//! before a search is answered.

use std::collections::HashMap;
use std::fmt;

use rusqlite::{Connection, Row, params};
use serde_json::json;
use transcript::{Millis, Seq, SessionId};

use crate::item::ItemKind;
use crate::snippet::{MATCH_END, MATCH_START, snippet};
use crate::sql::seq;
use crate::{Error, Store};

/// Words beyond these are not looked for.
const WORDS: usize = 32;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// An item has all of these words, the last of them perhaps as the beginning of a longer one.
    pub text: String,
    /// In this session alone.
    pub session: Option<SessionId>,
    pub archived: Option<bool>,
    pub limit: usize,
    /// Where the page before ended.
    pub before: Option<Cursor>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The most relevant first; of equal ones the newest.
    pub hits: Vec<Hit>,
    /// `None` if this is all.
    pub next: Option<Cursor>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub session: SessionId,
    pub seq: Seq,
    pub at: Millis,
    /// The message that shows it; a title is in none.
    pub message_id: Option<String>,
    pub kind: ItemKind,
    /// Pieces of the text around the matches, and which of them are matches.
    pub snippet: Vec<(String, bool)>,
}

/// A place in what was found. What is written between two pages may move hits from one to the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cursor {
    score: f64,
    at: i64,
    item: i64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}_{}_{}", self.score.to_bits(), self.at, self.item)
    }
}

impl Cursor {
    /// Reads what [`Cursor`] writes as text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('_');
        let score = f64::from_bits(u64::from_str_radix(parts.next()?, 16).ok()?);
        let (at, item) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        (parts.next().is_none() && score.is_finite()).then_some(Self { score, at, item })
    }
}

impl Store {
    pub async fn search(&self, query: Query) -> Result<Found, Error> {
        let Some(words) = expression(&query.text) else {
            return Ok(Found { hits: Vec::new(), next: None });
        };
        match self.catch_up().await {
            Ok(()) => (),
            Err(Error::Closed) => return Err(Error::Closed),
            // Such as a full disk. What was indexed before can still be found.
            Err(error) => tracing::warn!(%error, "the index is not up to date"),
        }
        self.off_thread(move |store| store.inner.readers.read(|db| find(db, &words, &query))).await
    }
}

/// The query as FTS5 wants it: quoted words, which side by side mean all of them. `None` if there
/// are no words.
fn expression(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let quoted: Vec<String> = words
        .filter(|it| !it.is_empty())
        .take(WORDS)
        .map(|it| format!("\"{}\"", it.replace('"', "\"\"")))
        .collect();
    (!quoted.is_empty()).then(|| quoted.join(" ") + "*")
}

fn find(db: &Connection, words: &str, query: &Query) -> Result<Found, Error> {
    let rows = page(db, words, query)?;
    let next = rows.last().map(|it| it.1).filter(|_| rows.len() == query.limit);
    let items = rows.iter().map(|it| it.1.item);
    let mut snippets = snippets(db, words, items.collect())?;
    let hits = rows.into_iter().map(|(hit, cursor)| {
        let snippet = snippets.remove(&cursor.item).unwrap_or_default();
        Hit { snippet, ..hit }
    });
    Ok(Found { hits: hits.collect(), next })
}

/// Hits without their snippets, which are made only for those that are returned.
fn page(db: &Connection, words: &str, query: &Query) -> Result<Vec<(Hit, Cursor)>, Error> {
    let mut find = db.prepare_cached(
        "WITH found AS MATERIALIZED (
             SELECT rowid AS item, bm25(search) AS score FROM search WHERE search MATCH ?1
         )
         SELECT item, score, items.at, sessions.id, items.seq, items.message, items.kind
         FROM found JOIN items ON items.key = item JOIN sessions ON sessions.key = items.session
         WHERE (?2 IS NULL OR sessions.id = ?2) AND (?3 IS NULL OR sessions.archived = ?3)
           AND (?4 IS NULL OR (score, -items.at, -item) > (?4, -?5, -?6))
         ORDER BY score, items.at DESC, item DESC LIMIT ?7",
    )?;
    let rows = find.query_map(
        params![
            words,
            query.session.as_ref().map(SessionId::as_str),
            query.archived,
            query.before.map(|it| it.score),
            query.before.map(|it| it.at),
            query.before.map(|it| it.item),
            i64::try_from(query.limit).unwrap_or(i64::MAX),
        ],
        hit,
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn hit(row: &Row<'_>) -> rusqlite::Result<(Hit, Cursor)> {
    let cursor = Cursor { item: row.get(0)?, score: row.get(1)?, at: row.get(2)? };
    let hit = Hit {
        session: SessionId::new(row.get::<_, String>(3)?),
        seq: seq(row.get(4)?),
        at: Millis(cursor.at),
        message_id: row.get(5)?,
        kind: ItemKind::from_word(row.get_ref(6)?.as_str()?),
        snippet: Vec::new(),
    };
    Ok((hit, cursor))
}

fn snippets(
    db: &Connection,
    words: &str,
    items: Vec<i64>,
) -> Result<HashMap<i64, Vec<(String, bool)>>, Error> {
    // The plus makes it one pass: to look up each item would be to search again for each.
    let mut mark = db.prepare_cached(
        "SELECT rowid, highlight(search, 0, ?3, ?4) FROM search
         WHERE search MATCH ?1 AND +rowid IN (SELECT value FROM json_each(?2))",
    )?;
    let (start, end) = (MATCH_START.to_string(), MATCH_END.to_string());
    let mut rows = mark.query(params![words, json!(items).to_string(), start, end])?;
    let mut snippets = HashMap::new();
    while let Some(row) = rows.next()? {
        let marked = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        snippets.insert(row.get(0)?, snippet(marked));
    }
    Ok(snippets)
}
