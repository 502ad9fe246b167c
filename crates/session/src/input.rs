//! Everything that can happen to a session.

use std::collections::HashSet;

use backends::{ModelBackend, ProgramBackend, ResponsePart};
use serde_json::Value;
use transcript::{Call, CallId, ErrorInfo, MessageId, ResponseId, WriteTarget};

use crate::{Command, Line, QueryId, ReplyId, ReplyTo};

/// An event from outside.
#[derive(Debug)]
pub enum Input {
    /// Somebody wants something.
    Command(Command),
    /// A caller no longer waits for its reply.
    CallerGone(ReplyId),
    /// The agent, or a tool of it, did something.
    Agent(AgentInput),
    /// The program wrote these lines after it was told to end.
    LateLines(Vec<Line>),
    /// Reply to [`crate::Effect::Launch`].
    Launched {
        /// Run that needs the agent.
        run: ResponseId,
        /// Why the program could not resume its conversation, as a notice for the log.
        notice: Option<String>,
        /// The agent, or why it cannot work.
        result: Result<Launched, ErrorInfo>,
    },
    /// Reply to [`crate::Effect::ReadHistory`].
    History {
        /// Run that needs it.
        run: ResponseId,
        /// The conversation, or why it cannot be read.
        result: Result<History, String>,
    },
    /// Reply to [`crate::Effect::Judge`].
    Judged {
        /// Number of the request.
        query: QueryId,
        /// The judgement.
        judged: Judged,
    },
    /// Reply to [`crate::Effect::Find`].
    Found {
        /// Number of the request.
        query: QueryId,
        /// The result, or why the store cannot be read.
        found: Result<Found, String>,
    },
    /// Reply to [`crate::Effect::TakeStderr`].
    Stderr {
        /// Number of the request.
        query: QueryId,
        /// The text.
        text: String,
    },
    /// The deadline has passed; see [`crate::Session::deadline`].
    Tick,
    /// Nothing else is ready: what happened is to be committed.
    Settle,
}

/// Something that the agent or a tool of it did.
#[derive(Debug)]
pub enum AgentInput {
    /// The program wrote a line to its stdout.
    Line(Line),
    /// The program's process is gone.
    Exited {
        /// Its exit code; none if a signal ended it.
        code: Option<i32>,
        /// Text that it wrote to its stderr in this run.
        stderr: String,
    },
    /// A part of the response to the agent's HTTP request.
    Response(ResponsePart),
    /// A tool reports.
    Tool {
        /// Run of the call.
        run: ResponseId,
        /// The call.
        call_id: CallId,
        /// The report.
        event: ToolEvent,
    },
}

/// A report of a running tool. The tool gets its reply once its event is in the log.
pub type ToolEvent = backends::ToolEvent<ReplyTo<()>>;

/// An agent that is ready to work.
#[derive(Debug)]
pub enum Launched {
    /// A model agent, for one run.
    Model(Box<dyn ModelBackend>),
    /// A program agent, for any number of runs.
    Program(LaunchedProgram),
}

/// A program that was started.
#[derive(Debug)]
pub struct LaunchedProgram {
    /// Its state machine.
    pub backend: Box<dyn ProgramBackend>,
    /// How long it may be idle before it is ended, in milliseconds.
    pub idle_limit_ms: u64,
    /// Whether it resumes a conversation of its own.
    pub is_resumed: bool,
}

/// The conversation as an agent gets it.
#[derive(Debug)]
pub struct History {
    /// Chat messages in the form of the OpenAI API, oldest first.
    pub messages: Vec<Value>,
    /// Callboard's tools that the agent may call.
    pub tools: OfferedTools,
}

/// Callboard's tools that an agent may call in its next step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OfferedTools {
    /// Their names.
    pub names: HashSet<String>,
    /// Their descriptions in the form of the OpenAI API; none for an agent that needs none.
    pub functions: Option<Vec<Value>>,
}

/// Judgement of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The policy's ruling.
    pub ruling: Ruling,
    /// Scope that a grant must have to allow the call; see [`transcript::GrantScope`]. None if no grant can.
    pub matching: Option<String>,
    /// Whether a stored grant for good has that scope.
    pub is_granted_always: bool,
    /// Scope that a decision for more than this call would have. None if it can be given only once.
    pub covers: Option<String>,
    /// File that the call would overwrite.
    pub target: Option<WriteTarget>,
}

/// Verdict of the policy on a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Ruling {
    /// The call cannot run even if it is approved.
    Impossible {
        /// The error for the agent.
        error: ErrorInfo,
        /// The reason for a person.
        why: String,
    },
    /// It may run.
    Allow,
    /// A person has to decide.
    Ask,
    /// It must not run.
    Deny,
}

/// Result of a look-up.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// A message.
    Message(Option<MessageId>),
    /// Id of an answer.
    Answer(Option<String>),
    /// A call.
    Call(Option<Box<Call>>),
    /// Whether there is such a grant.
    Granted(bool),
}
