//! The form in which a client sent a message, if a text and attachments cannot represent it: several
//! texts, texts before files, custom data, links to files.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Attachment;

/// The parts and metadata of a user message as its client sent them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AsSent"))]
#[serde(rename_all = "camelCase")]
pub struct SentForm {
    /// Parts of the message in the format of the AI SDK. A file part without `url` is the next
    /// attachment of the message. Empty if the attachments followed by the text represent the
    /// message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Value>,
    /// Metadata that the client sent with the message; absent if it sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// A file on the web that a user message links to. Callboard never fetches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'a> {
    /// URL of the linked file.
    pub url: &'a str,
    /// Media type of the linked file; empty if the client gave none.
    pub media_type: &'a str,
    /// Name of the linked file; `None` if the client gave none.
    pub name: Option<&'a str>,
}

impl SentForm {
    /// Returns the form, or `None` if it has neither parts nor metadata.
    pub fn or_none(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// Replaces all text parts with one, at the position of the first. Does nothing if there are no
    /// parts.
    pub fn replace_text(&mut self, text: &str) {
        if self.parts.is_empty() {
            return;
        }
        let first = self.parts.iter().position(is_text).unwrap_or(self.parts.len());
        self.parts.retain(|it| !is_text(it));
        self.parts.insert(first, json!({ "type": "text", "text": text }));
    }

    /// Returns the form for an edited message: its links, followed by the new attachments and the
    /// new text. Returns `None` if the message has no links.
    pub fn links_with(&self, text: &str, attachments: &[Attachment]) -> Option<Self> {
        let mut parts: Vec<Value> =
            self.parts.iter().filter(|it| link(it).is_some()).cloned().collect();
        if parts.is_empty() {
            return None;
        }
        let attached = |it: &Attachment| json!({ "type": "file", "mediaType": it.media_type, "filename": it.name });
        parts.extend(attachments.iter().map(attached));
        if !text.is_empty() {
            parts.push(json!({ "type": "text", "text": text }));
        }
        Some(Self { parts, metadata: None })
    }

    /// Iterates over the files on the web that the message links to.
    pub fn links(&self) -> impl Iterator<Item = Link<'_>> {
        self.parts.iter().filter_map(link)
    }
}

fn link(part: &Value) -> Option<Link<'_>> {
    let url = part["url"].as_str().filter(|it| part["type"] == "file" && is_link(it))?;
    let media_type = part["mediaType"].as_str().unwrap_or_default();
    Some(Link { url, media_type, name: part["filename"].as_str() })
}

fn is_text(part: &Value) -> bool {
    part["type"] == "text"
}

/// Returns whether the URL is on the web (`http` or `https`). Other schemes may have side effects
/// when opened.
pub fn is_link(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}
