//! Disk usage. Approximate: contents are added up, not the pages they lie in; and it
//! costs a look at every row.

use rusqlite::Connection;
use transcript::SessionId;

use crate::files::connection;
use crate::files::connection::Readers;
use crate::log::session;
use crate::{Error, Store};

/// Approximate size of a session in the store, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSize {
    /// Id of the session.
    pub session: SessionId,
    /// Title of the session.
    pub title: String,
    /// Size of the records that are not deltas.
    pub records: u64,
    /// Size of the streams and their deltas, folded or not.
    pub deltas: u64,
    /// Size of the compressed blobs. A blob that several sessions name counts for each of them.
    pub blobs: u64,
    /// Size of the texts for search, and of a share of the search index in proportion to them.
    pub index: u64,
    /// Size of the compressed raw lines.
    pub raw: u64,
}

impl SessionSize {
    /// Returns the total size of the session in bytes.
    pub fn total(&self) -> u64 {
        self.records + self.deltas + self.blobs + self.index + self.raw
    }
}

/// Sizes of the database files, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Size of the database file.
    pub database: u64,
    /// Size of the file of the write-ahead log.
    pub wal: u64,
    /// Free space within the database file, which is used before the file grows.
    pub free: u64,
}

impl Store {
    /// Returns the sizes of the `limit` largest sessions, largest first.
    pub async fn sizes(&self, limit: usize) -> Result<Vec<SessionSize>, Error> {
        self.read_db(move |db| {
            let mut sizes = sizes(db, index_per_text(db)?)?;
            sizes.sort_by_key(|(_, size)| std::cmp::Reverse(size.total()));
            sizes.truncate(limit);
            sizes.into_iter().map(|(key, size)| with_title(db, key, size)).collect()
        })
        .await
    }

    /// Returns the sizes of the database files, in bytes.
    pub async fn total_size(&self) -> Result<Sizes, Error> {
        self.on_reader_thread(|store| total_size(store.readers())).await
    }
}

fn total_size(readers: &Readers) -> Result<Sizes, Error> {
    let free = readers.read(|db| {
        let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        Ok(number("freelist_count")? * number("page_size")?)
    })?;
    let dir = readers.dir();
    Ok(Sizes {
        database: std::fs::metadata(connection::file(dir))?.len(),
        // It is made with the first write.
        wal: std::fs::metadata(connection::wal_file(dir)).map_or(0, |it| it.len()),
        free: free.cast_unsigned(),
    })
}

/// Returns the number of bytes in the search index for each byte of the indexed texts.
fn index_per_text(db: &Connection) -> Result<f64, Error> {
    let mut find = db.prepare_cached(
        "SELECT (SELECT total(octet_length(block)) FROM search_data),
                (SELECT total(octet_length(text)) FROM items)",
    )?;
    let (index, texts): (f64, f64) = find.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(if texts > 0.0 { index / texts } else { 0.0 })
}

fn sizes(db: &Connection, index_per_text: f64) -> Result<Vec<(i64, SessionSize)>, Error> {
    let mut find = db.prepare_cached(
        "SELECT key, id,
           (SELECT sum(octet_length(body) + ifnull(octet_length(response), 0)
                       + ifnull(octet_length(cuts), 0)) FROM records WHERE session = key),
           ifnull((SELECT sum(octet_length(text)) FROM deltas WHERE session = key), 0)
             + ifnull((SELECT sum(octet_length(head) + ifnull(octet_length(deltas), 0)
                       + ifnull(octet_length(text), 0)) FROM streams WHERE session = key), 0)
             + ifnull((SELECT sum(octet_length(deltas) + octet_length(text)) FROM segments
                       WHERE session = key), 0),
           (SELECT sum(octet_length(data)) FROM blob_uses JOIN blobs USING (hash)
             WHERE session = sessions.key),
           (SELECT sum(octet_length(text)) FROM items WHERE session = sessions.key),
           (SELECT sum(octet_length(lines)) FROM raw_lines WHERE session = sessions.key)
         FROM sessions",
    )?;
    let rows = find.query_map([], |row| {
        let bytes =
            |column| row.get::<_, Option<i64>>(column).map(|it| it.map_or(0, i64::cast_unsigned));
        let texts = bytes(5)?;
        let size = SessionSize {
            session: SessionId::new(row.get::<_, String>(1)?),
            title: String::new(),
            records: bytes(2)?,
            deltas: bytes(3)?,
            blobs: bytes(4)?,
            index: texts + (texts as f64 * index_per_text) as u64,
            raw: bytes(6)?,
        };
        Ok((row.get(0)?, size))
    })?;
    let sizes: rusqlite::Result<_> = rows.collect();
    Ok(sizes?)
}

fn with_title(db: &Connection, key: i64, mut size: SessionSize) -> Result<SessionSize, Error> {
    size.title = session::summary(db, key)?.title().to_owned();
    Ok(size)
}
