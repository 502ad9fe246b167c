//! Bodies as they are kept: the event's JSON, with large values cut out into blobs.
//!
//! Cutting is by bytes: what is read back is what was written, byte for byte.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::Error;
use crate::log::blob;
use crate::sql::Db;

/// Length in bytes above which the JSON of a value is stored as a blob.
const LARGE: usize = 32 * 1024;

pub(crate) struct Kept {
    pub(crate) body: String,
    /// Places in the body where values were cut out, as JSON: `[[offset in body, hash], ...]`.
    /// `None` if there are none.
    pub(crate) cuts: Option<String>,
}

/// Cuts large values out of the body of a record and stores them as blobs, which the session then
/// names.
pub(crate) fn keep(db: &Db, session: i64, body: String) -> Result<Kept, Error> {
    let large = large_values(&body);
    if large.is_empty() {
        return Ok(Kept { body, cuts: None });
    }
    let mut kept = String::new();
    let mut cuts = Vec::new();
    let mut end = 0;
    for (start, value) in large {
        kept.push_str(&body[end..start]);
        let hash = blob::put(db, value.as_bytes())?.to_hex().to_string();
        blob::add_use(db, session, &hash)?;
        cuts.push((kept.len(), hash));
        end = start + value.len();
    }
    kept.push_str(&body[end..]);
    let cuts = serde_json::to_string(&cuts).map_err(|error| Error::Damaged(error.to_string()))?;
    Ok(Kept { body: kept, cuts: Some(cuts) })
}

pub(crate) fn restore(db: &Db, kept: Kept) -> Result<String, Error> {
    let Some(cuts) = kept.cuts else { return Ok(kept.body) };
    let cuts: Vec<(usize, String)> =
        serde_json::from_str(&cuts).map_err(|error| Error::Damaged(error.to_string()))?;
    let mut body = String::new();
    let mut end = 0;
    for (at, hash) in cuts {
        let piece = kept.body.get(end..at).ok_or_else(|| damaged("a cut lies outside its body"))?;
        let value = blob::read(db, &hash)?.ok_or_else(|| damaged("a large value is missing"))?;
        body.push_str(piece);
        body.push_str(&String::from_utf8(value).map_err(|_| damaged("a value is not text"))?);
        end = at;
    }
    body.push_str(&kept.body[end..]);
    Ok(body)
}

/// Returns the offset and the JSON of each large top-level value of a body, in order.
fn large_values(body: &str) -> Vec<(usize, &str)> {
    if body.len() <= LARGE {
        return Vec::new();
    }
    // What is not an object stays whole.
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(body).unwrap_or_default();
    let mut large: Vec<_> = fields
        .into_values()
        .map(RawValue::get)
        .filter(|value| value.len() > LARGE)
        // The values are borrowed from the body, so addresses tell where in it they are.
        .map(|value| (value.as_ptr() as usize - body.as_ptr() as usize, value))
        .collect();
    large.sort_unstable();
    large
}

fn damaged(what: &str) -> Error {
    Error::Damaged(what.to_owned())
}
