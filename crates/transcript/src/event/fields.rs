//! Types of the fields of events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool that a client runs, as it is described to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientTool {
    /// Name of the tool.
    pub name: String,
    /// Description for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON Schema of the arguments.
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
    /// State of a message that was given to an active run.
    SteerState {
        /// The agent has the message.
        HandedOver,
        /// The model has read the message.
        Seen,
        /// The agent could not take the message, or its run ended first. The message is queued again.
        Returned,
    }
    /// Why the history was rewound.
    RewindReason {
        /// A message was replaced by an edited one.
        Edit,
        /// A client wants another response to the same message.
        Regenerate,
        /// A person wants another response to the same message.
        Retry,
    }
    /// Why a run started.
    Trigger {
        /// A message from a person.
        User,
        /// A message from another agent.
        Agent,
        /// A reply from another agent.
        Callback,
        /// Tool results of a client.
        Continue,
        /// A request for another response.
        Retry,
        /// The agent continued without a message.
        #[serde(rename = "self")]
        SelfStarted,
    }
    /// The provider's own classification of a text; it takes precedence over ours.
    Phase {
        /// The text explains a call.
        Commentary,
        /// The text is the response.
        Final,
    }
    /// The party that runs a tool.
    Executor {
        /// Callboard.
        Server,
        /// The agent's program.
        Agent,
        /// The client that sent the message.
        Client,
    }
    /// Whether a call needs the approval of a person.
    Validation {
        /// The call may run.
        NotRequired,
        /// A person must decide first.
        Pending,
    }
    /// The outcome of an approval request.
    Decision {
        /// The call may run.
        Accepted,
        /// The call was denied.
        Rejected,
        /// Nobody decided in time.
        TimedOut,
        /// The request became irrelevant.
        Withdrawn,
    }
    /// How long a decision holds.
    Scope {
        /// For one call.
        Once,
        /// For the session.
        Session,
        /// For all sessions.
        Always,
    }
    /// An output stream of a call.
    OutputStream {
        /// Standard output.
        Stdout,
        /// Standard error.
        Stderr,
    }
    /// Severity of a notice.
    Level {
        /// For information.
        Info,
        /// Something went wrong.
        Error,
    }
    /// Why a run was interrupted.
    CancelReason {
        /// A person stopped the run.
        UserCancel,
        /// The run exceeded its time limit.
        Timeout,
        /// The run failed.
        Error,
        /// The server stopped.
        Restart,
        /// The run was unfinished in an imported session.
        Import,
    }
    /// How a run ended.
    RunStatus {
        /// The run completed.
        Completed,
        /// The run failed.
        Failed,
        /// The run was stopped.
        Cancelled,
    }
    /// Which side of an exchange a session is.
    Direction {
        /// The session sent the message.
        Sent,
        /// The session received the message.
        Received,
    }
    /// Progress of an exchange on the receiving side.
    ExchangeState {
        /// The message is in the receiver's queue.
        Queued,
        /// The receiver's run is active.
        Running,
        /// The receiver's run waits for a person's approval.
        AwaitingApproval,
    }
}

/// Role of the sender of a `user_message`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SaidBy"))]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// A person or another agent.
    #[default]
    User,
    /// Instructions; shown as a muted line and not answered.
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
    /// The message waits for a run of its own.
    #[default]
    Queue,
    /// The message goes into the active run.
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
    /// The sender waits.
    #[default]
    Sync,
    /// The reply starts a new run of the sender.
    Async,
}

impl ExchangeMode {
    pub(super) fn is_sync(&self) -> bool {
        *self == Self::Sync
    }
}

/// A file that belongs to a message or a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Hash of the stored content.
    pub blob: String,
    /// File name.
    pub name: String,
    /// Media type.
    pub media_type: String,
    /// Size in bytes.
    pub size: u64,
}

/// The choices of a person who decides about a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalOptions {
    /// Scopes that the decision may have.
    pub scopes: Vec<Scope>,
    /// Whether the arguments can be edited.
    pub can_edit: bool,
    /// A form to fill in, for a question of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
    /// Calls that a lasting decision would cover, see [`crate::GrantScope`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<String>,
    /// The reason that the agent's program gives for asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The file that the call would overwrite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<WriteTarget>,
}

/// The file at the path that a call wants to write, at the moment of the approval request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WriteTarget {
    /// Absolute path.
    pub path: String,
    /// Size of the existing file; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Content of the existing file, if it is text and short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Token counts of a step or a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the output.
    pub output_tokens: u64,
    /// Sum of both.
    pub total_tokens: u64,
    /// Prompt tokens that came from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Output tokens that were spent on thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Returns the sum of both counts.
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

/// Sizes of an output that was truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Truncated {
    /// Size of the whole output in bytes.
    pub total_bytes: u64,
    /// Lines of the whole output, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// Size of the output that was kept.
    pub shown_bytes: u64,
}

/// One finding in the decision whether an agent continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// Name of the rule.
    pub criterion: String,
    /// Verdict of the rule.
    pub decision: String,
    /// Explanation for people.
    pub reason: String,
}
