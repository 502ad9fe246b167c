//! What clients send, whatever their vocabulary: something said, or what was decided and done about
//! calls. Reading it is total: what cannot be read is refused with a reason.

use std::fmt;

use serde_json::{Value, json};
use transcript::{ClientTool, SentForm};

pub use crate::known::Known;
use crate::sent;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, PartialEq)]
pub struct IncomingMessage {
    pub id: Option<String>,
    pub text: String,
    /// To be attached.
    pub files: Vec<File>,
    /// What those two do not say.
    pub sent: Option<SentForm>,
}

impl IncomingMessage {
    pub(crate) fn new(id: Option<String>, text: String, files: &[File]) -> Self {
        let parts = sent::parts_of(&text, files);
        Self::of_parts(id, text, parts, None)
    }

    /// As the AI SDK writes it.
    pub(crate) fn of_parts(
        id: Option<String>,
        text: String,
        parts: Vec<Value>,
        metadata: Option<Value>,
    ) -> Self {
        let (files, sent) = sent::keep(&text, parts, metadata);
        Self { id, text, files, sent }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub media_type: String,
    pub name: Option<String>,
    /// May be a `data:` address.
    pub url: String,
}

impl File {
    /// What it is called when it is attached.
    pub fn name_here(&self) -> &str {
        self.name.as_deref().unwrap_or("file")
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    Approval {
        call: String,
        approved: bool,
        reason: Option<String>,
        /// As edited, where the client can do that.
        arguments: Option<Value>,
    },
    Output {
        call: String,
        output: Value,
    },
    Error {
        call: String,
        error: String,
    },
}

impl Decided {
    pub fn call(&self) -> &str {
        match self {
            Self::Approval { call, .. } | Self::Output { call, .. } | Self::Error { call, .. } => {
                call
            }
        }
    }
}

/// Tools that the client runs itself: an object with a tool under each name, or an array of tools that
/// name themselves, as they are or as functions in the words of OpenAI.
pub fn client_tools(tools: &Value) -> Result<Vec<ClientTool>, BadRequest> {
    match tools {
        Value::Null => Ok(Vec::new()),
        Value::Object(named) => {
            let tools = named.iter();
            tools
                .map(|(name, tool)| client_tool(Some(name), tool, &format!("tools.{name}")))
                .collect()
        }
        Value::Array(tools) => {
            let tools = tools.iter().enumerate();
            tools
                .map(|(idx, tool)| match &tool["function"] {
                    Value::Null => client_tool(None, tool, &format!("tools[{idx}]")),
                    function => client_tool(None, function, &format!("tools[{idx}].function")),
                })
                .collect()
        }
        _ => Err(BadRequest::new("`tools` is neither an object nor an array.")),
    }
}

const TOOL_NAME_MAX: usize = 64;

fn client_tool(name: Option<&str>, tool: &Value, place: &str) -> Result<ClientTool, BadRequest> {
    let name = name.or_else(|| tool["name"].as_str()).unwrap_or_default();
    let is_sign = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if name.is_empty() || name.len() > TOOL_NAME_MAX || !name.chars().all(is_sign) {
        let why = format!("`{place}` has no name of 1 to 64 letters, digits, '_' or '-'.");
        return Err(BadRequest::new(why));
    }
    let parameters = ["parameters", "inputSchema"].iter().map(|field| &tool[*field]);
    let parameters = match parameters.into_iter().find(|it| !it.is_null()) {
        // So the AI SDK's `jsonSchema()` is written.
        Some(schema) if schema["jsonSchema"].is_object() => schema["jsonSchema"].clone(),
        Some(schema @ Value::Object(_)) => schema.clone(),
        Some(_) => return Err(BadRequest::new(format!("`{place}.parameters` is no JSON Schema."))),
        None => json!({ "type": "object" }),
    };
    let description = tool["description"].as_str().unwrap_or_default().to_owned();
    Ok(ClientTool { name: name.to_owned(), description, parameters })
}

/// Names the field and what is wrong with it, for the person who wrote the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    why: String,
    /// The field, where the client's vocabulary has a place for its name.
    pub param: Option<String>,
}

impl BadRequest {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), param: None }
    }

    pub(crate) fn about(param: &str, why: &str) -> Self {
        Self { why: why.to_owned(), param: Some(param.to_owned()) }
    }
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for BadRequest {}
