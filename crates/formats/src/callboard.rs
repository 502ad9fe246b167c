//! `format=callboard`: a message as the JSON that our own clients read. `content` is the final text
//! alone, `toolCalls` carry the words that led to them, and `parts` has everything in order.

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

/// A message of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatMessage {
    id: String,
    created_at: Millis,
    #[serde(flatten)]
    content: Content,
    /// The history was rewound to before it.
    #[serde(skip_serializing_if = "is_false")]
    superseded: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
enum Content {
    Said(Said),
    Answer(Box<Answer>),
    Aside(Aside),
}

/// From a person, or from another agent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Said {
    role: SaidRole,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<ClientId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Sender>,
    /// How it was written, where the text and the attachments do not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<SentForm>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
enum SaidRole {
    User,
    System,
}

/// One run of an agent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Answer {
    role: AnswerRole,
    /// The final text alone.
    content: String,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    trigger: Trigger,
    parts: Vec<Part>,
    tool_calls: Vec<ToolCall>,
    tool_activity: ToolActivity,
    /// Absent while it runs.
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
    /// The name of the call that started last and still runs.
    current_step: Option<String>,
}

/// Something that happened outside any run, in its place.
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
    /// Absent when `argsText` is not the text of a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
    args_text: String,
    /// Arguments that the agent proposed, if a person changed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    proposed_args_text: Option<String>,
    /// Why its program asked whether it may run, in the program's words.
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
    /// The words that led to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    commentary: Option<String>,
    validation: ToolValidation,
    /// One line that says what came of it.
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

/// `state` in four words.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
enum ToolStatus {
    Pending,
    Running,
    Completed,
    Error,
}

/// Whether a person had to agree, and what became of it.
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
    /// The call of a sub-agent that this happened under.
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
    /// `toolCalls` has it.
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
        /// The first line, where there are several.
        raw: String,
        /// How many lines it stands for, where they are several.
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
    /// Belongs to the other agent, as does `responseId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_id: Option<ResponseId>,
    text: String,
    /// Last known state, while there is no answer.
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
