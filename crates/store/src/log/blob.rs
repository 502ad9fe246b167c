//! Content-addressed blobs, deduplicated and compressed.
//!
//! A blob stays while a session names it, and for a day after it was put, so that there is time to
//! name it. One row is kept for each time it was put. A session that names the blob uses up one row, so deleting
//! that session leaves the rows of other writers that have not named it yet.

use std::borrow::Cow;

use transcript::{Attachment, Event, Millis, result_files};

use crate::sql::{Db, params};
use crate::{AppendError, Error, Store};

const ZSTD_LEVEL: i32 = 3;
/// Time in milliseconds that an unnamed blob is kept after it was put.
const PATIENCE: i64 = Millis::PER_DAY;

impl Store {
    /// Stores a value as a blob and returns its hash in hexadecimal. Equal values are stored once.
    /// A blob that no record names is removed by [`Store::sweep_blobs`] a day later.
    pub async fn put_blob(&self, value: Vec<u8>, at: Millis) -> Result<String, AppendError> {
        self.write(move |db| put_loose(db, &value, at)).await
    }

    /// Returns the value of the blob with a hash; `None` if there is none.
    pub async fn blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        let hash = hash.to_owned();
        self.read_db(move |db| read(db, &hash)).await
    }

    /// Removes the blobs that were put more than a day ago and that no record names. Returns their
    /// number.
    pub async fn sweep_blobs(&self, now: Millis) -> Result<usize, AppendError> {
        self.write(move |db| sweep(db, now)).await
    }
}

/// Stores a value, unless it is stored already, and returns its hash.
pub(crate) fn put(db: &Db, value: &[u8]) -> Result<blake3::Hash, Error> {
    let hash = blake3::hash(value);
    if !db.exists("SELECT 1 FROM blobs WHERE hash = ?1", params![hash.as_bytes()])? {
        db.execute(
            "INSERT INTO blobs (hash, size, data) VALUES (?1, ?2, ?3)",
            params![hash.as_bytes(), value.len() as i64, compress(value)?],
        )?;
    }
    Ok(hash)
}

pub(crate) fn read(db: &Db, hash: &str) -> Result<Option<Vec<u8>>, Error> {
    let Ok(hash) = blake3::Hash::from_hex(hash) else { return Ok(None) };
    let data: Option<Vec<u8>> =
        db.first("SELECT data FROM blobs WHERE hash = ?1", params![hash.as_bytes()], |row| {
            row.get(0)
        })?;
    let Some(data) = data else { return Ok(None) };
    let value = decompress(&data)?;
    match blake3::hash(&value) == hash {
        true => Ok(Some(value)),
        false => Err(Error::Damaged(format!("the value {} is not as written", hash.to_hex()))),
    }
}

/// Records that a session names a blob. Returns false if it did before, or if the text is not a
/// hash.
pub(crate) fn add_use(db: &Db, session: i64, hash: &str) -> Result<bool, Error> {
    let Ok(hash) = blake3::Hash::from_hex(hash) else { return Ok(false) };
    Ok(db.execute(
        "INSERT INTO blob_uses (session, hash) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        params![session, hash.as_bytes()],
    )? > 0)
}

/// Records that a session names the attachments of a message or the files of a tool call's result.
pub(crate) fn add_attached(db: &Db, session: i64, event: &Event) -> Result<(), Error> {
    for Attachment { blob, .. } in &*attachments(event) {
        let Ok(hash) = blake3::Hash::from_hex(blob) else { continue };
        if add_use(db, session, blob)? {
            db.execute(
                "DELETE FROM loose_blobs WHERE key =
                 (SELECT key FROM loose_blobs WHERE hash = ?1 ORDER BY at LIMIT 1)",
                params![hash.as_bytes()],
            )?;
        }
    }
    Ok(())
}

/// Removes a blob that no session names and that was not put recently. Returns whether it was
/// removed.
pub(crate) fn remove_unnamed(db: &Db, hash: &[u8]) -> Result<bool, Error> {
    Ok(db.execute(
        "DELETE FROM blobs WHERE hash = ?1
         AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE hash = ?1)
         AND NOT EXISTS (SELECT 1 FROM loose_blobs WHERE hash = ?1)",
        params![hash],
    )? > 0)
}

pub(crate) fn compress(value: &[u8]) -> Result<Vec<u8>, Error> {
    Ok(zstd::encode_all(value, ZSTD_LEVEL)?)
}

pub(crate) fn decompress(data: &[u8]) -> Result<Vec<u8>, Error> {
    zstd::decode_all(data)
        .map_err(|error| Error::Damaged(format!("a compressed value cannot be read: {error}")))
}

fn put_loose(db: &Db, value: &[u8], at: Millis) -> Result<String, Error> {
    let hash = put(db, value)?;
    db.execute(
        "INSERT INTO loose_blobs (hash, at) VALUES (?1, ?2)",
        params![hash.as_bytes(), at.0],
    )?;
    Ok(hash.to_hex().to_string())
}

fn sweep(db: &Db, now: Millis) -> Result<usize, Error> {
    let hashes: Vec<Vec<u8>> = db.all(
        "DELETE FROM loose_blobs WHERE at < ?1 RETURNING hash",
        params![now.0.saturating_sub(PATIENCE)],
        |row| row.get(0),
    )?;
    let mut n_removed = 0;
    for hash in hashes {
        n_removed += usize::from(remove_unnamed(db, &hash)?);
    }
    Ok(n_removed)
}

fn attachments(event: &Event) -> Cow<'_, [Attachment]> {
    match event {
        Event::UserMessage { attachments, .. }
        | Event::MessageQueued { attachments, .. }
        | Event::MessageEdited { attachments: Some(attachments), .. } => attachments.into(),
        Event::ToolResult { result: Some(result), .. } => result_files(result).into(),
        // Nothing else has any.
        _ => Cow::default(),
    }
}
