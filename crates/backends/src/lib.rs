//! Backends: state machines without I/O that interpret the agents.
//!
//! A [`Backend`] gets inputs and returns effects. It reads no clock, draws no random number and cannot fail:
//! a failure ends the run, as an [`Effect`] like any other.
//!
//! ```
//! use backends::{Backend, Demo, Effect, Input, Pace};
//! use transcript::{Event, Millis, ResponseId};
//!
//! let mut demo = Demo::new(Pace::Instant);
//! let history = vec![serde_json::json!({ "role": "user", "content": "Hello" })];
//! let start = Input::Start { response_id: ResponseId::new("run-1"), history };
//! let effects = demo.on(Millis(0), start);
//! assert!(matches!(effects.first(), Some(Effect::Emit(Event::StepStart { .. }))));
//! assert!(matches!(effects.last(), Some(Effect::End(_))));
//! ```
//!
//! # The contract with the driver
//!
//! - One input at a time. The driver carries out all effects of an answer, in their order, before
//!   it gives the next input.
//! - A run begins with [`Input::Start`] or [`Input::Resume`] and ends with [`Effect::End`], which is
//!   the last effect of its answer.
//! - `now` is the only clock. A [`Effect::WakeAt`] replaces the one before it.
//! - Every [`Effect::RunTool`] gets exactly one [`Input::ToolResult`], and every
//!   [`Effect::ReadHistory`] one [`Input::History`], unless the run ends first.
//! - An [`Effect::Request`] is answered by [`Input::Head`], any number of [`Input::Bytes`] and one
//!   [`Input::Ended`]; by `Ended` alone if it never got that far. A new request, and the end of the
//!   run, cancel the one before.
//! - An agent whose tools the driver runs gets [`Input::Tools`] before every `Start`, `Resume` and
//!   `History`: the tools may change between two steps.
//! - The driver writes `run_start`, `run_finish`, and for the calls that it runs the approval,
//!   `tool_running`, `tool_retry`, `tool_output_delta` and `tool_result`; it decides about their
//!   `validation`. The backend emits everything else.
//! - A run may end while a step, a part or a call is open. The driver closes what is open.
//! - Ids of parts and calls are `{responseId}.{n}`, counted by the backend.
//!
//! The two families differ in how long a value lives. `openai` and `demo` live for one run:
//! nothing is called after its end. Program agents live as long as their process:
//!
//! - The driver starts the process (see [`Program`]) and then makes the value. Every line of
//!   stdout is an [`Input::Line`]; [`Effect::Write`] writes one to stdin. [`Input::Exited`] is the last
//!   input.
//! - Between runs the value is idle and still gets lines. Each `Start` begins the next run.
//! - An agent may go on by itself: [`Effect::Begin`] starts a run under the id that [`Input::Spare`]
//!   gave in advance. The driver gives a new spare id after each `Begin`, and the first one before
//!   anything else.
//! - The program runs its tools itself, so the backend emits all of `tool_*` but the approvals. For
//!   those it returns [`Effect::Ask`]; the driver applies the policy, asks a person if necessary, writes
//!   both records, and answers with [`Input::Decided`] once, unless the backend returns
//!   [`Effect::Withdraw`] or the run ends first.

#![warn(missing_docs)]

pub mod claude;
pub mod codex;
mod demo;
mod emitter;
mod ending;
pub mod import;
pub mod openai;
pub mod pi;
mod program;
mod program_kind;
mod resume_id;
mod steering;
mod surrogates;
mod tool_event;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
pub use transcript::arguments_summary;
use transcript::{CallId, Event, MessageId, Millis, PartKind, ResponseId, RunMessage, Scope};

pub use crate::claude::Claude;
pub use crate::demo::{Demo, Pace};
pub use crate::ending::Ending;
pub use crate::openai::OpenAi;
pub use crate::pi::Pi;
pub use crate::program_kind::ProgramKind;
pub use crate::resume_id::ResumeId;
pub use crate::surrogates::replace_lone_surrogates;
pub use crate::tool_event::{ToolEvent, ToolOutcome};

/// An agent, seen from the server.
pub trait Backend: fmt::Debug + Send {
    /// Takes an input at the time `now`, and returns its effects in order.
    fn on(&mut self, now: Millis, input: Input) -> Vec<Effect>;
}

/// An event that the driver reports to a backend.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// `history` holds OpenAI chat messages, oldest first. What stands after the last user message
    /// was said and done by an earlier run that broke off.
    Start {
        /// Id of the run.
        response_id: ResponseId,
        /// The conversation, with the message to answer at its end.
        history: Vec<Value>,
    },
    /// Continues a run that began before the server was restarted, in place of [`Input::Start`]. `answer` is
    /// the run so far; its calls without a result are to be run.
    Resume {
        /// The run so far.
        answer: Box<RunMessage>,
        /// The conversation as in [`Input::Start`].
        history: Vec<Value>,
    },
    /// Tools that may be called from now on, in the form of the OpenAI API: `{"type": "function", ...}`.
    Tools(Vec<Value>),
    /// The result of a call that the driver ran.
    ToolResult {
        /// The call.
        call_id: CallId,
        /// Its result.
        outcome: ToolOutcome,
    },
    /// A call waits for a person or a client before it does anything, and does not count as running
    /// meanwhile.
    ToolWaits(CallId),
    /// The conversation as in [`Input::Start`], including this run so far.
    History(Vec<Value>),
    /// An HTTP response begins. Header names are in lower case.
    Head {
        /// Status code.
        status: u16,
        /// Headers in order.
        headers: Vec<(String, String)>,
    },
    /// Bytes of the response's body, cut anywhere.
    Bytes(Vec<u8>),
    /// The response is complete, or the connection was lost.
    Ended(Result<(), Lost>),
    /// A line of the program's stdout, without its end.
    Line(String),
    /// Id of the next run that the agent begins by itself.
    Spare(ResponseId),
    /// The decision that an [`Effect::Ask`] asked for.
    Decided {
        /// The call.
        call_id: CallId,
        /// The decision.
        verdict: Verdict,
    },
    /// A message for the active run. Answered with a `message_steered` when the agent has it and another one
    /// when the model has, or with [`Effect::CannotSteer`]: immediately, when the run ends before its next
    /// step, or when the agent has given it back.
    Steer {
        /// Id of the message.
        message_id: MessageId,
        /// One chat message, as in [`Input::Start`].
        message: Value,
    },
    /// The process has ended.
    Exited(Exit),
    /// A request to stop the run.
    Interrupt,
    /// The time of the last [`Effect::WakeAt`] has come.
    Wake,
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

/// Reason for which a response ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Kind of the failure.
    pub how: HowLost,
    /// Description for a person.
    pub message: String,
}

/// Kind of a failed connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowLost {
    /// No connection was made.
    NeverConnected,
    /// Nothing came for too long.
    TimedOut,
    /// The connection was lost.
    BrokeOff,
}

/// A command of a backend to the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Appends an event to the log, for the open run.
    Emit(Event),
    /// Runs a tool.
    RunTool {
        /// The call.
        call_id: CallId,
        /// Name of the tool.
        tool_name: String,
        /// Raw text of the arguments.
        arguments: String,
    },
    /// Reads the conversation, answered by [`Input::History`].
    ReadHistory,
    /// Sends an HTTP request.
    Request(Request),
    /// Writes a line to the program's stdin, without its end.
    Write(String),
    /// Closes the program's stdin. Some programs begin only then.
    CloseInput,
    /// Begins a run under the spare id: the agent goes on by itself.
    Begin,
    /// Asks for a decision about a call of the program, whose arguments are in the log.
    Ask {
        /// The call.
        call_id: CallId,
        /// The call can be run with other arguments.
        can_edit: bool,
        /// A form for a person instead of an approval; the answers are the edited arguments.
        form: Option<Value>,
        /// Reason that the program gives.
        reason: Option<String>,
        /// The program would let a harmless call pass by itself, so the driver must not judge by the
        /// arguments alone: the call may run elsewhere, or with more rights than the program has reported.
        is_judged: bool,
    },
    /// Withdraws an [`Effect::Ask`]: the program no longer waits for the decision.
    Withdraw(CallId),
    /// Gives a message back to wait for the next run, also if it was handed over: no model has seen it, and
    /// none will because of this run.
    CannotSteer(MessageId),
    /// Asks for an [`Input::Wake`] at this time.
    WakeAt(Millis),
    /// Ends the run.
    End(Ending),
    /// Ends the program, which is of no more use; a new one is started when needed.
    Quit,
    /// Reports that the installed program is too old to be driven in this way, which is to be remembered. It
    /// is ended, and another backend continues the run, with the same [`Input::Start`]. This value gets no
    /// more inputs.
    Outdated,
}

/// The command line and environment of a program to start, as far as they are its own. The driver adds the
/// rest.
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
    /// Callboard's own folder. A program that can be configured so asks before it reads or writes there.
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

/// An HTTP request with a JSON body.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// HTTP method.
    pub method: &'static str,
    /// Address.
    pub url: String,
    /// Headers in order; may hold keys.
    pub headers: Vec<(String, String)>,
    /// JSON body.
    pub body: Arc<str>,
    /// Time without data after which the connection counts as lost.
    pub patience_ms: u64,
}

/// Omits headers, which hold keys, and bodies, which hold messages.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Number of ids that a run has given to its parts and calls.
fn ids_given(answer: &RunMessage) -> u32 {
    let ids = answer.parts.iter().filter_map(|part| match &part.kind {
        PartKind::Text(text) => Some(text.id.as_str()),
        PartKind::Thinking(thinking) => Some(thinking.id.as_str()),
        PartKind::Call(call) => Some(call.id.as_str()),
        _ => None,
    });
    let number = |id: &str| id.rsplit_once('.').and_then(|(_, n)| n.parse().ok());
    ids.filter_map(number).max().unwrap_or(0)
}

/// Calls without a result, to be run.
fn open_calls(answer: &RunMessage) -> impl Iterator<Item = Effect> {
    answer.calls().filter(|call| call.is_open()).map(|call| Effect::RunTool {
        call_id: call.id.clone(),
        tool_name: call.name.clone(),
        arguments: call.arguments.whole().unwrap_or_default(),
    })
}
