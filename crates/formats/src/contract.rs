//! `format=contract`: the messages of the rendering contract. Each step of an answer is an assistant
//! message, unless it has neither text nor calls, and each call a tool message, present from the call's
//! start.
//!
//! Status messages are asides: unless all are asked for, only errors and stops other than
//! "completed" are given. `stream.rs` writes the same as events.

mod from_transcript;
pub(crate) mod import;
mod stream;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use transcript::Millis;

pub use from_transcript::messages;
pub use import::import;
pub use stream::{Envelope, Stream};

#[cfg(test)]
mod tests;

/// A message of `format=contract`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Message {
    /// Id of the message, unique within the session.
    pub id: String,
    /// Role of the message's sender.
    pub role: Role,
    /// Text of the message.
    pub content: String,
    /// Time at which the message was created or began.
    pub timestamp: Millis,
    /// Tool calls, tool result or run status that the message contains.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// The role of a message's sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "with comments, the schema would not be a plain list of values")]
pub enum Role {
    User,
    Assistant,
    Tool,
    Status,
}

/// Tool calls, tool result or run status that a message contains.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Metadata {
    /// Tool calls that an assistant message makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallInfo>,
    /// Id of the tool call whose result the message contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Name of the tool whose result the message contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Result of the tool call. Present for every successful call, even if null.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub tool_result: Option<Value>,
    /// Error message of the tool call. Present for failed calls, and never together with a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_error: Option<String>,
    /// Duration of the tool call in milliseconds; absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_duration_ms: Option<u64>,
    /// The kind of status that a status message reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_type: Option<StatusType>,
    /// Why the run continued or stopped, in a status message about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<ContinuationInfo>,
}

/// A tool call of an assistant message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ToolCallInfo {
    /// Id of the tool call; messages of other programs may lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name of the tool that is called.
    pub name: String,
    /// Arguments of the tool call; absent if there are none or they are not a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// One-line summary of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_summary: Option<String>,
}

/// The kind of a status message in `format=contract`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "with comments, the schema would not be a plain list of values")]
pub enum StatusType {
    Thinking,
    ToolCall,
    ToolResult,
    Error,
    Info,
    Continuation,
}

/// Why a run continued or stopped, in a status message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ContinuationInfo {
    /// Whether the run continued.
    pub should_continue: bool,
    /// Why the run continued or stopped, such as `completed` or `user_requested`.
    pub stop_reason: String,
    /// Rule or person that decided whether the run continued.
    pub resolved_by: String,
}

/// Selection of the status messages to include in `format=contract`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Statuses {
    /// Only errors, and stops for a reason other than "completed".
    #[default]
    Lasting,
    /// All status messages.
    All,
}

/// Returns whether a message makes tool calls.
pub fn is_tool_call_message(message: &Message) -> bool {
    message.role == Role::Assistant && !message.metadata.tool_calls.is_empty()
}

/// Returns whether a message contains the result of a tool call.
pub fn is_tool_result_message(message: &Message) -> bool {
    message.role == Role::Tool
}

/// Returns whether a message contains the error of a failed tool call.
pub fn has_tool_error(message: &Message) -> bool {
    message.role == Role::Tool && message.metadata.tool_error.is_some()
}

/// Returns whether a client should show the text of an assistant message. Next to tool calls, it
/// should hide empty text and text that only repeats the arguments of a call.
pub fn should_render_assistant_content(message: &Message) -> bool {
    let calls = &message.metadata.tool_calls;
    if message.role != Role::Assistant || calls.is_empty() {
        return message.role == Role::Assistant;
    }
    let content = message.content.trim();
    let as_json = serde_json::from_str::<Map<String, Value>>(content).ok();
    let is_leak =
        as_json.is_some_and(|it| calls.iter().any(|call| call.args.as_ref() == Some(&it)));
    !content.is_empty() && !is_leak
}

impl Metadata {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Deserializes a field that is present, so that an explicit null is a value.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
