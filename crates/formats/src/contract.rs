//! `format=contract`: the messages of the rendering contract. Each step of an answer is an assistant
//! message, unless it neither says nor calls anything, and each call a tool message, there from the call's
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

/// A message of the contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Message {
    /// Id of the message, unique within the session.
    pub id: String,
    /// The sender.
    pub role: Role,
    /// Text of the message.
    pub content: String,
    /// Time of the message.
    pub timestamp: Millis,
    /// Details of calls and of a run's status.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// The sender of a message.
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

/// Details of a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Metadata {
    /// Calls that the message makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallInfo>,
    /// The call that the message is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Tool of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Present for every successful call, even if null.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub tool_result: Option<Value>,
    /// Present for failed calls, and never next to a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_error: Option<String>,
    /// Duration of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_duration_ms: Option<u64>,
    /// The status that the message reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_type: Option<StatusType>,
    /// Why a run continued or stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<ContinuationInfo>,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ToolCallInfo {
    /// Id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name of the tool.
    pub name: String,
    /// Absent where the arguments are no JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// Short description of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_summary: Option<String>,
}

/// The kind of a status message.
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

/// Why a run continued or stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ContinuationInfo {
    /// Whether the run continued.
    pub should_continue: bool,
    /// The reason for that.
    pub stop_reason: String,
    /// The rule or person that decided it.
    pub resolved_by: String,
}

/// Which status messages are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Statuses {
    /// Errors and stops other than "completed".
    #[default]
    Lasting,
    /// All of them.
    All,
}

/// Returns whether a message makes calls.
pub fn is_tool_call_message(message: &Message) -> bool {
    message.role == Role::Assistant && !message.metadata.tool_calls.is_empty()
}

/// Returns whether a message is the result of a call.
pub fn is_tool_result_message(message: &Message) -> bool {
    message.role == Role::Tool
}

/// Returns whether a message is the result of a call that failed.
pub fn has_tool_error(message: &Message) -> bool {
    message.role == Role::Tool && message.metadata.tool_error.is_some()
}

/// Whether to show an assistant's words. Beside calls, not what is empty or a call's arguments that
/// slipped into the text; other text that looks like JSON shows.
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

/// A null that is there is a value.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
