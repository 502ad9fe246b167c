//! Values kept by what they are: equal ones once, compressed.

use rusqlite::{Connection, OptionalExtension, params};

use crate::Error;

const ZSTD_LEVEL: i32 = 3;

/// Gives the hash, in hexadecimal.
pub(crate) fn put(db: &Connection, value: &[u8]) -> Result<String, Error> {
    let hash = blake3::hash(value);
    let mut exists = db.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1")?;
    if !exists.exists(params![hash.as_bytes()])? {
        db.prepare_cached("INSERT INTO blobs (hash, size, data) VALUES (?1, ?2, ?3)")?
            .execute(params![hash.as_bytes(), value.len() as i64, compress(value)?])?;
    }
    Ok(hash.to_hex().to_string())
}

pub(crate) fn read(db: &Connection, hash: &str) -> Result<Option<Vec<u8>>, Error> {
    let Ok(hash) = blake3::Hash::from_hex(hash) else { return Ok(None) };
    let data: Option<Vec<u8>> = db
        .prepare_cached("SELECT data FROM blobs WHERE hash = ?1")?
        .query_row(params![hash.as_bytes()], |row| row.get(0))
        .optional()?;
    data.map(|it| decompress(&it)).transpose()
}

pub(crate) fn compress(value: &[u8]) -> Result<Vec<u8>, Error> {
    Ok(zstd::encode_all(value, ZSTD_LEVEL)?)
}

pub(crate) fn decompress(data: &[u8]) -> Result<Vec<u8>, Error> {
    Ok(zstd::decode_all(data)?)
}
