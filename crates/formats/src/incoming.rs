//! Requests of clients, in every format: a message, or decisions about calls and their results. An invalid
//! request is refused with a reason.

use std::fmt;

use serde_json::{Value, json};
use transcript::{ClientTool, SentForm};

pub use crate::known::Known;
use crate::sent;

#[cfg(test)]
mod tests;

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingMessage {
    /// The client's id of the message.
    pub id: Option<String>,
    /// Text of the message.
    pub text: String,
    /// Files to attach.
    pub files: Vec<File>,
    /// Everything that text and files do not contain.
    pub sent: Option<SentForm>,
}

impl IncomingMessage {
    pub(crate) fn new(id: Option<String>, text: String, files: &[File]) -> Self {
        let parts = sent::parts_of(&text, files);
        Self::of_parts(id, text, parts, None)
    }

    /// Creates a message from the parts of the AI SDK.
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

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Media type of the file.
    pub media_type: String,
    /// Name of the file.
    pub name: Option<String>,
    /// May be a `data:` address.
    pub url: String,
}

impl File {
    /// Returns its name as an attachment.
    pub fn name_here(&self) -> &str {
        self.name.as_deref().unwrap_or("file")
    }
}

/// A decision of the client, or the result of a call that it has run.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// A decision about a call.
    Approval {
        /// Id of the call.
        call: String,
        /// Whether the call may run.
        approved: bool,
        /// The reason that the person gave.
        reason: Option<String>,
        /// The arguments as edited, if the client can do that.
        arguments: Option<Value>,
    },
    /// The result of a call.
    Output {
        /// Id of the call.
        call: String,
        /// The result.
        output: Value,
    },
    /// The error of a call that failed.
    Error {
        /// Id of the call.
        call: String,
        /// The message of the error.
        error: String,
    },
}

impl Decided {
    /// Returns the id of the call.
    pub fn call(&self) -> &str {
        match self {
            Self::Approval { call, .. } | Self::Output { call, .. } | Self::Error { call, .. } => {
                call
            }
        }
    }
}

/// Reads the tools that the client runs itself: an object with the tools by name, or an array of tools with their
/// names, plain or as functions in OpenAI's form.
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
        // The form of the AI SDK's `jsonSchema()`.
        Some(schema) if schema["jsonSchema"].is_object() => schema["jsonSchema"].clone(),
        Some(schema @ Value::Object(_)) => schema.clone(),
        Some(_) => return Err(BadRequest::new(format!("`{place}.parameters` is no JSON Schema."))),
        None => json!({ "type": "object" }),
    };
    let description = tool["description"].as_str().unwrap_or_default().to_owned();
    Ok(ClientTool { name: name.to_owned(), description, parameters })
}

/// An error that names the field and the problem, for the client's author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    why: String,
    /// The field, if the format's errors have a place for its name.
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
