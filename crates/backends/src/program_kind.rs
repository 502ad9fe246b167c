//! The programs that can be agents.

/// A command-line program that can be an agent. The set is closed: a new program needs a variant
/// here and an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProgramKind {
    /// Claude Code, the CLI of Anthropic.
    Claude,
    /// Codex, the CLI of OpenAI.
    Codex,
    /// Pi, the CLI of the Pi project.
    Pi,
}

impl ProgramKind {
    /// All programs that can be agents.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Pi];

    /// Returns the name of the program in the configuration, which is also its command.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Pi => "pi",
        }
    }

    /// Returns the name of the program for people, such as "Claude Code".
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Pi => "Pi",
        }
    }
}
