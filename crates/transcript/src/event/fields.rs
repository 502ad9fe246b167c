//! Types of the fields of events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool that a client runs itself, as it is described to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientTool {
    /// Name of the client's tool.
    pub name: String,
    /// Description of the tool for the model; empty if the client gave none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON Schema of the tool's arguments.
    pub parameters: Value,
}

/// Declares enums whose variants are snake_case words in JSON.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_attr:meta])* $word:ident),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$word_attr])* $word),* }
    )*};
}

words! {
    /// State of a message that was steered: given to an active run.
    SteerState {
        /// The agent has taken the message; the model may not have read it yet.
        HandedOver,
        /// The model has read the steered message.
        Seen,
        /// The agent could not take the message, or its run ended before the model read it. The
        /// message is queued again.
        Returned,
    }
    /// Why the history of a session was rewound.
    RewindReason {
        /// A person or an import replaced a user message with an edited one.
        Edit,
        /// A client of a compat API asked for another response to the same message.
        Regenerate,
        /// A person asked for another response to the same message.
        Retry,
    }
    /// Why a run started.
    Trigger {
        /// A message from a person started the run.
        User,
        /// A message from another agent started the run, whose result is the reply.
        Agent,
        /// The reply of another agent to an asynchronous message started the run.
        Callback,
        /// A request to continue started the run: after the last run broke off, or with the results
        /// of a client's tools.
        Continue,
        /// A request for another response to the same message started the run.
        Retry,
        /// The agent started the run by itself, without a message.
        #[serde(rename = "self")]
        SelfStarted,
    }
    /// The provider's own classification of a text; it takes precedence over Callboard's.
    Phase {
        /// The text is commentary: it explains a tool call.
        Commentary,
        /// The text belongs to the response itself.
        Final,
    }
    /// The party that runs a tool.
    Executor {
        /// Callboard runs the tool.
        Server,
        /// The agent's program runs the tool.
        Agent,
        /// The client that sent the message runs the tool.
        Client,
    }
    /// Whether a tool call needs the approval of a person.
    Validation {
        /// The tool call needs no approval.
        NotRequired,
        /// A person must decide before the tool call may run.
        Pending,
    }
    /// Outcome of the approval request of a tool call.
    Decision {
        /// A person accepted the tool call, or a grant covers it: it may run.
        Accepted,
        /// A person denied the tool call: it does not run.
        Rejected,
        /// Nobody decided about the tool call in time: it does not run.
        TimedOut,
        /// The approval request was withdrawn because no decision is needed any more, as at the end
        /// of the run.
        Withdrawn,
    }
    /// How long a decision about a tool call holds.
    Scope {
        /// The decision holds for one tool call only.
        Once,
        /// The decision holds for the rest of the session.
        Session,
        /// The decision holds for all sessions.
        Always,
    }
    /// The stream to which a tool call prints.
    OutputStream {
        /// Standard output of the tool call.
        Stdout,
        /// Standard error of the tool call.
        Stderr,
    }
    /// Severity of a notice.
    Level {
        /// The notice is only for information.
        Info,
        /// The notice reports that something went wrong.
        Error,
    }
    /// Why a run was interrupted.
    CancelReason {
        /// A person stopped the run, or the agent whose message it answers did.
        UserCancel,
        /// The run exceeded its time limit.
        Timeout,
        /// The run was interrupted because it failed.
        Error,
        /// The server stopped during the run.
        Restart,
        /// The run was unfinished in an imported session.
        Import,
    }
    /// How a run ended.
    RunStatus {
        /// The run completed.
        Completed,
        /// The run failed or exceeded its time limit.
        Failed,
        /// The run was stopped before it was complete: on request, by a restart or by an import.
        Cancelled,
    }
    /// Whether a session is the sender or the receiver of an exchange.
    Direction {
        /// This session sent the message that started the exchange.
        Sent,
        /// This session received the message that started the exchange.
        Received,
    }
    /// Progress of an exchange on the receiving side.
    ExchangeState {
        /// The message waits in the receiver's queue.
        Queued,
        /// The receiver's run for the message is active.
        Running,
        /// The receiver's run for the message waits for a person's approval.
        AwaitingApproval,
    }
}

/// Role of the sender of a `user_message`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SaidBy"))]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// The message comes from a person or another agent, and expects an answer.
    #[default]
    User,
    /// The message contains instructions for the model; it is shown as a muted line and not
    /// answered.
    System,
}

impl MessageRole {
    pub(super) fn is_user(&self) -> bool {
        *self == Self::User
    }
}

/// How a message that arrives during a run reaches the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SendMode {
    /// The message waits in the queue for a run of its own.
    #[default]
    Queue,
    /// The message is steered: it goes into the active run.
    Steer,
}

impl SendMode {
    pub(super) fn is_queue(&self) -> bool {
        *self == Self::Queue
    }
}

/// Whether the sender of an exchange waits for the reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExchangeMode {
    /// The run that sent the message waits for the reply.
    #[default]
    Sync,
    /// The run that sent the message does not wait; the reply starts a new run of the sender.
    Async,
}

impl ExchangeMode {
    pub(super) fn is_sync(&self) -> bool {
        *self == Self::Sync
    }
}

/// A file that belongs to a user message or to the result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Hash of the file's content, under which the content is stored.
    pub blob: String,
    /// Name of the file.
    pub name: String,
    /// Media type of the file, such as `image/png`.
    pub media_type: String,
    /// Size of the file in bytes.
    pub size: u64,
}

/// The choices that a person has when deciding about a tool call, with details that help to decide.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalOptions {
    /// Scopes that the person may give to the decision.
    pub scopes: Vec<Scope>,
    /// Whether the person may edit the arguments of the tool call.
    pub can_edit: bool,
    /// Form that the agent wants the person to fill in; absent if it only needs a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
    /// Tool calls that a lasting decision would cover, as the text of a [`crate::GrantScope`];
    /// absent if the decision can only hold once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<String>,
    /// Reason that the agent's program gives for the request; absent if it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The file that the tool call wants to write; absent if there is none to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<WriteTarget>,
}

/// The file at the path that a tool call wants to write, as it was at the time of the approval
/// request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WriteTarget {
    /// Absolute path of the file.
    pub path: String,
    /// Size of the existing file in bytes; absent if the file does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Content of the existing file; absent unless it is a short text that may be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Token counts of a step or a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Number of tokens of the prompts.
    pub input_tokens: u64,
    /// Number of tokens that the model wrote.
    pub output_tokens: u64,
    /// Total number of tokens: prompts and output.
    pub total_tokens: u64,
    /// Number of prompt tokens that came from the provider's cache; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Number of output tokens that were spent on thinking; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Returns the sum of two token counts, field by field.
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            _ => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            cached_tokens: sum(self.cached_tokens, other.cached_tokens),
            reasoning_tokens: sum(self.reasoning_tokens, other.reasoning_tokens),
        }
    }
}

/// Sizes of the output of a tool call that was truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Truncated {
    /// Size of the whole output in bytes, before it was truncated.
    pub total_bytes: u64,
    /// Number of lines of the whole output; absent if they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// Size of the kept part of the output in bytes.
    pub shown_bytes: u64,
}

/// The result of one rule that was checked to decide whether an agent continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// Name of the rule, such as `StepsLimit`.
    pub criterion: String,
    /// Decision of the rule, such as `continue` or `stop`.
    pub decision: String,
    /// Explanation of the rule's decision for people.
    pub reason: String,
}
