//! `format=callboard`: a message as the JSON that our own clients read. `content` is the final text
//! alone, `toolCalls` have their commentary, and `parts` has everything in order.

mod from_transcript;
pub(crate) mod import;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use transcript::{
    Attachment, CallId, CallState, CancelReason, ClientId, Direction, ErrorInfo, ExchangeId,
    ExchangeMode, ExchangeState, Executor, Level, MessageId, Millis, PartId, ResponseId, RunStatus,
    Sender, SentForm, SessionId, SteerState, Trigger, Truncated, Usage,
};

pub use from_transcript::message;
pub use import::import;

#[cfg(test)]
mod tests;

/// A message of a session, in `format=callboard`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatMessage {
    id: String,
    created_at: Millis,
    #[serde(flatten)]
    content: Content,
    /// Whether the message is superseded: a rewind removed it from the history.
    #[serde(skip_serializing_if = "is_false")]
    superseded: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
enum Content {
    Input(InputMessage),
    Answer(Box<Answer>),
    Aside(Aside),
}

/// A user or system message, from a person or from another agent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
struct InputMessage {
    role: InputRole,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<ClientId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Sender>,
    /// Form in which the client sent the message, if the other fields lose information.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<SentForm>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
enum InputRole {
    User,
    System,
}

/// An assistant message: one run of an agent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Answer {
    role: AnswerRole,
    /// Final text of the run, without the commentary of tool calls.
    content: String,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    trigger: Trigger,
    parts: Vec<Part>,
    tool_calls: Vec<ToolCall>,
    tool_activity: ToolActivity,
    /// How the run ended; absent while it is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<RunStatus>,
    #[serde(skip_serializing_if = "is_false")]
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_reason: Option<CancelReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorInfo>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
enum AnswerRole {
    Assistant,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
struct ToolActivity {
    is_active: bool,
    /// Name of the last tool call that is running; null if none is.
    current_step: Option<String>,
}

/// A system message about something that happened outside any run, such as a notice.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Aside {
    role: AsideRole,
    content: String,
    parts: [PartKind; 1],
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
enum AsideRole {
    System,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
struct ToolCall {
    id: CallId,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_call_id: Option<String>,
    name: String,
    /// Arguments as an object, empty if there are none; absent if `argsText` is not a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
    args_text: String,
    /// Arguments that the agent proposed, as JSON text, if a person edited them.
    #[serde(skip_serializing_if = "Option::is_none")]
    proposed_args_text: Option<String>,
    /// The reason that the agent's program gave for asking for approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_because: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    args_incomplete: bool,
    summary: String,
    state: CallState,
    status: ToolStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorInfo>,
    /// Text that precedes the tool call and explains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    commentary: Option<String>,
    validation: ToolValidation,
    /// One-line summary of the tool call's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_summary: Option<String>,
    executor: Executor,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Truncated>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<usize>,
}

/// State of a tool call, reduced to four values; `state` is more precise.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
enum ToolStatus {
    Pending,
    Running,
    Completed,
    Error,
}

/// Whether a tool call needs an approval, and the decision about it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
enum ToolValidation {
    NotRequired,
    Pending,
    Accepted,
    Rejected,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(flatten)]
    kind: PartKind,
    /// Id of the tool call that started the sub-agent that made this part; absent for the agent
    /// itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_call_id: Option<CallId>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum PartKind {
    Text {
        id: PartId,
        text: String,
        role: TextRole,
        open: bool,
        #[serde(skip_serializing_if = "is_false")]
        leaked: bool,
    },
    Thinking {
        id: PartId,
        text: String,
        open: bool,
    },
    /// A tool call; its details are in `toolCalls`.
    ToolCall {
        id: CallId,
    },
    Steered {
        id: MessageId,
        text: String,
        state: SteerState,
    },
    Exchange(Box<Exchange>),
    Notice {
        level: Level,
        text: String,
    },
    Unrecognized {
        source: String,
        /// The unrecognized line; the first one if there are several.
        raw: String,
        /// Number of unrecognized lines; absent if there is only one.
        #[serde(skip_serializing_if = "Option::is_none")]
        lines: Option<u64>,
    },
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
enum TextRole {
    Undecided,
    Commentary,
    Final,
    Discarded,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Exchange {
    id: ExchangeId,
    direction: Direction,
    mode: ExchangeMode,
    agent: String,
    /// Session of the other agent; `responseId` is its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_id: Option<ResponseId>,
    text: String,
    /// Last known state of the exchange; absent once the exchange has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<ExchangeState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorInfo>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}
