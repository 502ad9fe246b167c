//! Folding: the delta rows of a closed stream are packed.
//!
//! Folding changes the storage only, never the result of a read; so it is done at any time, in bounded
//! batches. A short stream is packed into its own row. A long one is packed into segments, a few per
//! batch, so that folding and reading a page cost no more than some segments.

use crate::Error;
use crate::files::connection::int;
use crate::log::stream::{Delta, StreamRow};
use crate::log::{blob, pack};
use crate::sql::{Db, Param, Value, params};

/// Number of rows with which a batch of folding ends, after a whole segment or short stream. Small
/// in tests, so that short random logs have long streams.
const ROWS_AT_ONCE: usize = if cfg!(test) { 5 } else { 2000 };
/// Number of deltas with which a segment ends; it also ends with `SEGMENT_BYTES` of text.
const SEGMENT_DELTAS: usize = if cfg!(test) { 3 } else { 1024 };
const SEGMENT_BYTES: usize = 64 * 1024;

/// Folds the deltas of up to `max` closed streams, of the last one perhaps in part. Returns the
/// number of streams that were begun. The caller provides the transaction.
pub(crate) fn fold(db: &Db, max: usize) -> Result<usize, Error> {
    let (mut n_streams, mut n_rows) = (0, 0);
    for stream in StreamRow::to_fold(db, max)? {
        n_rows += fold_some(db, &stream, ROWS_AT_ONCE - n_rows)?;
        n_streams += 1;
        if n_rows >= ROWS_AT_ONCE {
            return Ok(n_streams);
        }
    }
    for stream in StreamRow::to_split(db, max.saturating_sub(n_streams).min(1))? {
        split(db, &stream)?;
        n_streams += 1;
    }
    Ok(n_streams)
}

/// Folds about `max_rows` rows of a stream, at least one segment. Returns the number of rows.
fn fold_some(db: &Db, stream: &StreamRow, max_rows: usize) -> Result<usize, Error> {
    let max_rows = max_rows.max(SEGMENT_DELTAS);
    let rows = stream.rows(db, max_rows + 1)?;
    let is_whole = rows.len() <= max_rows;
    if is_whole && rows.len() <= SEGMENT_DELTAS && !stream.has_segments(db)? {
        return fold_short(db, stream, &rows);
    }
    let mut rest = &rows[..rows.len().min(max_rows)];
    let n_rows = rest.len();
    while !rest.is_empty() {
        let (segment, others) = rest.split_at(segment_end(rest));
        if !add_segment(db, stream, segment)? {
            return keep_as_it_is(db, stream);
        }
        delete(db, stream, segment)?;
        rest = others;
    }
    if is_whole {
        db.execute("UPDATE streams SET folded = 3 WHERE key = ?1", params![stream.key])?;
    }
    Ok(n_rows)
}

fn segment_end(deltas: &[Delta]) -> usize {
    let mut n_bytes = 0;
    let fits = |delta: &&Delta| {
        let fits = n_bytes < SEGMENT_BYTES;
        n_bytes += delta.text.len();
        fits
    };
    deltas.iter().take(SEGMENT_DELTAS).take_while(fits).count()
}

/// Stores deltas as a segment of their stream. Returns false if the packed deltas could not be read
/// back.
fn add_segment(db: &Db, stream: &StreamRow, deltas: &[Delta]) -> Result<bool, Error> {
    let (Some(first), Some(last)) = (deltas.first(), deltas.last()) else { return Ok(true) };
    let Some((packed, text)) = pack_checked(stream, first.seq, deltas) else { return Ok(false) };
    let compressed = blob::compress(text.as_bytes())?;
    let kept: &dyn Param = if compressed.len() < text.len() { &compressed } else { &text };
    db.execute(
        "INSERT INTO segments (session, stream, first_seq, last_seq, deltas, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![stream.session, stream.key, int(first.seq), int(last.seq), packed, kept],
    )?;
    Ok(true)
}

fn fold_short(db: &Db, stream: &StreamRow, deltas: &[Delta]) -> Result<usize, Error> {
    let Some((packed, text)) = pack_checked(stream, stream.first(), deltas) else {
        return keep_as_it_is(db, stream);
    };
    let is_repeated = stream.closing_text(db)?.is_some_and(|closing| closing == text);
    let compressed = if is_repeated { Vec::new() } else { blob::compress(text.as_bytes())? };
    let kept: &dyn Param = match () {
        () if is_repeated => &Value::Null,
        () if compressed.len() < text.len() => &compressed,
        () => &text,
    };
    db.execute(
        "UPDATE streams SET folded = 1, deltas = ?2, text = ?3 WHERE key = ?1",
        params![stream.key, packed, kept],
    )?;
    delete(db, stream, deltas)?;
    Ok(deltas.len())
}

/// Splits a stream that an earlier version has folded into one long row. Its deltas become
/// segments.
fn split(db: &Db, stream: &StreamRow) -> Result<(), Error> {
    let deltas = match stream.deltas(db) {
        Ok(deltas) => deltas,
        Err(error @ Error::Damaged(_)) => {
            tracing::error!(stream = stream.key, %error, "a stream cannot be read and is kept as it is");
            db.execute("UPDATE streams SET folded = 4 WHERE key = ?1", params![stream.key])?;
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let mut rest = &*deltas;
    while !rest.is_empty() {
        let (segment, others) = rest.split_at(segment_end(rest));
        add_segment(db, stream, segment)?;
        rest = others;
    }
    db.execute(
        "UPDATE streams SET folded = 3, deltas = NULL, text = NULL WHERE key = ?1",
        params![stream.key],
    )?;
    Ok(())
}

/// Packs the deltas of a stream and verifies the result, because the rows are deleted afterwards.
/// `None` if the result differs.
fn pack_checked(
    stream: &StreamRow,
    first: transcript::Seq,
    deltas: &[Delta],
) -> Option<(Vec<u8>, String)> {
    let packed = pack::pack(first, deltas);
    let text: String = deltas.iter().map(|it| it.text.as_str()).collect();
    let read = pack::unpack(first, stream.is_output(), &packed, &text)?;
    (read == deltas).then_some((packed, text))
}

fn keep_as_it_is(db: &Db, stream: &StreamRow) -> Result<usize, Error> {
    tracing::error!(stream = stream.key, "a stream cannot be folded and is kept as it is");
    db.execute("UPDATE streams SET folded = 2 WHERE key = ?1", params![stream.key])?;
    Ok(0)
}

fn delete(db: &Db, stream: &StreamRow, deltas: &[Delta]) -> Result<(), Error> {
    for delta in deltas {
        db.execute(
            "DELETE FROM deltas WHERE session = ?1 AND seq = ?2",
            params![stream.session, int(delta.seq)],
        )?;
    }
    Ok(())
}
