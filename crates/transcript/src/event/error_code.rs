//! All errors of a session as one closed list. `docs/errors.md` is generated from it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An error of a session: a code for programs and a message for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorInfo {
    /// Code that names the cause of the error.
    pub code: ErrorCode,
    /// Explanation of the error for people.
    pub message: String,
}

impl ErrorInfo {
    /// Returns an error with this code and message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

macro_rules! error_codes {
    ($($name:ident $code:literal $meaning:literal)*) => {
        /// The cause of an error of a session, as a stable identifier.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum ErrorCode {
            $(#[doc = $meaning] #[serde(rename = $code)] $name,)*
            /// An error code of a newer version, kept unchanged.
            #[serde(untagged)]
            #[cfg_attr(feature = "schema", schemars(skip))]
            Other(String),
        }

        impl ErrorCode {
            /// All error codes with their meanings, in the order of the documentation.
            pub const ALL: &[(Self, &str)] = &[$((Self::$name, $meaning)),*];

            /// Returns the error code as it is in JSON.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $code,)*
                    Self::Other(code) => code,
                }
            }
        }
    };
}

error_codes! {
    ToolError "tool_error" "The tool ran and said that it failed."
    ToolFailed "tool_failed" "The tool ended badly without saying why."
    ToolNotFound "tool_not_found" "The agent called a tool that does not exist here."
    InvalidArguments "invalid_arguments" "The arguments do not fit what the tool takes; nothing ran."
    ToolDenied "tool_denied" "A person or the policy refused the call; nothing ran."
    ToolInterrupted "tool_interrupted" "The call was stopped before it could finish."
    ToolTimeout "tool_timeout" "The tool did not finish within its time limit."
    RateLimitTools "rate_limit_tools" "The agent called tools more often than the limit allows."
    ToolIterationLimit "tool_iteration_limit" "The agent went on calling tools beyond the limit of its run."
    AgentNotFound "agent_not_found" "No agent of that name is configured."
    AgentBusy "agent_busy" "The agent is working and cannot take this now."
    AgentCycle "agent_cycle" "Agents would wait for each other in a circle."
    AgentDepthLimit "agent_depth_limit" "Agents asked agents deeper than the limit allows."
    UpstreamError "upstream_error" "The model service failed or answered something unreadable."
    UpstreamTimeout "upstream_timeout" "The model service did not answer in time."
    UpstreamAuth "upstream_auth" "The model service refused the key."
    RateLimitUpstream "rate_limit_upstream" "The model service asks us to slow down."
    ContextTooLong "context_too_long" "The conversation no longer fits into the model's context."
    AgentExited "agent_exited" "The agent's program ended in the middle of a run."
    AgentNotInstalled "agent_not_installed" "The agent's program is not on this machine."
    AgentForbidden "agent_forbidden" "This agent may not send messages to the other agent."
    AgentSelf "agent_self" "An agent cannot send a message to its own session."
    AgentTimeout "agent_timeout" "The other agent did not answer in time."
    AgentFailed "agent_failed" "The other agent's run failed."
    AgentCancelled "agent_cancelled" "The other agent's run was cancelled."
    AgentEmpty "agent_empty" "The other agent's run ended without an answer."
    QueueFull "queue_full" "Too many messages are waiting already."
    ExchangeLimit "exchange_limit" "The run has reached its limit of messages to other agents."
    ApprovalTimeout "approval_timeout" "Nobody decided about the call in time; nothing ran."
    Storage "storage" "The log could not be written, for instance because the disk is full."
    InternalError "internal_error" "A fault of Callboard itself; its log says more."
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
