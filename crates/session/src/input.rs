//! Everything that can happen to a session.

use std::collections::HashSet;

use backends::{ModelBackend, ProgramBackend, ResponsePart};
use serde_json::Value;
use transcript::{Call, CallId, ErrorInfo, MessageId, ResponseId, WriteTarget};

use crate::{Command, Line, QueryId, ReplyId, ReplyTo};

/// An event to which a session reacts, given to it by the driver.
#[derive(Debug)]
pub enum Input {
    /// A client, another session or the server sends a command.
    Command(Command),
    /// A caller has disconnected and no longer waits for its reply.
    CallerGone(ReplyId),
    /// The agent, or a tool that runs for it, has produced output or ended.
    Agent(AgentInput),
    /// Lines that the program wrote after it was asked to end.
    LateLines(Vec<Line>),
    /// The agent was launched, or cannot work. Reply to [`crate::Effect::Launch`].
    Launched {
        /// Id of the run that needs the agent.
        run: ResponseId,
        /// Notice for the log: why the program could not resume its own conversation. `None` if it
        /// could.
        notice: Option<String>,
        /// The launched agent, or why it cannot work.
        result: Result<Launched, ErrorInfo>,
    },
    /// The conversation for the agent was read. Reply to [`crate::Effect::ReadHistory`].
    History {
        /// Id of the run that needs the conversation.
        run: ResponseId,
        /// The conversation and the offered tools, or why the conversation cannot be read.
        result: Result<History, String>,
    },
    /// A tool call was judged. Reply to [`crate::Effect::Judge`].
    Judged {
        /// Id of the query, from the effect.
        query: QueryId,
        /// Judgement of the tool call.
        judged: Judged,
    },
    /// A look-up in the store has a result. Reply to [`crate::Effect::Find`].
    Found {
        /// Id of the query, from the effect.
        query: QueryId,
        /// Result of the look-up, or why the store cannot be read.
        found: Result<Found, String>,
    },
    /// The program's stderr was taken. Reply to [`crate::Effect::TakeStderr`].
    Stderr {
        /// Id of the query, from the effect.
        query: QueryId,
        /// Text that the program wrote to its stderr during this run.
        text: String,
    },
    /// The session's deadline has passed; see [`crate::Session::deadline`].
    Tick,
    /// No other input is ready: the session now commits its pending records.
    Settle,
}

/// An event of the agent, or of a tool that runs for it.
#[derive(Debug)]
pub enum AgentInput {
    /// A line that the program wrote to its stdout.
    Line(Line),
    /// The program's process has ended.
    Exited {
        /// Exit code of the process. `None` if a signal ended it.
        code: Option<i32>,
        /// Text that the program wrote to its stderr during this run.
        stderr: String,
    },
    /// A part of the response to a model agent's HTTP request.
    Response(ResponsePart),
    /// An event of a running tool.
    Tool {
        /// Id of the run to which the tool call belongs.
        run: ResponseId,
        /// Id of the tool call.
        call_id: CallId,
        /// Event of the tool: output, retry, record or outcome.
        event: ToolEvent,
    },
}

/// An event of a running tool. For an event to log, the tool gets a reply once the event is in the
/// log.
pub type ToolEvent = backends::ToolEvent<ReplyTo<()>>;

/// A launched agent that is ready to work.
#[derive(Debug)]
pub enum Launched {
    /// Backend of a model agent, for one run.
    Model(Box<dyn ModelBackend>),
    /// A program agent with its process, for any number of runs.
    Program(LaunchedProgram),
}

/// A program agent whose process has been started.
#[derive(Debug)]
pub struct LaunchedProgram {
    /// Backend: the state machine that interprets the program's output.
    pub backend: Box<dyn ProgramBackend>,
    /// Maximum time that the program may be idle before it is ended, in milliseconds.
    pub idle_limit_ms: u64,
    /// Whether the program resumes an earlier conversation of its own.
    pub is_resumed: bool,
}

/// The conversation as an agent gets it, with the tools that it may call.
#[derive(Debug)]
pub struct History {
    /// Chat messages in the form of the OpenAI API, oldest first.
    pub messages: Vec<Value>,
    /// Callboard's tools that the agent may call in its next step.
    pub tools: OfferedTools,
}

/// Callboard's tools that an agent may call in its next step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OfferedTools {
    /// Names of the offered tools.
    pub names: HashSet<String>,
    /// Descriptions of the offered tools in the form of the OpenAI API. `None` for an agent that
    /// gets no descriptions, such as a program.
    pub functions: Option<Vec<Value>>,
}

/// Judgement of a tool call by the policy, together with the stored grants.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Ruling of the policy.
    pub ruling: Ruling,
    /// Covered calls of a grant that would allow this tool call without an approval; see
    /// [`transcript::GrantScope`]. `None` if no grant can.
    pub matching: Option<String>,
    /// Whether a permanent grant that covers `matching` is stored.
    pub is_granted_always: bool,
    /// Tool calls that a decision for the session or for always would cover. `None` if this tool
    /// call can only be allowed once.
    pub covers: Option<String>,
    /// File that the tool call would overwrite.
    pub target: Option<WriteTarget>,
}

/// Ruling of the policy on a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum Ruling {
    /// The tool call cannot run even if a person approves it.
    Impossible {
        /// Error that the agent gets as the outcome of the tool call.
        error: ErrorInfo,
        /// Reason to show to a person.
        why: String,
    },
    /// The tool call may run without an approval.
    Allow,
    /// A person has to decide about the tool call.
    Ask,
    /// The tool call must not run.
    Deny,
}

/// Result of a look-up in the store.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Id of the message that was looked up. `None` if there is none.
    Message(Option<MessageId>),
    /// Id of the answer that was looked up. `None` if there is none.
    Answer(Option<String>),
    /// The tool call that was looked up. `None` if there is none.
    Call(Option<Box<Call>>),
    /// Whether a permanent grant that covers the given tool calls is stored.
    Granted(bool),
}
