//! The lines that Pi writes. Unused fields are never built: 0.73 repeats the whole message in each of its
//! updates.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use transcript::RunCost;

use crate::ending::rounded_cost;
use crate::program::lenient;

#[derive(Debug)]
pub(super) enum Line {
    Response(Response),
    AgentStart,
    AgentEnd(AgentEnd),
    AgentSettled(AgentSettled),
    MessageStart(Message),
    MessageUpdate(Update),
    MessageEnd(Message),
    ToolStart(Execution),
    ToolUpdate(Execution),
    ToolEnd(Execution),
    RetryStart(RetryStart),
    RetryEnd(RetryEnd),
    CompactionStart(CompactionStart),
    CompactionEnd(CompactionEnd),
    Dialog(Dialog),
    ExtensionError(ExtensionError),
    /// A line of a known kind that is not shown.
    Ignorable,
}

impl Line {
    /// Parses a line of Pi. `None` if it is not JSON, is of an unknown kind, or has unexpected
    /// fields.
    pub(super) fn read(line: &str) -> Option<Self> {
        let Kind { kind } = serde_json::from_str(line).ok()?;
        Some(match kind.as_ref() {
            "response" => Self::Response(read(line)?),
            "agent_start" => Self::AgentStart,
            "agent_end" => Self::AgentEnd(read(line)?),
            "agent_settled" => Self::AgentSettled(read(line)?),
            "message_start" => Self::MessageStart(read::<WithMessage>(line)?.known()?),
            "message_update" => Self::MessageUpdate(read::<WithUpdate>(line)?.known()?),
            "message_end" => Self::MessageEnd(read::<WithMessage>(line)?.known()?),
            "tool_execution_start" => Self::ToolStart(read(line)?),
            "tool_execution_update" => Self::ToolUpdate(read(line)?),
            "tool_execution_end" => Self::ToolEnd(read(line)?),
            "auto_retry_start" => Self::RetryStart(read(line)?),
            "auto_retry_end" => Self::RetryEnd(read(line)?),
            "compaction_start" => Self::CompactionStart(read(line)?),
            "compaction_end" => Self::CompactionEnd(read(line)?),
            "extension_ui_request" => Self::Dialog(read(line)?),
            "extension_error" => Self::ExtensionError(read(line)?),
            // Turns are steps of the model, which its messages mark too; a turn's end repeats its message
            // and results. The other lines are about Pi's own screen and files.
            "turn_start"
            | "turn_end"
            | "queue_update"
            | "session"
            | "session_info_changed"
            | "thinking_level_changed"
            | "entry_appended"
            | "bash_execution_update" => Self::Ignorable,
            _ => return None,
        })
    }
}

fn read<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}

#[derive(Debug, Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
struct WithMessage {
    message: Message,
}

impl WithMessage {
    fn known(self) -> Option<Message> {
        let roles = ["user", "assistant", "toolResult", "system", "custom", "bashExecution"];
        let summaries = ["branchSummary", "compactionSummary"];
        let role = self.message.role.as_str();
        (roles.contains(&role) || summaries.contains(&role)).then_some(self.message)
    }
}

#[derive(Debug, Deserialize)]
struct WithUpdate {
    #[serde(rename = "assistantMessageEvent")]
    event: Update,
}

impl WithUpdate {
    fn known(self) -> Option<Update> {
        let (block, what) = self.event.kind.split_once('_').unwrap_or_default();
        let is_block = ["text", "thinking", "toolcall"].contains(&block);
        (is_block && ["start", "delta", "end"].contains(&what)).then_some(self.event)
    }
}

/// Pi's response to a command, with the id of the command if that had one.
#[derive(Debug, Deserialize)]
pub(super) struct Response {
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) success: bool,
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) data: Option<ResponseData>,
}

/// Data of Pi's responses to `prompt` and `get_state`. Other responses have no data that is used.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ResponseData {
    /// Pi's treatment of a prompt, in version 1.5: `started`, `queued` or `handled`.
    pub(super) disposition: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) is_streaming: bool,
    pub(super) is_compacting: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentEnd {
    /// Whether Pi will retry after this end. `None` in versions without the field. Version 1.5
    /// always sets it, and sends `agent_settled` when it is done.
    pub(super) will_retry: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AgentSettled {
    #[serde(default)]
    pub(super) aborted: bool,
}

/// A message in Pi's conversation: of a user, the model, a tool, an extension or Pi itself.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    pub(super) role: String,
    #[serde(default)]
    pub(super) content: Content,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<Usage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) error_message: Option<String>,
    pub(super) tool_call_id: Option<String>,
    pub(super) details: Option<Value>,
    #[serde(default)]
    pub(super) is_error: bool,
    pub(super) duration_ms: Option<Number>,
    /// Whether the message of an extension is to be shown.
    #[serde(default)]
    pub(super) display: bool,
    /// Command that the user ran outside the conversation; `output` is its output. `None` for any
    /// other message.
    pub(super) command: Option<String>,
    pub(super) output: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl Content {
    pub(super) fn into_blocks(self) -> Vec<Block> {
        match self {
            Self::Text(text) => vec![Block::of_text(text)],
            Self::Blocks(blocks) => blocks,
        }
    }

    /// Returns the text of all blocks of the message.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => {
                blocks.iter().filter_map(|it| it.text.as_deref()).collect::<String>()
            }
        }
    }

    pub(super) fn is_text(&self) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Blocks(blocks) => blocks.iter().all(|it| it.kind == "text"),
        }
    }
}

/// A block of a message in Pi's conversation: `text`, `thinking`, `toolCall` or `image`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Block {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    /// Fields of a block that are not known.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Block {
    fn of_text(text: String) -> Self {
        Self { kind: "text".to_owned(), text: Some(text), ..Self::default() }
    }

    /// Returns the tool call's id and name. `None` if the block lacks one of them.
    pub(super) fn call(&self) -> Option<(&str, &str)> {
        self.id.as_deref().zip(self.name.as_deref()).filter(|(_, name)| !name.is_empty())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Usage {
    input: Number,
    output: Number,
    cache_read: Number,
    cache_write: Number,
    /// Number of output tokens that were thinking. `None` if the model service does not count them.
    reasoning: Option<Number>,
    /// Cost in US dollars, as an object: of each kind of tokens, and `total`.
    cost: Value,
}

/// A count or a duration, as JavaScript writes it: any number, or `null`. Any other value counts as
/// zero.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(lenient(from)?.unwrap_or_default()))
    }
}

impl Number {
    pub(super) fn whole(self) -> u64 {
        self.0.round() as u64
    }
}

impl Usage {
    pub(super) fn emitted(&self) -> RunCost {
        let cost = self.cost.get("total").and_then(Value::as_f64).and_then(rounded_cost);
        RunCost { usage: self.tokens(), cost }
    }

    /// Returns the token counts of a message. `None` if the model service counted nothing.
    fn tokens(&self) -> Option<transcript::Usage> {
        let input = [self.input, self.cache_read, self.cache_write];
        let input_tokens = input.into_iter().map(Number::whole).fold(0, u64::saturating_add);
        let (output_tokens, cached) = (self.output.whole(), self.cache_read.whole());
        let total_tokens = input_tokens.saturating_add(output_tokens);
        (total_tokens > 0).then(|| transcript::Usage {
            input_tokens,
            output_tokens,
            total_tokens,
            cached_tokens: (cached > 0).then_some(cached),
            reasoning_tokens: self.reasoning.map(Number::whole).filter(|it| *it > 0),
        })
    }
}

/// An update of a block in the message that the model is writing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Update {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) content_index: usize,
    #[serde(default)]
    pub(super) delta: String,
    /// The whole text of the block, at its end.
    pub(super) content: Option<String>,
    /// The whole tool call, at the end of its block.
    pub(super) tool_call: Option<Block>,
    /// Id of the tool call, in Pi 1.5.
    id: Option<String>,
    tool_name: Option<String>,
    /// The message so far, in Pi 0.73.
    partial: Option<Partial>,
}

#[derive(Debug, Deserialize)]
struct Partial {
    #[serde(default)]
    content: Vec<Head>,
}

#[derive(Debug, Deserialize)]
struct Head {
    id: Option<String>,
    name: Option<String>,
}

impl Update {
    /// Returns whether the update begins or continues the block, and does not end it.
    pub(super) fn grows(&self) -> bool {
        !self.kind.ends_with("_end")
    }

    /// Returns the tool call's id and name. `None` until both are known.
    pub(super) fn call(&self) -> Option<(&str, &str)> {
        let emitted = self.id.as_deref().zip(self.tool_name.as_deref());
        let partial = || {
            let head = self.partial.as_ref()?.content.get(self.content_index)?;
            head.id.as_deref().zip(head.name.as_deref())
        };
        let whole = || self.tool_call.as_ref().and_then(Block::call);
        emitted.or_else(whole).or_else(partial).filter(|(_, name)| !name.is_empty())
    }
}

/// Report of Pi about the start, the output or the end of a tool's execution.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Execution {
    pub(super) tool_call_id: String,
    #[serde(default)]
    pub(super) tool_name: String,
    pub(super) args: Option<Value>,
    #[serde(alias = "partialResult")]
    pub(super) result: Option<ToolOutput>,
    #[serde(default)]
    pub(super) is_error: bool,
    pub(super) duration_ms: Option<Number>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ToolOutput {
    pub(super) content: Content,
    pub(super) details: Option<Value>,
    pub(super) structured_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RetryStart {
    pub(super) attempt: u32,
    pub(super) max_attempts: u32,
    pub(super) delay_ms: Number,
    pub(super) error_message: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct RetryEnd {
    #[serde(default)]
    pub(super) success: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct CompactionStart {
    #[serde(default)]
    pub(super) reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CompactionEnd {
    #[serde(default)]
    pub(super) aborted: bool,
    #[serde(default)]
    pub(super) will_retry: bool,
    pub(super) error_message: Option<String>,
}

/// A dialog or a message of a Pi extension for the user.
#[derive(Debug, Deserialize)]
pub(super) struct Dialog {
    pub(super) id: String,
    pub(super) method: String,
    #[serde(default)]
    pub(super) title: String,
    /// Text of a `confirm` dialog or a `notify` message.
    pub(super) message: Option<String>,
    /// Placeholder of an `input` dialog. In dialogs of Callboard's extension: the tool call, as
    /// JSON.
    pub(super) placeholder: Option<String>,
    #[serde(rename = "notifyType")]
    pub(super) notify_type: Option<String>,
    /// Options of a `select` dialog.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) options: Option<Vec<String>>,
    /// Initial text of an `editor` dialog.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) prefill: Option<String>,
    /// Owner of the status in a `setStatus` message.
    #[serde(rename = "statusKey")]
    pub(super) status_key: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExtensionError {
    #[serde(default)]
    pub(super) extension_path: String,
    #[serde(default)]
    pub(super) error: String,
}
