//! The original form of a message, besides its text and its attachments (`transcript::SentForm`).
//!
//! Messages of every format are read as parts of the AI SDK, which has the most kinds. Everything that text and
//! attachments do not contain is stored; so a plain message is stored once, and still keeps its form.

use serde_json::{Value, json};
use transcript::{SentForm, UserMessage, is_link};

use crate::incoming::File;
use crate::ui::FileUrl;

#[cfg(test)]
mod tests;

/// Returns the files of a message to attach, and the rest of its form that has to be stored; `None`
/// if the message has the plain form of `text` and files.
pub(crate) fn keep(
    text: &str,
    mut parts: Vec<Value>,
    metadata: Option<Value>,
) -> (Vec<File>, Option<SentForm>) {
    let mut files = Vec::new();
    for part in parts.iter_mut().filter(|it| is_file(it)) {
        let file = File::of_part(part);
        if !file.is_elsewhere() {
            part.as_object_mut().map(|it| it.remove("url"));
            files.push(file);
        }
    }
    let named = files.iter().map(|it| (it.media_type.as_str(), Some(it.name_here())));
    if parts == plain(text, named) {
        parts.clear();
    }
    (files, SentForm { parts, metadata }.or_none())
}

/// Returns the parts of a message that consists of a text and files, in the form of the AI SDK.
pub(crate) fn parts_of(text: &str, files: &[File]) -> Vec<Value> {
    let named = files.iter().map(|it| (it.media_type.as_str(), it.name.as_deref()));
    let mut parts = plain(text, named);
    for (part, file) in parts.iter_mut().zip(files) {
        part["url"] = json!(file.url);
    }
    parts
}

/// Returns the parts of a stored message in the form of the AI SDK, with the URLs of its
/// attachments.
pub(crate) fn parts(input: &UserMessage, file_url: FileUrl<'_>) -> Vec<Value> {
    let files = &input.attachments;
    let sent = input.sent.as_ref().map(|it| &it.parts).filter(|it| !it.is_empty());
    let is_whole = |it: &&Vec<Value>| it.iter().filter(|it| is_attached(it)).count() == files.len();
    let mut parts = sent.filter(is_whole).cloned().unwrap_or_else(|| {
        let named = files.iter().map(|it| (it.media_type.as_str(), Some(it.name.as_str())));
        plain(&input.text, named)
    });
    for (part, file) in parts.iter_mut().filter(|it| is_attached(it)).zip(files) {
        part["url"] = json!(file_url(file));
    }
    parts
}

/// Removes the parts of files that could not be attached. `is_there` has one item for each
/// attached file.
pub(crate) fn leave_out_lost(parts: &mut Vec<Value>, mut is_there: impl Iterator<Item = bool>) {
    parts.retain(|it| !is_attached(it) || is_there.next().unwrap_or(false));
}

/// Returns the parts of a message with a text and files. The files come first, as clients send
/// them.
fn plain<'a>(text: &str, files: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Vec<Value> {
    let file = |(media_type, name): (&str, Option<&str>)| {
        let mut part = json!({ "type": "file", "mediaType": media_type });
        if let Some(name) = name {
            part["filename"] = json!(name);
        }
        part
    };
    let mut parts: Vec<Value> = files.map(file).collect();
    if !text.is_empty() || parts.is_empty() {
        parts.push(json!({ "type": "text", "text": text }));
    }
    parts
}

fn is_attached(part: &Value) -> bool {
    is_file(part) && part.get("url").is_none()
}

fn is_file(part: &Value) -> bool {
    part["type"] == "file"
}

impl File {
    fn of_part(part: &Value) -> Self {
        let field = |name: &str| part[name].as_str().map(str::to_owned);
        Self {
            media_type: field("mediaType").unwrap_or("application/octet-stream".to_owned()),
            name: field("filename"),
            url: field("url").unwrap_or_default(),
        }
    }

    /// Returns whether the file is on another server, so that only its URL is stored.
    fn is_elsewhere(&self) -> bool {
        is_link(&self.url) && !self.url.contains("/api/blobs/")
    }
}
