//! A JSON value within bounds: long texts keep their beginning and their end, long lists their first
//! entries.
//!
//! With it the view of a call can be drawn however long its arguments or its result are. Whether there is
//! one is a function of the value alone, also where everything is kept.

use serde_json::Value;

/// How much of each text, and of each list, an excerpt keeps.
pub const EXCERPT_PIECE: usize = 64 * 1024;
/// How much of that is the end of the text.
const EXCERPT_END: usize = 4 * 1024;
/// A value of which more would be kept has none: it is not one that people read.
const EXCERPT_MAX: usize = 1024 * 1024;

/// How long a value is to read: the bytes of its texts and names, and one for everything in it.
pub fn weight(value: &Value) -> usize {
    1 + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, it)| name.len() + weight(it)).sum(),
    }
}

/// `edge` is what the transcript keeps of other long texts; `usize::MAX` keeps everything.
pub(crate) fn excerpt(value: &Value, edge: usize) -> Option<Value> {
    let cut = (weight(value) > EXCERPT_PIECE).then(|| cut(value));
    if cut.as_ref().is_some_and(|it| weight(it) > EXCERPT_MAX) {
        return None;
    }
    Some(cut.filter(|_| edge < usize::MAX).unwrap_or_else(|| value.clone()))
}

/// What is cut stays longer than [`EXCERPT_PIECE`], or as long, so that its length tells.
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

/// One that is hardly longer than the bound stays whole: its ends would overlap.
fn cut_text(text: &str) -> String {
    const LONGEST_CHAR: usize = 4;
    if text.len() <= EXCERPT_PIECE + 2 * LONGEST_CHAR {
        return text.to_owned();
    }
    let start = &text[..text.ceil_char_boundary(EXCERPT_PIECE - EXCERPT_END)];
    let end = &text[text.floor_char_boundary(text.len() - EXCERPT_END)..];
    format!("{start}{end}")
}
