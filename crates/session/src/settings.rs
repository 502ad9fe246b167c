//! Facts about the server's configuration that a session needs.

use std::collections::HashMap;
use std::path::PathBuf;

/// The part of the server's configuration on which sessions depend.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Facts about the configured agents, by the agents' names.
    pub agents: HashMap<String, AgentFacts>,
    /// Limits for tool calls, approvals and exchanges.
    pub limits: Limits,
}

/// Facts from the configuration about one agent.
#[derive(Debug, Clone, Default)]
pub struct AgentFacts {
    /// Model that the agent uses. `None` if none is configured.
    pub model: Option<String>,
    /// Whether the agent is a program with a conversation of its own.
    pub is_program: bool,
    /// Folder that the agent works in, unless the session has another.
    pub workspace: PathBuf,
}

/// Limits that each session enforces.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time limit in milliseconds for a person's decision about a tool call, and for tools that
    /// clients run. `None`: no limit for decisions, and a default for clients.
    pub approval_timeout_ms: Option<u64>,
    /// Maximum number of tool calls of a session within a minute. Zero means no limit.
    pub calls_per_minute: usize,
    /// Maximum length of a chain of messages between agents that begins with a message of a person.
    pub exchange_depth: u32,
    /// Maximum number of messages that one run sends to other agents.
    pub exchanges_per_run: usize,
    /// Maximum number of messages of other agents in the queue of one session.
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
