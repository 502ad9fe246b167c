//! Configuration of an agent of this kind.

use std::fmt;

use serde_json::{Map, Value};

/// Configuration of a model agent.
pub struct Settings {
    /// Base of the address, without `/chat/completions`.
    pub base_url: String,
    /// Name of the model.
    pub model: String,
    /// Key of the service.
    pub api_key: Option<String>,
    /// Name of the variable that holds the key, for error messages.
    pub api_key_env: Option<String>,
    /// Headers to add; may hold keys.
    pub headers: Vec<(String, String)>,
    /// Further fields of the request, which override ours.
    pub body: Map<String, Value>,
    /// Fields to leave out of the request, because the service does not accept them.
    pub omit: Vec<String>,
    /// Limits of a run.
    pub limits: Limits,
    /// Number of calls that run in parallel.
    pub parallel_tools: usize,
    /// Number of retries when the service cannot answer.
    pub retries: u32,
    /// Time without data after which a request fails.
    pub idle_timeout_ms: u64,
}

/// Limits of one run. `None` is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Number of steps.
    pub steps: Option<u32>,
    /// Number of tokens, input and output.
    pub tokens: Option<u64>,
    /// Duration in seconds.
    pub seconds: Option<u64>,
    /// Number of tool calls.
    pub tool_calls: Option<u32>,
}

/// Omits the key and the headers, which may hold keys.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Removes secrets from the service's text, which may repeat parts of our request.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        let secrets = self.api_key.iter().chain(self.headers.iter().map(|(_, value)| value));
        let long_enough = secrets.filter(|it| it.len() >= 8);
        long_enough.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "…"))
    }
}
