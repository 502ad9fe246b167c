//! Conversion of an MCP tool's result to a result of ours.
//!
//! `text` has all texts, `structured` the data, `links` the links, and `files` images and other binary
//! content, which is stored separately. A long text becomes a file too, and only its ends stay in the result,
//! because it would fill a model's context.

use backends::ToolOutcome;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use transcript::{Attachment, ErrorCode, ErrorInfo};

use super::StoreFile;

/// Maximum size in bytes of a text in the result of an MCP tool call; a longer one becomes a file.
const MAX_TEXT: usize = 64 * 1024;
/// Number of bytes of each end of a long text that stay in the result of an MCP tool call.
const EDGE: usize = 8 * 1024;
const MAX_ERROR: usize = 2000;

pub(super) async fn outcome(answer: Value, keep: &StoreFile) -> ToolOutcome {
    let is_error = answer["isError"].as_bool() == Some(true);
    let mut gathered = Gathered::new(keep);
    for part in answer["content"].as_array().into_iter().flatten() {
        gathered.take(part).await;
    }
    let structured = answer.get("structuredContent").filter(|it| !it.is_null());
    if let Some(structured) = structured {
        gathered.take_structured(structured).await;
    } else if answer["content"].as_array().is_none() {
        let message = "The MCP server gave an answer that is no result of a tool.";
        return failed(ErrorInfo::new(ErrorCode::ToolError, message), Value::Null);
    }
    let (text, result) = gathered.into_result().await;
    if !is_error {
        return ToolOutcome { ok: true, result, error: None };
    }
    let message = match text.trim() {
        "" => "The tool failed and did not say why.",
        text => &text[..text.floor_char_boundary(MAX_ERROR)],
    };
    let is_complete = message.len() >= text.trim().len() && is_only_text(&result);
    let error = ErrorInfo::new(ErrorCode::ToolError, message);
    failed(error, if is_complete { Value::Null } else { result })
}

fn failed(error: ErrorInfo, result: Value) -> ToolOutcome {
    ToolOutcome { ok: false, result, error: Some(error) }
}

fn is_only_text(result: &Value) -> bool {
    result.as_object().is_some_and(|it| it.keys().all(|key| key == "text"))
}

struct Gathered<'a> {
    keep: &'a StoreFile,
    texts: Vec<String>,
    structured: Option<Value>,
    links: Vec<Value>,
    files: Vec<Attachment>,
}

impl<'a> Gathered<'a> {
    fn new(keep: &'a StoreFile) -> Self {
        Self { keep, texts: Vec::new(), structured: None, links: Vec::new(), files: Vec::new() }
    }

    async fn take(&mut self, part: &Value) {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match part["type"].as_str() {
            Some("text") => self.texts.push(word(&part["text"])),
            Some(kind @ ("image" | "audio")) => {
                let name = if kind == "image" { "picture" } else { "sound" };
                self.take_file(&part["data"], &word(&part["mimeType"]), name).await;
            }
            Some("resource") => {
                let (resource, uri) = (&part["resource"], word(&part["resource"]["uri"]));
                match resource["text"].as_str() {
                    Some(text) => self.texts.push(format!("{uri}:\n{text}")),
                    None => {
                        let media_type = word(&resource["mimeType"]);
                        self.take_file(&resource["blob"], &media_type, last_part(&uri)).await;
                    }
                }
            }
            Some("resource_link") => {
                let fields = ["uri", "name", "title", "description", "mimeType"];
                let kept = fields.iter().filter_map(|it| Some(((*it).to_owned(), part.get(it)?)));
                self.links.push(kept.map(|(name, value)| (name, value.clone())).collect());
            }
            _ => self.texts.push("[Something that is neither text nor file]".to_owned()),
        }
    }

    async fn take_structured(&mut self, structured: &Value) {
        // Servers repeat the data as text, for clients that support only text.
        let is_same =
            |text: &String| serde_json::from_str::<Value>(text).is_ok_and(|it| it == *structured);
        self.texts.retain(|it| !is_same(it));
        let text = structured.to_string();
        if text.len() <= MAX_TEXT {
            self.structured = Some(structured.clone());
        } else {
            let remark = format!("[The data has {} bytes and is kept as a file]", text.len());
            self.texts.push(remark);
            self.keep(text.into_bytes(), "application/json", "data.json").await;
        }
    }

    async fn take_file(&mut self, base64: &Value, media_type: &str, name: &str) {
        let bytes = base64.as_str().and_then(|it| STANDARD.decode(it).ok());
        match bytes.filter(|it| !it.is_empty()) {
            Some(bytes) => self.keep(bytes, media_type, name).await,
            None => self.texts.push(format!("[A {name} ({media_type}) that cannot be read]")),
        }
    }

    async fn keep(&mut self, bytes: Vec<u8>, media_type: &str, name: &str) {
        let size = bytes.len() as u64;
        match (self.keep)(bytes).await {
            Ok(blob) => {
                let (name, media_type) = (name.to_owned(), media_type.to_owned());
                self.files.push(Attachment { blob, name, media_type, size });
            }
            Err(error) => self.texts.push(format!("[{name} could not be kept: {error}]")),
        }
    }

    /// Returns the joined texts and the complete result of an MCP tool call. A long text is stored
    /// as a file, and only its ends are returned.
    async fn into_result(mut self) -> (String, Value) {
        let mut text = self.texts.join("\n\n");
        if text.len() > MAX_TEXT {
            let ends = ends(&text);
            self.keep(std::mem::replace(&mut text, ends).into_bytes(), "text/plain", "text.txt")
                .await;
        }
        let Self { structured, links, files, .. } = self;
        let fields = [
            ("text", (!text.is_empty()).then(|| json!(text))),
            ("structured", structured),
            ("links", (!links.is_empty()).then(|| json!(links))),
            ("files", (!files.is_empty()).then(|| json!(files))),
        ];
        let present = fields.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?)));
        let result = Value::Object(present.collect::<Map<String, Value>>());
        (text, result)
    }
}

fn ends(text: &str) -> String {
    let head = &text[..text.floor_char_boundary(EDGE)];
    let tail = &text[text.ceil_char_boundary(text.len() - EDGE)..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[{left_out} bytes left out; all of it is kept as a file]\n{tail}")
}

/// Returns a file name from the last part of a URI.
fn last_part(uri: &str) -> &str {
    let name = uri.rsplit(['/', ':']).find(|it| !it.is_empty()).unwrap_or("file");
    &name[..name.floor_char_boundary(100)]
}
