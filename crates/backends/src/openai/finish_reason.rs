//! Why a model stopped, in one vocabulary for all providers.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
    Error,
    /// A word we do not know, or none at all.
    Other,
}

impl FinishReason {
    /// None for what some send while the answer is still going on.
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
