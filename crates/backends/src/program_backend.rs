//! The family of agents that are command-line programs, which run their tools themselves.

use std::fmt;

use serde_json::Value;
use transcript::{CallId, Millis, ResponseId, Scope};

use crate::{ResumeId, RunEffect, RunInput};

/// The backend of a program agent. It lives as long as the program's process, which the driver starts before
/// (see [`Program`]).
///
/// Between runs it is idle and still gets lines. A run begins with [`RunInput::Start`], or by itself with
/// [`ProgramEffect::Begin`].
///
/// ```
/// use backends::{
///     Claude, Exit, Launch, ProgramBackend, ProgramEffect, ProgramInput, RunEffect, RunInput,
/// };
/// use transcript::{Millis, ResponseId};
///
/// let mut claude = Claude::new(Default::default(), &Launch::default());
/// let history = vec![serde_json::json!({ "role": "user", "content": "Hello" })];
/// let start = RunInput::Start { response_id: ResponseId::new("run-1"), history };
/// let effects = claude.on(Millis(0), start.into());
/// let is_prompt =
///     |it: &ProgramEffect| matches!(it, ProgramEffect::Write(line) if line.contains("Hello"));
/// assert!(effects.iter().any(is_prompt));
///
/// let exit = Exit { code: Some(1), stderr: String::new() };
/// let effects = claude.on(Millis(1), ProgramInput::Exited(exit));
/// assert!(matches!(effects.last(), Some(ProgramEffect::Run(RunEffect::End(_)))));
/// ```
pub trait ProgramBackend: fmt::Debug + Send {
    /// Takes an input at the time `now`, and returns its effects in order.
    fn on(&mut self, now: Millis, input: ProgramInput) -> Vec<ProgramEffect>;
}

/// An event that the driver reports to a program agent.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramInput {
    /// An input about the run.
    Run(RunInput),
    /// A line of the program's stdout, without its end.
    Line(String),
    /// Id of the next run that the agent begins by itself. It comes before anything else, and after each
    /// [`ProgramEffect::Begin`].
    Spare(ResponseId),
    /// The decision that a [`ProgramEffect::Ask`] asked for.
    Decided {
        /// The call.
        call_id: CallId,
        /// The decision.
        verdict: Verdict,
    },
    /// The process has ended. It is the last input.
    Exited(Exit),
}

/// Decision about a call that the agent asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The call may run.
    Allowed {
        /// Arguments that a person edited, as raw text.
        arguments: Option<String>,
        /// How long the permission lasts.
        scope: Scope,
    },
    /// A person or the policy refused the call.
    Denied {
        /// The person's reason.
        feedback: Option<String>,
    },
    /// No decision came in time.
    TimedOut,
}

/// End of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// End of the process's stderr, for a person to read.
    pub stderr: String,
}

/// An order of a program agent to the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramEffect {
    /// An effect on the run.
    Run(RunEffect),
    /// Writes a line to the program's stdin, without its end.
    Write(String),
    /// Closes the program's stdin. Some programs begin only then.
    CloseInput,
    /// Begins a run under the spare id, because the agent continues by itself.
    Begin,
    /// Asks for a decision about a call of the program, whose arguments are in the log. The driver applies
    /// the policy, asks a person if necessary, writes both records, and answers with
    /// [`ProgramInput::Decided`] once, unless the request is withdrawn or the run ends first.
    Ask {
        /// The call.
        call_id: CallId,
        /// Whether the call can be run with other arguments.
        can_edit: bool,
        /// A form for a person instead of an approval; the answers are the edited arguments.
        form: Option<Value>,
        /// Reason that the program gives.
        reason: Option<String>,
        /// Whether the program has judged the call itself: it allows harmless calls without asking. The
        /// driver then must not judge by the arguments alone, as the call may run elsewhere, or with more
        /// rights than the program has reported.
        is_judged: bool,
    },
    /// Withdraws a [`ProgramEffect::Ask`]: the program no longer waits for the decision.
    Withdraw(CallId),
    /// Ends the program, which is no longer usable; a new one is started when needed.
    Quit,
    /// Reports that the installed program is too old for this backend. The driver remembers it and ends the
    /// program, and another backend continues the run, with the same [`RunInput::Start`]. This backend gets
    /// no more inputs.
    Outdated,
}

impl From<RunInput> for ProgramInput {
    fn from(input: RunInput) -> Self {
        Self::Run(input)
    }
}

impl From<RunEffect> for ProgramEffect {
    fn from(effect: RunEffect) -> Self {
        Self::Run(effect)
    }
}

/// Command line and environment of a program to start. The driver adds those that all programs share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment variables to add.
    pub env: Vec<(String, String)>,
}

/// Values that a program is started with, beside its configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// The folder in which the agent works.
    pub workspace: String,
    /// Conversation of the program to resume.
    pub resume: Option<ResumeId>,
    /// Callboard's own tools, if they are served.
    pub tools: Option<ToolServer>,
    /// Folder of the files which Callboard ships for its agents.
    pub shipped: String,
    /// Callboard's own folder. A program that supports it is configured to ask before it reads or writes
    /// there.
    pub private: Option<String>,
}

/// An MCP server over streamable HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolServer {
    /// Address of the server.
    pub url: String,
    /// Bearer token.
    pub token: String,
}

/// Omits the token.
impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer").field("url", &self.url).finish_non_exhaustive()
    }
}
