//! Reasons for which a model stops, the same for all providers.

/// Reason for which a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The model's answer is complete.
    Stop,
    /// The limit of output tokens was reached.
    Length,
    /// The model wants its tool calls to be run.
    ToolCalls,
    /// The model service withheld the answer, or the model refused.
    ContentFilter,
    /// The model service failed.
    Error,
    /// The service gave an unknown reason, or none.
    Other,
}

impl FinishReason {
    /// Parses a model service's finish reason. `None` for values that some services send before the
    /// end.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let word = word.trim().to_ascii_lowercase();
        Some(match word.as_str() {
            "" | "null" | "none" => return None,
            "stop" | "eos" | "eos_token" | "end" | "end_turn" | "stop_sequence" | "complete"
            | "completed" | "done" | "finish" | "finished" | "endoftext" => Self::Stop,
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "max_new_tokens"
            | "model_length"
            | "token_limit"
            | "model_context_window_exceeded" => Self::Length,
            "tool_calls" | "tool-calls" | "tool_call" | "tool_use" | "function_call" => {
                Self::ToolCalls
            }
            "content_filter"
            | "content-filter"
            | "content_filtered"
            | "safety"
            | "sensitive"
            | "recitation"
            | "blocklist"
            | "prohibited_content"
            | "spii"
            | "refusal"
            | "guardrail_intervened" => Self::ContentFilter,
            "error"
            | "error_toxic"
            | "network_error"
            | "malformed_function_call"
            | "insufficient_system_resource" => Self::Error,
            _ => Self::Other,
        })
    }

    /// Returns the name of the finish reason in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool-calls",
            Self::ContentFilter => "content-filter",
            Self::Error => "error",
            Self::Other => "other",
        }
    }
}
