//! What each agent says and wants, as state machines without I/O.
//!
//! A [`Backend`] is told what happened and answers with what to do. It reads no clock, draws no
//! random number and cannot fail: what goes wrong ends the run, as an [`Effect`] like any other.
//!
//! # The contract with the driver
//!
//! - One input at a time. The driver carries out all effects of an answer, in their order, before
//!   it gives the next input.
//! - A run begins with [`Input::Start`] or [`Input::Resume`] and ends with [`Effect::End`], which is
//!   the last effect of its answer.
//! - `now` is the only time there is. A [`Effect::WakeAt`] replaces the one before it.
//! - Every [`Effect::RunTool`] gets exactly one [`Input::ToolResult`], and every
//!   [`Effect::ReadHistory`] one [`Input::History`], unless the run ends first.
//! - An [`Effect::Request`] is answered by [`Input::Head`], any number of [`Input::Bytes`] and one
//!   [`Input::Ended`]; by `Ended` alone if it never got that far. A new request, and the end of the
//!   run, cut the one before off, and nothing more is heard of it.
//! - To an agent whose tools the driver runs, [`Input::Tools`] comes before every `Start`, `Resume` and
//!   `History`: the tools there are may change between two steps.
//! - The driver writes `run_start`, `run_finish`, and for the calls that it runs the approval,
//!   `tool_running`, `tool_retry`, `tool_output_delta` and `tool_result`; it decides about their
//!   `validation`. The backend emits everything else.
//! - A run may end while a step, a part or a call is open. The driver closes what is open.
//! - Ids of parts and calls are `{responseId}.{n}`, counted by the backend.
//!
//! How long a value lives is where the two families differ. `openai` and `demo` live for one run:
//! nothing is called after its end. The command-line agents live as long as their process:
//!
//! - The driver starts the process (what to run: [`Program`]) and then makes the value. Every line of
//!   stdout is an [`Input::Line`]; [`Effect::Write`] puts one on stdin. [`Input::Exited`] is the last
//!   input there is.
//! - Between runs the value is idle and still hears lines. Each `Start` begins the next run.
//! - An agent may go on by itself: [`Effect::Begin`] starts a run under the id that [`Input::Spare`]
//!   gave in advance. The driver gives a new spare id after each `Begin`, and the first one before
//!   anything else.
//! - The program runs its tools itself, so the backend emits all of `tool_*` but the approvals. For
//!   those it says [`Effect::Ask`]; the driver looks at the policy, asks a person if it has to, writes
//!   both records, and answers with [`Input::Decided`] once, unless the backend says
//!   [`Effect::Withdraw`] or the run ends first.

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

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
pub use transcript::arguments_summary;
use transcript::{
    CallId, ErrorInfo, Event, MessageId, Millis, PartKind, ResponseId, RunMessage, Scope,
};

pub use crate::claude::Claude;
pub use crate::demo::{Demo, Pace};
pub use crate::ending::Ending;
pub use crate::openai::OpenAi;
pub use crate::pi::Pi;
pub use crate::program_kind::ProgramKind;
pub use crate::resume_id::ResumeId;
pub use crate::surrogates::replace_lone_surrogates;

/// An agent, seen from the server.
pub trait Backend: fmt::Debug + Send {
    fn on(&mut self, now: Millis, input: Input) -> Vec<Effect>;
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// `history` holds OpenAI chat messages, oldest first. What stands after the last user message
    /// was said and done by an earlier run that broke off.
    Start {
        response_id: ResponseId,
        history: Vec<Value>,
    },
    /// Instead of [`Input::Start`]: the run began before the server was started anew, and all that is
    /// open of it are calls without a result, which are to be run. `answer` holds what was done.
    Resume {
        answer: Box<RunMessage>,
        history: Vec<Value>,
    },
    /// What may be called from now on, as the OpenAI API wants it: `{"type": "function", ...}`.
    Tools(Vec<Value>),
    ToolResult {
        call_id: CallId,
        outcome: ToolOutcome,
    },
    /// Before a call does anything, a person or a client has to: it takes nobody's place meanwhile.
    ToolWaits(CallId),
    /// As in [`Input::Start`], with all that this run has done by now.
    History(Vec<Value>),
    /// An HTTP response begins. Names of headers are in small letters.
    Head {
        status: u16,
        headers: Vec<(String, String)>,
    },
    Bytes(Vec<u8>),
    /// All bytes have come, or the connection was lost.
    Ended(Result<(), Lost>),
    /// A line that the program wrote to its stdout, without its end.
    Line(String),
    /// The id of the next run that the agent starts by itself.
    Spare(ResponseId),
    Decided {
        call_id: CallId,
        verdict: Verdict,
    },
    /// To be handed to the run that is active. Answered with a `message_steered` when the agent has
    /// it and another one when the model has, or with [`Effect::CannotSteer`]: at once, when the run
    /// ends before its next step, or when the agent has given it back.
    Steer {
        message_id: MessageId,
        /// As in [`Input::Start`], one message.
        message: Value,
    },
    /// The process is gone, for whatever reason.
    Exited(Exit),
    /// Somebody wants the run to stop.
    Interrupt,
    /// The moment of the last [`Effect::WakeAt`] has come.
    Wake,
}

/// How a tool call ended. `error` says why when `ok` is false.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    pub ok: bool,
    pub result: Value,
    pub error: Option<ErrorInfo>,
}

/// What was decided about a call that the agent asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// `arguments` where a person changed them: raw text.
    Allowed {
        arguments: Option<String>,
        scope: Scope,
    },
    Denied {
        feedback: Option<String>,
    },
    /// Nobody decided in time.
    TimedOut,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// `None`: a signal ended it.
    pub code: Option<i32>,
    /// The last it wrote to stderr, for a person to read.
    pub stderr: String,
}

/// Why nothing more comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    pub how: HowLost,
    /// For a person to read.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowLost {
    NeverConnected,
    TimedOut,
    BrokeOff,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Emit(Event),
    /// `arguments` is the raw text, as the agent wrote it.
    RunTool {
        call_id: CallId,
        tool_name: String,
        arguments: String,
    },
    ReadHistory,
    Request(Request),
    /// A line for the program's stdin, without its end.
    Write(String),
    /// Nothing more will be written: the program's stdin ends here. Some begin only then.
    CloseInput,
    /// A run begins that nobody asked for, under the spare id.
    Begin,
    /// The program wants to know whether the call, whose arguments are in the log, may run.
    Ask {
        call_id: CallId,
        /// It can be told to run with other arguments.
        can_edit: bool,
        /// Questions to a person instead of a yes or no; their answers are the edited arguments.
        form: Option<Value>,
        /// Why, in the program's words.
        reason: Option<String>,
        /// The program would have let a harmless call pass by itself. What looks harmless from here may run
        /// elsewhere, or with more rights than the program has told.
        is_judged: bool,
    },
    /// The program asks no longer.
    Withdraw(CallId),
    /// The message has to wait for the next run, also if it was handed over: no model has seen it, and
    /// none will because of this run.
    CannotSteer(MessageId),
    WakeAt(Millis),
    End(Ending),
    /// The program is of no more use and is to be ended; a new one will be started when needed.
    Quit,
    /// The installed program is too old to be driven in this way, which is to be remembered. It is ended, and
    /// the run goes to one that is driven otherwise, which gets the same [`Input::Start`]. Nothing is asked of
    /// this value any more.
    Outdated,
}

/// A program to start: what is its own of the command line and of the environment. Where it runs and
/// what else it inherits is the driver's business.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    pub command: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// What a program is started with, beside its configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    pub workspace: String,
    /// The program's own conversation to resume.
    pub resume: Option<ResumeId>,
    /// Callboard's own tools, where they are served.
    pub tools: Option<ToolServer>,
    /// A folder that holds the files which Callboard ships for its agents.
    pub shipped: String,
    /// Callboard's own folder. A program that can be told so asks before it reads or writes there.
    pub private: Option<String>,
}

/// An MCP server over streamable HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolServer {
    pub url: String,
    pub token: String,
}

/// The token stays out of logs.
impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer").field("url", &self.url).finish_non_exhaustive()
    }
}

/// An HTTP request with a JSON body.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    pub method: &'static str,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Arc<str>,
    /// How long nothing may come before the connection counts as lost.
    pub patience_ms: u64,
}

/// Headers hold keys, and bodies what people said: neither belongs into a log.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("url", &self.url).finish_non_exhaustive()
    }
}

/// How many ids a run has given to its parts and calls.
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

/// Calls without a result, as they are to be run.
fn open_calls(answer: &RunMessage) -> impl Iterator<Item = Effect> {
    answer.calls().filter(|call| call.is_open()).map(|call| Effect::RunTool {
        call_id: call.id.clone(),
        tool_name: call.name.clone(),
        arguments: call.arguments.whole().unwrap_or_default(),
    })
}
