//! Which items have all the words of a query: by FTS5 in the embedded database, by lists of words
//! (`tsvector`) in PostgreSQL.
//!
//! Both find the same items. FTS5 ranks them by relevance; PostgreSQL returns the newest first, because
//! a rank would have to be computed for all of them.

use std::collections::BTreeSet;

use transcript::{Millis, SessionId};

use crate::Error;
use crate::files::connection::seq;
use crate::search::item::ItemKind;
use crate::search::query::{Cursor, Hit, Query};
use crate::search::words::{Phrases, words_of};
use crate::sql::{Db, Param, Row, params};

/// Maximum size in bytes of a word in a list of words, where PostgreSQL allows 2,046.
const WORD_BYTES: usize = 2000;
/// Size in bytes with which a list of words ends; PostgreSQL allows a megabyte. A longer text has
/// several lists.
const LIST_BYTES: usize = 256 * 1024;

/// Adds the text of an item to the search index.
pub(crate) fn add(db: &Db, item: i64, text: &str) -> Result<(), Error> {
    match db {
        Db::Sqlite(_) => {
            db.send("INSERT INTO search (rowid, text) VALUES (?1, ?2)", params![item, text])
        }
        Db::Postgres(_) => lists(text).into_iter().try_for_each(|list| {
            let sql =
                "INSERT INTO search (item, words) VALUES (?1, CAST(CAST(?2 AS text) AS tsvector))";
            db.send(sql, params![item, list])
        }),
    }
}

/// Removes an item from the search index. To be called while `items` still has it.
pub(crate) fn remove(db: &Db, item: i64) -> Result<(), Error> {
    let sql = db.pick(
        "INSERT INTO search (search, rowid, text)
         SELECT 'delete', key, text FROM items WHERE key = ?1",
        "DELETE FROM search WHERE item = ?1",
    );
    db.send(sql, params![item])
}

/// Returns a page of search results with their cursors, without snippets.
pub(crate) fn find(
    db: &Db,
    words: &[String],
    phrases: &Phrases,
    query: &Query,
) -> Result<Vec<(Hit, Cursor)>, Error> {
    match db {
        Db::Sqlite(_) => by_relevance(db, words, query),
        Db::Postgres(_) => newest_first(db, phrases, query),
    }
}

/// Returns a query in the syntax of FTS5: quoted words next to each other, all of which must occur.
/// The last one may be the beginning of a word.
fn expression(words: &[String]) -> String {
    let quoted = words.iter().map(|it| format!("\"{}\"", it.replace('"', "\"\"")));
    quoted.collect::<Vec<_>>().join(" ") + "*"
}

fn by_relevance(db: &Db, words: &[String], query: &Query) -> Result<Vec<(Hit, Cursor)>, Error> {
    let sql = "
        WITH found AS MATERIALIZED (
            SELECT rowid AS item, bm25(search) AS score FROM search WHERE search MATCH ?1
        )
        SELECT item, score, items.at, sessions.id, items.seq, items.message, items.kind
        FROM found JOIN items ON items.key = item JOIN sessions ON sessions.key = items.session
        WHERE (?2 IS NULL OR sessions.id = ?2) AND (?3 IS NULL OR sessions.archived = ?3)
          AND (?4 IS NULL OR (score, -items.at, -item) > (?4, -?5, -?6))
        ORDER BY score, items.at DESC, item DESC LIMIT ?7";
    let params = params![
        expression(words),
        query.session.as_ref().map(SessionId::as_str),
        query.archived,
        query.before.map(|it| it.score),
        query.before.map(|it| it.at),
        query.before.map(|it| it.item),
        i64::try_from(query.limit).unwrap_or(i64::MAX),
    ];
    db.all(sql, params, hit)
}

/// Lists do not say where in the text a word is, so that phrases are looked for in the texts.
fn newest_first(db: &Db, phrases: &Phrases, query: &Query) -> Result<Vec<(Hit, Cursor)>, Error> {
    let conditions: Vec<String> =
        phrases.words().map(|(word, is_prefix)| lexeme(word, is_prefix)).collect();
    let mut found = Vec::new();
    if conditions.is_empty() {
        return Ok(found);
    }
    let sql = newest_first_sql(conditions.len());
    let session = query.session.as_ref().map_or("", SessionId::as_str);
    let (least, most) = query.archived.map_or((false, true), |it| (it, it));
    let mut before = query.before;
    while found.len() < query.limit {
        let (at, item) = before.map_or((i64::MAX, i64::MAX), |it| (it.at, it.item));
        let mut params = params![session, least, most, at, item, PAGE].to_vec();
        params.extend(conditions.iter().map(|it| it as &dyn Param));
        let page = db.all(&sql, &params, |row| Ok((hit(row)?, phrases.all_occur(row.text(7)?))))?;
        let is_last = page.len() < PAGE as usize;
        before = page.last().map(|((_, cursor), _)| *cursor);
        let matching = page.into_iter().filter(|(_, is_match)| *is_match).map(|(hit, _)| hit);
        found.extend(matching.take(query.limit - found.len()));
        if is_last {
            break;
        }
    }
    Ok(found)
}

/// Number of items that are looked at in one query.
const PAGE: i64 = 100;

fn newest_first_sql(n_words: usize) -> String {
    let lists = (7..7 + n_words).map(|n| {
        format!("SELECT item FROM search WHERE words @@ CAST(CAST(?{n} AS text) AS tsquery)")
    });
    let lists = lists.collect::<Vec<_>>().join(" INTERSECT ");
    format!(
        "SELECT items.key, CAST(0 AS double precision), items.at, sessions.id, items.seq, items.message, items.kind, items.text
         FROM items JOIN sessions ON sessions.key = items.session
         WHERE items.key IN ({lists}) AND (?1 = '' OR sessions.id = ?1)
           AND sessions.archived BETWEEN ?2 AND ?3 AND (items.at, items.key) < (?4, ?5)
         ORDER BY items.at DESC, items.key DESC LIMIT ?6"
    )
}

fn hit(row: &Row<'_>) -> Result<(Hit, Cursor), Error> {
    let cursor = Cursor { item: row.get(0)?, score: row.get(1)?, at: row.get(2)? };
    let hit = Hit {
        session: SessionId::new(row.get::<String>(3)?),
        seq: seq(row.get(4)?),
        at: Millis(cursor.at),
        message_id: row.get(5)?,
        kind: ItemKind::from_word(row.text(6)?),
        snippet: Vec::new(),
    };
    Ok((hit, cursor))
}

/// Returns the different words of a text as lists in PostgreSQL's form.
fn lists(text: &str) -> Vec<String> {
    let words: BTreeSet<String> = words_of(text).map(|it| cut(&it).to_owned()).collect();
    let mut lists = vec![String::new()];
    for word in words {
        if lists.last().is_some_and(|it| it.len() >= LIST_BYTES) {
            lists.push(String::new());
        }
        if let Some(list) = lists.last_mut() {
            list.push_str(&quoted(&word));
            list.push(' ');
        }
    }
    lists.retain(|it| !it.is_empty());
    lists
}

/// Returns the query for one word in PostgreSQL's form.
fn lexeme(word: &str, is_prefix: bool) -> String {
    let kept = cut(word);
    // A word that was cut may be any that begins like it.
    if is_prefix || kept.len() < word.len() { quoted(kept) + ":*" } else { quoted(kept) }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\\', "\\\\").replace('\'', "''"))
}

fn cut(word: &str) -> &str {
    &word[..word.floor_char_boundary(WORD_BYTES)]
}
