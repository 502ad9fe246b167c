//! Disk usage. Approximate: contents are added up, not the pages they lie in; and it
//! costs a look at every row.

use transcript::SessionId;

use crate::files::connection;
use crate::log::session;
use crate::readers::Readers;
use crate::sql::{Db, params};
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
    let Some(dir) = readers.dir() else { return readers.read(size_of_server) };
    let free = readers.read(|db| {
        let sql = "SELECT f.freelist_count * p.page_size FROM pragma_freelist_count f, pragma_page_size p";
        db.one(sql, params![], |row| row.get::<i64>(0))
    })?;
    Ok(Sizes {
        database: std::fs::metadata(connection::file(dir))?.len(),
        // It is made with the first write.
        wal: std::fs::metadata(connection::wal_file(dir)).map_or(0, |it| it.len()),
        free: free.cast_unsigned(),
    })
}

fn size_of_server(db: &Db) -> Result<Sizes, Error> {
    let sql = "SELECT pg_database_size(current_database())";
    let size: i64 = db.one(sql, params![], |row| row.get(0))?;
    Ok(Sizes { database: size.cast_unsigned(), wal: 0, free: 0 })
}

/// Returns the number of bytes in the search index for each byte of the indexed texts.
fn index_per_text(db: &Db) -> Result<f64, Error> {
    let sql = db.pick(
        "SELECT (SELECT total(octet_length(block)) FROM search_data),
                (SELECT total(octet_length(text)) FROM items)",
        "SELECT CAST((SELECT coalesce(sum(octet_length(CAST(words AS text))), 0) FROM search) AS double precision),
                CAST((SELECT coalesce(sum(octet_length(text)), 0) FROM items) AS double precision)",
    );
    let (index, texts): (f64, f64) =
        db.one(sql, params![], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(if texts > 0.0 { index / texts } else { 0.0 })
}

fn sizes(db: &Db, index_per_text: f64) -> Result<Vec<(i64, SessionSize)>, Error> {
    db.all(
        "SELECT key, id,
           (SELECT sum(octet_length(body) + coalesce(octet_length(response), 0)
                       + coalesce(octet_length(cuts), 0)) FROM records WHERE session = key),
           coalesce((SELECT sum(octet_length(text)) FROM deltas WHERE session = key), 0)
             + coalesce((SELECT sum(octet_length(head) + coalesce(octet_length(deltas), 0)
                       + coalesce(octet_length(text), 0)) FROM streams WHERE session = key), 0)
             + coalesce((SELECT sum(octet_length(deltas) + octet_length(text)) FROM segments
                       WHERE session = key), 0),
           (SELECT sum(octet_length(data)) FROM blob_uses JOIN blobs USING (hash)
             WHERE session = sessions.key),
           (SELECT sum(octet_length(text)) FROM items WHERE session = sessions.key),
           (SELECT sum(octet_length(lines)) FROM raw_lines WHERE session = sessions.key)
         FROM sessions",
        params![],
        |row| {
            let bytes =
                |column| row.get::<Option<i64>>(column).map(|it| it.map_or(0, i64::cast_unsigned));
            let texts = bytes(5)?;
            let size = SessionSize {
                session: SessionId::new(row.get::<String>(1)?),
                title: String::new(),
                records: bytes(2)?,
                deltas: bytes(3)?,
                blobs: bytes(4)?,
                index: texts + (texts as f64 * index_per_text) as u64,
                raw: bytes(6)?,
            };
            Ok((row.get(0)?, size))
        },
    )
}

fn with_title(db: &Db, key: i64, mut size: SessionSize) -> Result<SessionSize, Error> {
    size.title = session::summary(db, key)?.title().to_owned();
    Ok(size)
}
