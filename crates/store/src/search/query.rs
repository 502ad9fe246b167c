//! Search: which items have all the words of a query, the best first.
//!
//! Whatever the text of a query, it is words and never syntax. The index is brought up to date
//! before a search is answered.

use std::fmt;
use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use transcript::{Millis, Seq, SessionId};

use crate::files::connection::seq;
use crate::reads::with_permit;
use crate::search::interrupt::{Interrupt, InterruptOnDrop};
use crate::search::item::ItemKind;
use crate::search::snippet::snippet;
use crate::search::words::Phrases;
use crate::{Error, Store};

/// Maximum number of words of a query that are searched for.
const WORDS: usize = 32;

/// A query to search the texts of sessions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// Words that a result must all contain. The last one may be the beginning of a longer word.
    pub text: String,
    /// Session to search; `None` for all sessions.
    pub session: Option<SessionId>,
    /// Whether to search archived sessions only, or others only; `None` for both.
    pub archived: Option<bool>,
    /// Maximum number of results on the page.
    pub limit: usize,
    /// Cursor that the previous page has returned; `None` for the first page.
    pub before: Option<Cursor>,
}

/// A page of search results.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Search results, most relevant first, and of equally relevant ones the newest first.
    pub hits: Vec<Hit>,
    /// Cursor for the next page; `None` if there is none.
    pub next: Option<Cursor>,
}

/// A text that a search has found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Session that contains the text.
    pub session: SessionId,
    /// Sequence number of the record that contains the text.
    pub seq: Seq,
    /// Time of the record that contains the text.
    pub at: Millis,
    /// Id of the message that shows the text; `None` for a title.
    pub message_id: Option<String>,
    /// Kind of the text.
    pub kind: ItemKind,
    /// Pieces of the text around the matches, each with whether it is a match.
    pub snippet: Vec<(String, bool)>,
}

/// Position in the results of a search. Records that are written between two pages may move a
/// result from one page to the other.
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
    /// Parses the text form of a cursor; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('_');
        let score = f64::from_bits(u64::from_str_radix(parts.next()?, 16).ok()?);
        let (at, item) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        (parts.next().is_none() && score.is_finite()).then_some(Self { score, at, item })
    }
}

impl Store {
    /// Searches the texts of sessions, after adding missing records to the search index. Dropping
    /// the future cancels the search.
    pub async fn search(&self, query: Query) -> Result<Found, Error> {
        let words: Vec<String> = words(&query.text).map(str::to_owned).collect();
        if words.is_empty() {
            return Ok(Found { hits: Vec::new(), next: None });
        }
        match self.catch_up().await {
            Ok(()) => (),
            Err(Error::Closed) => return Err(Error::Closed),
            // Such as a full disk. What was indexed before can still be found.
            Err(error) => tracing::warn!(%error, "the index is not up to date"),
        }
        // Searches have their own permits, so that they never block other reads.
        let interrupt = Arc::new(Interrupt::default());
        let _on_drop = InterruptOnDrop(Arc::clone(&interrupt));
        let store = self.clone();
        let read = move || store.readers().read_until(&interrupt, |db| find(db, &words, &query));
        with_permit(&self.inner.search_permits, read).await
    }
}

/// Returns the words of a query that are searched for.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|it| !it.is_empty()).take(WORDS)
}

/// Returns a query in the syntax of FTS5: quoted words next to each other, all of which must occur.
/// The last one may be the beginning of a word.
fn expression(words: &[String]) -> String {
    let quoted = words.iter().map(|it| format!("\"{}\"", it.replace('"', "\"\"")));
    quoted.collect::<Vec<_>>().join(" ") + "*"
}

fn find(db: &Connection, words: &[String], query: &Query) -> Result<Found, Error> {
    let rows = page(db, &expression(words), query)?;
    let next = rows.last().map(|it| it.1).filter(|_| rows.len() == query.limit);
    let phrases = Phrases::of(words.iter().map(String::as_str));
    let mut hits = Vec::with_capacity(rows.len());
    for (hit, cursor) in rows {
        hits.push(Hit { snippet: snippet_of(db, cursor.item, &phrases)?, ..hit });
    }
    Ok(Found { hits, next })
}

/// Returns a page of search results with their cursors. The snippets are empty, because they are
/// made only for results that are returned.
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

fn snippet_of(db: &Connection, item: i64, phrases: &Phrases) -> Result<Vec<(String, bool)>, Error> {
    let mut find = db.prepare_cached("SELECT text FROM items WHERE key = ?1")?;
    let mut rows = find.query(params![item])?;
    let Some(row) = rows.next()? else { return Ok(Vec::new()) };
    Ok(snippet(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?, phrases))
}
