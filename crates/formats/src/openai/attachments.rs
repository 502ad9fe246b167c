//! Attached files as pieces of a message: pictures, texts, and a notice for each file that the model does not
//! accept.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use transcript::{Attachment, Link};

use super::text_piece;

const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Maximum number of bytes of a text file that is included in a message. A longer text would leave
/// no room for anything else.
const MAX_TEXT: usize = 256 * 1024;

pub(super) fn piece(
    file: &Attachment,
    sees: bool,
    read: &dyn Fn(&Attachment) -> Option<Vec<u8>>,
) -> Value {
    let Some(bytes) = read(file) else { return remark(file, "is not stored any more") };
    if is_picture(file) {
        if !sees {
            return remark(file, "cannot be shown to this model");
        }
        let url = format!("data:{};base64,{}", file.media_type, STANDARD.encode(&bytes));
        return json!({ "type": "image_url", "image_url": { "url": url } });
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) if !text.contains('\0') => text_piece(&inline(&file.name, text)),
        _ => remark(file, "cannot be read by this model"),
    }
}

/// Returns the content parts for a linked file: a text with its URL and, if `is_shown`, the
/// picture.
pub(super) fn linked(link: Link<'_>, is_shown: bool) -> impl Iterator<Item = Value> {
    let Link { url, media_type, name } = link;
    let what = name.map_or_else(|| media_type.to_owned(), |name| format!("{name}, {media_type}"));
    let words = text_piece(&format!("[A file that is linked, not attached: {url} ({what})]"));
    let is_shown = is_shown && PICTURES.contains(&media_type);
    let picture = is_shown.then(|| json!({ "type": "image_url", "image_url": { "url": url } }));
    [words].into_iter().chain(picture)
}

pub(super) fn is_picture(file: &Attachment) -> bool {
    PICTURES.contains(&file.media_type.as_str())
}

/// Returns the content of a text file in a code fence. The fence is longer than any in the text, so
/// that the text cannot end it.
fn inline(name: &str, text: &str) -> String {
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_TEXT).last();
    let shown = if text.len() <= MAX_TEXT { text } else { &text[..end.unwrap_or(0)] };
    let rest = if shown.len() < text.len() { "\n… the rest is left out" } else { "" };
    let longest = shown.split(|it| it != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("The attached file {name}:\n{fence}\n{}\n{fence}{rest}", shown.trim_end_matches('\n'))
}

fn remark(file: &Attachment, why: &str) -> Value {
    let Attachment { name, media_type, size, .. } = file;
    text_piece(&format!("[The attached file {name} ({media_type}, {size} bytes) {why}.]"))
}
