//! Excerpts of JSON values: long texts keep their beginning and end, long lists their first entries.
//!
//! A call is drawn from the excerpts of its arguments and result, so their size is bounded. Whether a
//! value has an excerpt depends on the value alone, even in transcripts that keep everything.

use serde_json::Value;

/// Approximate maximum [`weight`] of each text and each list in an excerpt of a JSON value.
pub const EXCERPT_PIECE: usize = 64 * 1024;
/// Number of bytes at the end of a text that its excerpt keeps, out of [`EXCERPT_PIECE`].
const EXCERPT_END: usize = 4 * 1024;
/// Maximum [`weight`] of an excerpt; a value whose excerpt would exceed it has none.
const EXCERPT_MAX: usize = 1024 * 1024;

/// Returns the size of a JSON value: the bytes of its texts and names, plus one for each value.
pub fn weight(value: &Value) -> usize {
    1 + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, it)| name.len() + weight(it)).sum(),
    }
}

/// Returns the excerpt of a JSON value; `None` if it would be too large. `edge` is the number of
/// bytes that the transcript keeps of each end of a body; `usize::MAX` keeps the value whole.
pub(crate) fn excerpt(value: &Value, edge: usize) -> Option<Value> {
    let cut = (weight(value) > EXCERPT_PIECE).then(|| cut(value));
    if cut.as_ref().is_some_and(|it| weight(it) > EXCERPT_MAX) {
        return None;
    }
    Some(cut.filter(|_| edge < usize::MAX).unwrap_or_else(|| value.clone()))
}

/// Cuts long texts and lists of a JSON value to at least [`EXCERPT_PIECE`], so that their length
/// shows that they were cut.
fn cut(value: &Value) -> Value {
    match value {
        Value::String(text) => cut_text(text).into(),
        Value::Array(items) => {
            let mut kept = 0;
            let items = items.iter().map(cut).take_while(|it| {
                let has_room = kept < EXCERPT_PIECE;
                kept += weight(it);
                has_room
            });
            items.collect()
        }
        Value::Object(fields) => fields.iter().map(|(name, it)| (name.clone(), cut(it))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Cuts a long text to its beginning and end. A text that is barely longer than the maximum stays
/// whole, because its ends would overlap.
fn cut_text(text: &str) -> String {
    const LONGEST_CHAR: usize = 4;
    if text.len() <= EXCERPT_PIECE + 2 * LONGEST_CHAR {
        return text.to_owned();
    }
    let start = &text[..text.ceil_char_boundary(EXCERPT_PIECE - EXCERPT_END)];
    let end = &text[text.floor_char_boundary(text.len() - EXCERPT_END)..];
    format!("{start}{end}")
}
