//! What an agent of this kind is told by its configuration.

use std::fmt;

use serde_json::{Map, Value};

pub struct Settings {
    /// Up to and without `/chat/completions`.
    pub base_url: String,
    pub model: String,
    pub api_key: Option<String>,
    /// Where the key comes from, for messages.
    pub api_key_env: Option<String>,
    pub headers: Vec<(String, String)>,
    /// Further keys of the request, which win over ours.
    pub body: Map<String, Value>,
    /// Keys that the service does not take.
    pub omit: Vec<String>,
    pub limits: Limits,
    pub parallel_tools: usize,
    /// How often to ask again when the service cannot answer.
    pub retries: u32,
    /// How long the service may say nothing.
    pub patience_ms: u64,
}

/// How far one run may go. None is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub steps: Option<u32>,
    pub tokens: Option<u64>,
    pub seconds: Option<u64>,
    pub tool_calls: Option<u32>,
}

/// Without the key and the headers, which may hold keys.
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
    /// Takes secrets out of words that came from outside, which may repeat what we sent.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        let secrets = self.api_key.iter().chain(self.headers.iter().map(|(_, value)| value));
        let long_enough = secrets.filter(|it| it.len() >= 8);
        long_enough.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "…"))
    }
}
