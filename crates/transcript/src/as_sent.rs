//! A message as its client sent it, where a text and attachments do not say it all: several texts,
//! texts before files, data of the client's own, files that are elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Attachment;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AsSent {
    /// In the words of the AI SDK. A file without `url` is the next of the message's attachments. None
    /// where the attachments and then the text are all there is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Value>,
    /// The client's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// A file that is elsewhere. Nobody here fetches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'a> {
    pub url: &'a str,
    pub media_type: &'a str,
    pub name: Option<&'a str>,
}

impl AsSent {
    /// None if there is nothing to keep.
    pub fn or_none(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// The message was written anew: its texts are one text, where the first of them was.
    pub fn write_anew(&mut self, text: &str) {
        if self.parts.is_empty() {
            return;
        }
        let first = self.parts.iter().position(is_text).unwrap_or(self.parts.len());
        self.parts.retain(|it| !is_text(it));
        self.parts.insert(first, json!({ "type": "text", "text": text }));
    }

    /// The links, for a message that is said instead: with this text and these attachments. None if there
    /// are no links.
    pub fn links_beside(&self, text: &str, attachments: &[Attachment]) -> Option<Self> {
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

/// Whether it is an address on the web: others may do anything when they are followed.
pub fn is_link(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}
