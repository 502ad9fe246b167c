//! The family of agents that are command-line programs, which run their tools themselves.

use std::fmt;

use serde_json::Value;
use transcript::{CallId, Millis, ResponseId, Scope};

use crate::{ResumeId, RunEffect, RunInput};

/// The backend of a program agent. It lives as long as the program's process, which the driver
/// starts before (see [`Program`]).
///
/// Between runs it is idle and still gets lines. A run begins with [`RunInput::Start`], or by
/// itself with [`ProgramEffect::Begin`].
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
    /// Handles an input at the time `now`, and returns its effects in order.
    fn on(&mut self, now: Millis, input: ProgramInput) -> Vec<ProgramEffect>;
}

/// An input that the driver gives the backend of a program agent.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramInput {
    /// An input about the run, of a kind that all backends get.
    Run(RunInput),
    /// A line of the program's stdout, without the line end.
    Line(String),
    /// Id for the next run that the agent begins by itself. It comes before any other input, and
    /// after each [`ProgramEffect::Begin`].
    Spare(ResponseId),
    /// The decision about a tool call that a [`ProgramEffect::Ask`] asked for.
    Decided {
        /// Id of the tool call that was decided about.
        call_id: CallId,
        /// Decision about the tool call.
        verdict: Verdict,
    },
    /// The program's process has ended. It is the last input.
    Exited(Exit),
}

/// Decision about a tool call, for which a program agent has asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The tool call may run.
    Allowed {
        /// Arguments that a person edited, or answers to a form, as raw text. `None` if they are
        /// unchanged.
        arguments: Option<String>,
        /// Scope of the permission: how long it lasts.
        scope: Scope,
    },
    /// A person or the policy denied the tool call.
    Denied {
        /// Reason for the denial, for the model. `None` if none was given.
        feedback: Option<String>,
    },
    /// Nobody decided about the tool call in time.
    TimedOut,
}

/// The end of a program's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Exit code of the process. `None` if a signal ended it.
    pub code: Option<i32>,
    /// End of the process's stderr, for error messages.
    pub stderr: String,
}

/// An effect that the backend of a program agent asks the driver to carry out.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramEffect {
    /// An effect on the run, of a kind that all backends have.
    Run(RunEffect),
    /// Writes a line to the program's stdin. The driver adds the line end.
    Write(String),
    /// Closes the program's stdin. Some programs begin their work only then.
    CloseInput,
    /// Begins a run under the id of the last [`ProgramInput::Spare`], because the agent continues
    /// by itself.
    Begin,
    /// Asks for a decision about a tool call of the program, whose arguments are in the log. The
    /// driver applies the policy, asks a person if necessary, writes both records, and answers with
    /// [`ProgramInput::Decided`] once, unless the request is withdrawn or the run ends first.
    Ask {
        /// Id of the tool call to decide about.
        call_id: CallId,
        /// Whether the program can run the tool call with edited arguments.
        can_edit: bool,
        /// Form for a person to fill in; the answers come as edited arguments. `None` if the
        /// request is an approval.
        form: Option<Value>,
        /// Reason for which the program asks. `None` if it gives none.
        reason: Option<String>,
        /// Whether the program asks only about tool calls that it does not consider harmless. The
        /// driver then must not decide by the arguments alone, as the call may run elsewhere, or
        /// with more rights than the program has reported.
        is_judged: bool,
    },
    /// Withdraws the [`ProgramEffect::Ask`] about this tool call: the program no longer waits for
    /// the decision.
    Withdraw(CallId),
    /// Ends the program's process, which is no longer usable. The driver starts a new one when
    /// needed.
    Quit,
    /// Reports that the installed program is too old for this backend. The driver remembers it and
    /// ends the program, and another backend continues the run, with the same [`RunInput::Start`].
    /// This backend gets no more inputs.
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

/// Command line and environment of a program to start. The program also inherits some variables of
/// the server's environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Program and its arguments.
    pub command: Vec<String>,
    /// Environment variables to set for the program.
    pub env: Vec<(String, String)>,
}

/// Values for starting a program that are not part of its agent's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// Folder in which the agent works.
    pub workspace: String,
    /// The program's own id of the conversation to resume. `None` starts a new conversation.
    pub resume: Option<ResumeId>,
    /// MCP server with Callboard's own tools. `None` if the program gets none of them.
    pub tools: Option<ToolServer>,
    /// Folder with the files that Callboard ships for its agents, such as the Pi extension.
    pub shipped: String,
    /// Callboard's data folder with its private files. A program that supports it is configured to
    /// ask before it reads or writes there. `None` if there is no such folder.
    pub private: Option<String>,
}

/// Address and token of an MCP server over streamable HTTP, which serves Callboard's own tools.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolServer {
    /// URL of the MCP server.
    pub url: String,
    /// Bearer token for requests to the MCP server.
    pub token: String,
}

/// Omits the bearer token.
impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer").field("url", &self.url).finish_non_exhaustive()
    }
}
