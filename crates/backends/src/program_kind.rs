//! The programs that can be agents.

/// A program that can be an agent. The set is closed: a new program needs a variant here and an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProgramKind {
    /// Anthropic's CLI.
    Claude,
    /// OpenAI's CLI.
    Codex,
    /// The CLI of the Pi project.
    Pi,
}

impl ProgramKind {
    /// All programs.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Pi];

    /// Returns the program's kind in the configuration, which is also its command.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Pi => "pi",
        }
    }

    /// Returns the program's name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Pi => "Pi",
        }
    }
}
