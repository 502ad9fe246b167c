//! The form in which a client sent a message, if a text and attachments cannot represent it: several
//! texts, texts before files, custom data, links to files.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Attachment;

/// The parts and metadata of a message as its client sent them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AsSent"))]
#[serde(rename_all = "camelCase")]
pub struct SentForm {
    /// Parts in the format of the AI SDK. A file without `url` is the next attachment of the message.
    /// Empty if the attachments followed by the text represent the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Value>,
    /// The client's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// A file on the web that a message refers to. Callboard never fetches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'a> {
    /// Address of the file.
    pub url: &'a str,
    /// Media type.
    pub media_type: &'a str,
    /// File name.
    pub name: Option<&'a str>,
}

impl SentForm {
    /// Returns `None` if there is nothing to keep.
    pub fn or_none(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// Replaces all texts by one, at the position of the first.
    pub fn replace_text(&mut self, text: &str) {
        if self.parts.is_empty() {
            return;
        }
        let first = self.parts.iter().position(is_text).unwrap_or(self.parts.len());
        self.parts.retain(|it| !is_text(it));
        self.parts.insert(first, json!({ "type": "text", "text": text }));
    }

    /// Returns the form of an edited message that keeps the links, with a new text and attachments.
    /// `None` if there are no links.
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

    /// Iterates over the linked files.
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

/// Returns whether the address is on the web. Other schemes may have side effects when opened.
pub fn is_link(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}
