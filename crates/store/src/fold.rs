//! Folding: the delta rows of a closed stream become one packed row.
//!
//! It changes no answer, only how much is kept; so it can be done at any time, in bounded batches.

use rusqlite::types::Null;
use rusqlite::{Connection, ToSql, params};

use crate::sql::int;
use crate::stream::{Delta, StreamRow};
use crate::{Error, blob, pack};

/// A batch ends with the stream that makes it this many rows.
const ROWS_AT_ONCE: usize = 2000;

/// Folds up to `max` streams; says how many. The caller makes it one transaction.
pub(crate) fn fold(db: &Connection, max: usize) -> Result<usize, Error> {
    let (mut n_streams, mut n_rows) = (0, 0);
    for stream in StreamRow::to_fold(db, max)? {
        n_rows += fold_one(db, &stream)?;
        n_streams += 1;
        if n_rows >= ROWS_AT_ONCE {
            break;
        }
    }
    Ok(n_streams)
}

fn fold_one(db: &Connection, stream: &StreamRow) -> Result<usize, Error> {
    let deltas = stream.rows(db)?;
    let packed = pack::pack(stream.first(), &deltas);
    let text: String = deltas.iter().map(|it| it.text.as_str()).collect();

    // The rows are deleted below, so this is the last chance to notice a mistake.
    if pack::unpack(stream.first(), stream.is_output(), &packed, &text).as_ref() != Some(&deltas) {
        tracing::error!(stream = stream.key, "a stream cannot be folded and is kept as it is");
        db.prepare_cached("UPDATE streams SET folded = 2 WHERE key = ?1")?
            .execute(params![stream.key])?;
        return Ok(0);
    }

    let is_repeated = stream.closing_text(db)?.is_some_and(|closing| closing == text);
    let compressed = if is_repeated { Vec::new() } else { blob::compress(text.as_bytes())? };
    let kept: &dyn ToSql = match () {
        () if is_repeated => &Null,
        () if compressed.len() < text.len() => &compressed,
        () => &text,
    };
    db.prepare_cached("UPDATE streams SET folded = 1, deltas = ?2, text = ?3 WHERE key = ?1")?
        .execute(params![stream.key, packed, kept])?;
    delete(db, stream, &deltas)?;
    Ok(deltas.len())
}

fn delete(db: &Connection, stream: &StreamRow, deltas: &[Delta]) -> Result<(), Error> {
    let mut delete = db.prepare_cached("DELETE FROM deltas WHERE session = ?1 AND seq = ?2")?;
    for delta in deltas {
        delete.execute(params![stream.session, int(delta.seq)])?;
    }
    Ok(())
}
