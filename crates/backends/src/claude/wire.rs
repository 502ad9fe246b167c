//! The lines that the program writes, with the fields that are used.
//!
//! Every release of the program adds kinds of lines and fields. Optional fields are parsed leniently, so that
//! a change in one does not affect the others. A line of an unknown kind, or without its required fields, is
//! not parsed, and the caller keeps it unchanged.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use transcript::Usage;

use crate::ending::rounded_cost;
use crate::program::lenient;

#[derive(Debug)]
pub(super) enum Line {
    /// Claude Code begins a turn.
    Init(Init),
    Status(Status),
    Retry(Retry),
    Limit(Limit),
    Login(Login),
    Hook(Hook),
    Compacted(Compacted),
    /// A text of Claude Code for the user.
    Remark(Remark),
    /// Output of one of Claude Code's own commands, such as `/context`.
    CommandOutput(Remark),
    Background(Background),
    TaskStarted(TaskStart),
    TaskUpdated(TaskUpdate),
    TaskEnded(TaskEnd),
    Stream(Stream),
    Assistant(MessageLine),
    User(MessageLine),
    Lifecycle(Lifecycle),
    /// A request of Claude Code, which waits for the answer.
    Request(Request),
    /// Claude Code no longer waits for the answer to a request.
    RequestCancelled(RequestCancelled),
    /// The response to a request of Callboard.
    Response(Response),
    /// A turn of Claude Code ends.
    Result(Box<TurnResult>),
    /// A line of a known kind that is not shown.
    Ignored,
}

/// Parses a line of Claude Code. `None` if it is not JSON, is of an unknown kind or lacks required
/// fields.
pub(super) fn read(line: &str) -> Option<Line> {
    let head: Head<'_> = serde_json::from_str(line).ok()?;
    match (&*head.kind, head.subtype.as_deref()) {
        ("stream_event", _) => parse(line, Line::Stream),
        ("assistant", _) => parse(line, Line::Assistant),
        ("user", _) => parse(line, Line::User),
        ("result", _) => parse(line, |it| Line::Result(Box::new(it))),
        ("system", Some(subtype)) => read_system(subtype, line),
        ("command_lifecycle", _) => parse(line, Line::Lifecycle),
        ("rate_limit_event", _) => parse(line, Line::Limit),
        ("auth_status", _) => parse(line, Line::Login),
        ("control_request", _) => parse(line, Line::Request),
        ("control_cancel_request", _) => parse(line, Line::RequestCancelled),
        ("control_response", _) => parse(line, |it: Responded| Line::Response(it.response)),
        ("keep_alive" | "prompt_suggestion" | "tool_progress" | "tool_use_summary", _) => {
            Some(Line::Ignored)
        }
        _ => None,
    }
}

fn read_system(subtype: &str, line: &str) -> Option<Line> {
    match subtype {
        "init" => parse(line, Line::Init),
        "status" => parse(line, Line::Status),
        "hook_response" => parse(line, Line::Hook),
        "api_retry" => parse(line, Line::Retry),
        "compact_boundary" => parse(line, Line::Compacted),
        "informational" => parse(line, Line::Remark),
        "local_command_output" => parse(line, Line::CommandOutput),
        "background_tasks_changed" => parse(line, Line::Background),
        "task_started" => parse(line, Line::TaskStarted),
        "task_updated" => parse(line, Line::TaskUpdated),
        "task_notification" => parse(line, Line::TaskEnded),
        // A refusal is also reported as the call's result.
        "permission_denied" => Some(Line::Ignored),
        "commands_changed"
        | "control_request_progress"
        | "files_persisted"
        | "hook_progress"
        | "hook_started"
        | "memory_recall"
        | "session_state_changed"
        | "task_progress"
        | "thinking_tokens" => Some(Line::Ignored),
        _ => None,
    }
}

fn parse<T: DeserializeOwned>(line: &str, wrap: impl FnOnce(T) -> Line) -> Option<Line> {
    serde_json::from_str(line).ok().map(wrap)
}

#[derive(Debug, Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    subtype: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Init {
    pub(super) session_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cwd: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) claude_code_version: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) mcp_servers: Option<Vec<McpServer>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct McpServer {
    pub(super) name: String,
    pub(super) status: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Status {
    #[serde(default, rename = "permissionMode", deserialize_with = "lenient")]
    pub(super) permission_mode: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) compact_result: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) compact_error: Option<String>,
}

/// Report of Claude Code about the usage limit of the user's subscription.
#[derive(Debug, Deserialize)]
pub(super) struct Limit {
    pub(super) rate_limit_info: LimitInfo,
}

#[derive(Debug, Deserialize)]
pub(super) struct LimitInfo {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    /// Time at which the usage limit resets, in seconds since 1970.
    #[serde(default, rename = "resetsAt", deserialize_with = "lenient")]
    pub(super) resets_at: Option<i64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Login {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) error: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) output: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Hook {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) hook_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) outcome: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) exit_code: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) stderr: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) stdout: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Retry {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) attempt: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) max_retries: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) retry_delay_ms: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) error_status: Option<u16>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) error: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Compacted {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) compact_metadata: Option<CompactMetadata>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CompactMetadata {
    pub(super) pre_tokens: Option<u64>,
    pub(super) post_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Remark {
    pub(super) content: String,
}

/// List of all tasks that Claude Code runs in the background.
#[derive(Debug, Deserialize)]
pub(super) struct Background {
    pub(super) tasks: Vec<Task>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Task {
    pub(super) task_id: String,
    #[serde(default, deserialize_with = "lenient")]
    task_type: Option<String>,
    /// Id of the tool call that the task works for.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) tool_use_id: Option<String>,
}

impl Task {
    pub(super) fn is_agent(&self) -> bool {
        let kind = self.task_type.as_deref().unwrap_or_default();
        kind.contains("agent") || kind.contains("workflow")
    }
}

/// Report that a task has begun, which may continue in the background.
#[derive(Debug, Deserialize)]
pub(super) struct TaskStart {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) task_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) tool_use_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    task_type: Option<String>,
}

impl TaskStart {
    pub(super) fn task(&self) -> Option<Task> {
        let (task_type, tool_use_id) = (self.task_type.clone(), self.tool_use_id.clone());
        Some(Task { task_id: self.task_id.clone()?, task_type, tool_use_id })
    }
}

/// Report that the state of a task has changed.
#[derive(Debug, Deserialize)]
pub(super) struct TaskUpdate {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) task_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    patch: Option<TaskPatch>,
}

#[derive(Debug, Deserialize)]
struct TaskPatch {
    #[serde(default, deserialize_with = "lenient")]
    status: Option<String>,
}

impl TaskUpdate {
    /// Returns the id of the task, if the report is about its end.
    pub(super) fn ended(&self) -> Option<&String> {
        let status = self.patch.as_ref()?.status.as_deref()?;
        let is_over = ["completed", "failed", "killed", "stopped"].contains(&status);
        self.task_id.as_ref().filter(|_| is_over)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct TaskEnd {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) task_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) tool_use_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) summary: Option<String>,
}

impl TaskEnd {
    /// Returns a text for people about a task that failed or was stopped. `None` if the task
    /// completed, because agents report that themselves.
    pub(super) fn trouble(&self) -> Option<&str> {
        let is_well = self.status.as_deref().is_none_or(|it| it == "completed");
        self.summary.as_deref().filter(|it| !is_well && !it.trim().is_empty())
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Stream {
    pub(super) event: ApiEvent,
    #[serde(default)]
    pub(super) parent_tool_use_id: Option<String>,
    /// Set if the model's message broke off. The value is not used.
    #[serde(default)]
    pub(super) abandoned_blocks: Option<IgnoredAny>,
}

/// A streaming event of the model service, which Claude Code passes on unchanged.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ApiEvent {
    MessageStart {
        message: MessageStart,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    /// The end of a block. A finished block closes itself, and the end of the message closes the
    /// others.
    ContentBlockStop {
        #[serde(default)]
        index: u64,
    },
    MessageDelta {
        delta: MessageDelta,
        #[serde(default, deserialize_with = "lenient")]
        usage: Option<TokenCounts>,
    },
    MessageStop {},
    Ping {},
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageStart {
    pub(super) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<TokenCounts>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageDelta {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) stop_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: String },
    /// A delta of any other kind. The finished block has its content.
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct TokenCounts {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct OutputDetails {
    pub(super) thinking_tokens: Option<u64>,
}

/// An `assistant` or `user` line of Claude Code: finished blocks of the model, results of tool
/// calls, or text in the user's name.
#[derive(Debug, Deserialize)]
pub(super) struct MessageLine {
    pub(super) message: MessageBody,
    #[serde(default)]
    pub(super) parent_tool_use_id: Option<String>,
    #[serde(default)]
    pub(super) tool_use_result: Option<Value>,
    #[serde(default)]
    pub(super) tool_result_meta: Value,
    #[serde(default, rename = "isSynthetic", deserialize_with = "lenient")]
    pub(super) is_synthetic: Option<bool>,
    #[serde(default, rename = "isReplay", deserialize_with = "lenient")]
    pub(super) is_replay: Option<bool>,
    /// Whether the model's message was stopped, by Callboard or by a signal.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) aborted: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    is_api_error_message: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) error: Option<String>,
}

impl MessageLine {
    /// Returns whether the message is Claude Code's report of an error of its model service.
    pub(super) fn is_api_error(&self) -> bool {
        let is_synthetic = self.message.model.as_deref() == Some("<synthetic>");
        self.is_api_error_message == Some(true) || (is_synthetic && self.error.is_some())
    }

    /// Returns whether the line has the final result of the tool call with this id.
    pub(super) fn ends(&self, provider_id: &str) -> bool {
        let Content::Blocks(blocks) = &self.message.content else { return false };
        let is_it = |it: &Block| match it {
            Block::ToolResult { tool_use_id, .. } => tool_use_id == provider_id,
            _ => false,
        };
        !is_launch(self.tool_use_result.as_ref()) && blocks.iter().any(is_it)
    }
}

/// Returns whether a tool result is that of a call that continues in the background.
pub(super) fn is_launch(structured: Option<&Value>) -> bool {
    structured.is_some_and(|it| it.get("isAsync") == Some(&Value::Bool(true)))
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageBody {
    #[serde(default)]
    pub(super) id: String,
    pub(super) content: Content,
    #[serde(default, deserialize_with = "lenient")]
    model: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    /// Thinking of the model that is encrypted, and not shown.
    RedactedThinking {},
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: Value,
        #[serde(default, deserialize_with = "lenient")]
        is_error: Option<bool>,
    },
    #[serde(other)]
    Other,
}

/// Report of what became of a line from Callboard.
#[derive(Debug, Deserialize)]
pub(super) struct Lifecycle {
    pub(super) command_uuid: String,
    pub(super) state: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) request_id: String,
    #[serde(default)]
    request: Value,
}

impl Request {
    /// Returns the request for a decision about a tool call. `None` if the request is of another
    /// kind.
    pub(super) fn about_call(self) -> Option<AboutCall> {
        let is_about_call = self.request.get("subtype")? == "can_use_tool";
        let about: AboutCall = serde_json::from_value(self.request).ok()?;
        is_about_call.then_some(about)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct AboutCall {
    /// Model service's id of the tool call. `None` in some versions of Claude Code.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) tool_use_id: Option<String>,
    pub(super) tool_name: String,
    #[serde(default)]
    pub(super) input: Value,
    /// Reason for which Claude Code asks, if the tool call itself does not show it.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) decision_reason: Option<String>,
    /// Path that the tool call may access only with permission.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) blocked_path: Option<String>,
}

impl AboutCall {
    /// Returns the reason for which Claude Code asks, if any. A blocked path that is also an
    /// argument of the call is left out.
    pub(super) fn reason(&self) -> Option<String> {
        let is_argument = |path: &str| {
            let arguments = self.input.as_object().into_iter().flatten();
            arguments.into_iter().any(|(_, it)| it == path)
        };
        let reason = self.decision_reason.as_deref().filter(|it| !it.trim().is_empty());
        let path = self.blocked_path.as_deref().filter(|it| !it.trim().is_empty());
        match (reason, path.filter(|it| !is_argument(it))) {
            (Some(reason), Some(path)) if !reason.contains(path) => {
                Some(format!("{reason} (`{path}`)"))
            }
            (None, Some(path)) => Some(format!("Outside what Claude may do by itself: `{path}`")),
            (reason, _) => reason.map(str::to_owned),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct RequestCancelled {
    pub(super) request_id: String,
}

#[derive(Debug, Deserialize)]
struct Responded {
    response: Response,
}

#[derive(Debug, Deserialize)]
pub(super) struct Response {
    pub(super) request_id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct TurnResult {
    #[serde(default)]
    pub(super) subtype: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) is_error: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) result: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) errors: Option<Vec<String>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) terminal_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) api_error_status: Option<u16>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<TokenCounts>,
    /// Usage of the turn by model, including that of sub-agents.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) model_usage_since_last_result: Option<HashMap<String, ModelUsage>>,
}

/// Token usage and cost of one model in a turn.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    thinking_tokens: u64,
    #[serde(rename = "costUSD")]
    cost_usd: Option<f64>,
}

impl TurnResult {
    /// Returns the token usage of the turn, with all models added up.
    pub(super) fn used(&self) -> Option<Usage> {
        let models = self.model_usage_since_last_result.as_ref();
        let all = models.and_then(|it| it.values().map(|it| it.usage()).reduce(Usage::plus));
        all.filter(|it| it.total_tokens > 0).or_else(|| self.usage.map(TokenCounts::usage))
    }

    /// Returns the cost of the turn in US dollars. Claude Code's `total_cost_usd` is not used,
    /// because it includes earlier turns of the conversation.
    pub(super) fn cost(&self) -> Option<f64> {
        let models = self.model_usage_since_last_result.as_ref()?;
        rounded_cost(models.values().map(|it| it.cost_usd.unwrap_or_default()).sum())
    }
}

impl ModelUsage {
    fn usage(self) -> Usage {
        let counts = TokenCounts {
            input_tokens: Some(self.input_tokens),
            output_tokens: Some(self.output_tokens),
            cache_creation_input_tokens: Some(self.cache_creation_input_tokens),
            cache_read_input_tokens: Some(self.cache_read_input_tokens),
            output_tokens_details: None,
        };
        let reasoning_tokens = Some(self.thinking_tokens).filter(|it| *it > 0);
        Usage { reasoning_tokens, ..counts.usage() }
    }
}
