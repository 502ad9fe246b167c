//! Requests of clients, in every format: a message, or decisions about calls and their results. An invalid
//! request is refused with a reason.

use std::fmt;

use serde_json::{Value, json};
use transcript::{ClientTool, SentForm};

pub use crate::known::Known;
use crate::sent;

#[cfg(test)]
mod tests;

/// A new message in the request of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingMessage {
    /// Id that the client gave the message; `None` if it gave none.
    pub id: Option<String>,
    /// Text of the message.
    pub text: String,
    /// Files to attach to the message.
    pub files: Vec<File>,
    /// Form in which the client sent the message; `None` if text and files contain all of it.
    pub sent: Option<SentForm>,
}

impl IncomingMessage {
    pub(crate) fn new(id: Option<String>, text: String, files: &[File]) -> Self {
        let parts = sent::parts_of(&text, files);
        Self::of_parts(id, text, parts, None)
    }

    /// Creates a message from parts in the form of the AI SDK.
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

/// A file of a message, as the client or an import file contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Media type of the file.
    pub media_type: String,
    /// Name of the file; `None` if the message contains none.
    pub name: Option<String>,
    /// URL of the file, which may be a `data:` URL.
    pub url: String,
}

impl File {
    /// Returns the name of the file as an attachment: its own name, or `file` if it has none.
    pub fn name_here(&self) -> &str {
        self.name.as_deref().unwrap_or("file")
    }
}

/// A client's decision about an approval, or the outcome of a tool call that the client has run.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// A decision about a tool call that needs an approval.
    Approval {
        /// Id of the tool call.
        call: String,
        /// Whether the tool call may run.
        approved: bool,
        /// The person's reason for the decision; `None` if there is none.
        reason: Option<String>,
        /// Arguments as edited by the person; `None` if they were not edited.
        arguments: Option<Value>,
    },
    /// The result of a tool call that succeeded.
    Output {
        /// Id of the tool call.
        call: String,
        /// The result as JSON.
        output: Value,
    },
    /// The error of a tool call that failed.
    Error {
        /// Id of the tool call.
        call: String,
        /// The error message.
        error: String,
    },
}

impl Decided {
    /// Returns the id of the tool call.
    pub fn call(&self) -> &str {
        match self {
            Self::Approval { call, .. } | Self::Output { call, .. } | Self::Error { call, .. } => {
                call
            }
        }
    }
}

/// Parses the tools that the client runs itself: an object with the tools by name, or an array of
/// tools with their names, either plain or as functions in OpenAI's form.
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

/// The error of an invalid request or import file: the field and the problem, for the client's
/// author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    why: String,
    /// Name of the invalid field, if the errors of the format have a place for it.
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
