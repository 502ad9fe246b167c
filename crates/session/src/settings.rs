//! Facts about the server's configuration that a session needs.

use std::collections::HashMap;
use std::path::PathBuf;

/// Configuration of the server, as far as sessions depend on it.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The configured agents by name.
    pub agents: HashMap<String, AgentFacts>,
    /// Limits for calls, approvals and exchanges.
    pub limits: Limits,
}

/// Facts about one agent.
#[derive(Debug, Clone, Default)]
pub struct AgentFacts {
    /// Model that it uses, if that is configured.
    pub model: Option<String>,
    /// Whether it is a program with a conversation of its own.
    pub is_program: bool,
    /// Folder that it works in, unless the session has another.
    pub workspace: PathBuf,
}

/// Limits of a session.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long a call waits for a decision, in milliseconds. None: until somebody decides.
    pub approval_timeout_ms: Option<u64>,
    /// Tool calls in a minute; zero is no limit.
    pub calls_per_minute: usize,
    /// Messages between agents that may follow each other before a person says something.
    pub exchange_depth: u32,
    /// Messages to other agents in one run.
    pub exchanges_per_run: usize,
    /// Messages of agents that may be queued.
    pub queued_exchanges: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            approval_timeout_ms: None,
            calls_per_minute: 0,
            exchange_depth: 8,
            exchanges_per_run: 20,
            queued_exchanges: 20,
        }
    }
}
