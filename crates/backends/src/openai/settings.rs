//! Configuration of an agent of this kind.

use std::fmt;

use serde_json::{Map, Value};

/// Configuration of a model agent.
pub struct Settings {
    /// Base URL of the model service's API, without `/chat/completions`.
    pub base_url: String,
    /// Name of the model, as the service knows it.
    pub model: String,
    /// API key of the model service. `None` if it needs none.
    pub api_key: Option<String>,
    /// Name of the environment variable that holds the API key, for error messages.
    pub api_key_env: Option<String>,
    /// HTTP headers to add to each request; their values may be secret keys.
    pub headers: Vec<(String, String)>,
    /// Further fields of the request body, which override Callboard's.
    pub body: Map<String, Value>,
    /// Names of fields to leave out of the request body, because the service does not accept them.
    pub omit: Vec<String>,
    /// Limits of each run of the agent.
    pub limits: Limits,
    /// Maximum number of tool calls of a run that run at the same time.
    pub parallel_tools: usize,
    /// Maximum number of retries of a request after the model service failed.
    pub retries: u32,
    /// Time in milliseconds without data after which a request fails.
    pub idle_timeout_ms: u64,
}

/// Limits of one run of a model agent. `None` means no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Maximum number of steps of a run.
    pub steps: Option<u32>,
    /// Maximum number of tokens of a run, input and output together.
    pub tokens: Option<u64>,
    /// Maximum duration of a run in seconds.
    pub seconds: Option<u64>,
    /// Maximum number of tool calls of a run.
    pub tool_calls: Option<u32>,
}

/// Omits the API key, and the headers and other settings that may hold keys.
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
    /// Replaces the API key and header values of at least 8 bytes in a text of the model service,
    /// which may repeat parts of the request.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        let secrets = self.api_key.iter().chain(self.headers.iter().map(|(_, value)| value));
        let long_enough = secrets.filter(|it| it.len() >= 8);
        long_enough.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "…"))
    }
}
