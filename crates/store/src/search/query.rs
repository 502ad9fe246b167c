//! Search: which items have all the words of a query, the best first.
//!
//! Whatever the text of a query, it is words and never syntax. The index is brought up to date
//! before a search is answered.

use std::fmt;
use std::sync::Arc;

use transcript::{Millis, Seq, SessionId};

use crate::reads::with_permit;
use crate::search::interrupt::{Interrupt, InterruptOnDrop};
use crate::search::item::ItemKind;
use crate::search::matches;
use crate::search::snippet::snippet;
use crate::search::words::Phrases;
use crate::sql::{Db, params};
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
    /// Relevance: the smaller, the more relevant.
    pub(crate) score: f64,
    pub(crate) at: i64,
    pub(crate) item: i64,
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

fn find(db: &Db, words: &[String], query: &Query) -> Result<Found, Error> {
    let phrases = Phrases::of(words.iter().map(String::as_str));
    let rows = matches::find(db, words, &phrases, query)?;
    let next = rows.last().map(|it| it.1).filter(|_| rows.len() == query.limit);
    let mut hits = Vec::with_capacity(rows.len());
    for (hit, cursor) in rows {
        hits.push(Hit { snippet: snippet_of(db, cursor.item, &phrases)?, ..hit });
    }
    Ok(Found { hits, next })
}

fn snippet_of(db: &Db, item: i64, phrases: &Phrases) -> Result<Vec<(String, bool)>, Error> {
    let sql = "SELECT text FROM items WHERE key = ?1";
    let found = db.first(sql, params![item], |row| Ok(snippet(row.text(0)?, phrases)))?;
    Ok(found.unwrap_or_default())
}
