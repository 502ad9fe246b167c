//! Orders of a session to its driver.

use std::collections::BTreeMap;
use std::path::PathBuf;

use backends::Request;
use transcript::{
    CallId, ClientId, ExchangeId, MessageId, OpenExchange, RawLine, Record, ResponseId, Summary,
};

use crate::{Answer, Refused, ReplyId};

/// Number of a request for information, repeated in its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryId(pub u64);

/// An order to the driver. See the crate's documentation for when it is carried out.
#[derive(Debug)]
pub enum Effect {
    /// Judge a call by the policy and the stored grants; answered by [`crate::Input::Judged`].
    Judge {
        /// Number of the request.
        query: QueryId,
        /// The call.
        call: ProposedCall,
    },
    /// Look something up in the store; answered by [`crate::Input::Found`].
    Find {
        /// Number of the request.
        query: QueryId,
        /// Object of the look-up.
        lookup: Lookup,
    },
    /// Take what the program wrote to its stderr in this run; answered by [`crate::Input::Stderr`].
    TakeStderr {
        /// Number of the request.
        query: QueryId,
    },
    /// End the agent: its program with everything it started, and its HTTP request. Later appends wait
    /// until nothing is left of it; what it still writes comes as [`crate::Input::LateLines`].
    StopAgent,
    /// Do something with the agent's program.
    Program(ProgramOrder),
    /// Warn the operator, in the server's own log.
    Warn(&'static str),
    /// Tell the operator, in the server's own log.
    Inform(&'static str),
    /// Remember that the installed program cannot be driven in this way.
    MarkOutdated {
        /// Name of the agent.
        agent: String,
    },
    /// Stop all that works for the run: its tools and its HTTP request. Later effects wait until the tools
    /// have ended.
    StopRun,
    /// Stop one tool.
    StopTool(CallId),
    /// End processes that these calls left behind when an earlier server died.
    EndProcesses(Vec<CallId>),

    /// Append records to the log, then publish them.
    Append {
        /// The records, numbered without a gap.
        records: Vec<Record>,
        /// The summary, if the records changed it.
        summary: Option<Box<Summary>>,
    },
    /// Store lines that the program wrote. If that fails, the session goes on.
    StoreRaw {
        /// The lines.
        lines: Vec<RawLine>,
        /// How often the program said something of a kind that could not be read.
        unrecognized: BTreeMap<String, u64>,
    },
    /// Start the agent; answered by [`crate::Input::Launched`].
    Launch {
        /// Run that needs the agent.
        run: ResponseId,
        /// Name of the agent.
        agent: String,
        /// Folder that a program works in.
        workspace: PathBuf,
    },
    /// Read the conversation for the agent, and which tools it may call; answered by
    /// [`crate::Input::History`].
    ReadHistory {
        /// Run that needs it.
        run: ResponseId,
        /// Whether the agent's program remembers the conversation itself.
        remembers: bool,
        /// Whether to wait for MCP servers that are starting.
        waits_for_tools: bool,
    },
    /// Send an HTTP request; answered by [`crate::Input::Response`]. It replaces the one before it.
    Request(Request),
    /// Run a tool as it was judged with these arguments; answered by [`crate::Input::Tool`].
    RunTool {
        /// Run of the call.
        run: ResponseId,
        /// The call.
        call_id: CallId,
        /// Arguments as JSON text.
        arguments: String,
    },
    /// Reply to a caller.
    Reply {
        /// The caller.
        to: ReplyId,
        /// The reply.
        answer: Result<Answer, Refused>,
    },
    /// Store a grant that holds for good.
    StoreGrant {
        /// Id of the grant.
        id: String,
        /// Its scope; see [`transcript::GrantScope`].
        covers: String,
    },
    /// Remove a grant that held for good, then reply.
    RemoveGrant {
        /// Its scope.
        covers: String,
        /// The caller.
        to: ReplyId,
        /// The reply if the grant could be removed.
        answer: Answer,
    },
    /// Continue the exchanges that the log leaves open.
    ResumeExchanges(BTreeMap<ExchangeId, OpenExchange>),
    /// Delete the session and reply. It takes no input any more.
    Delete {
        /// The caller.
        to: ReplyId,
    },
}

/// An order about the agent's program. There is nothing to do if it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramOrder {
    /// Write a line to its stdin.
    Write(String),
    /// Close its stdin.
    CloseInput,
    /// Ask it to end. What it writes until then is still delivered.
    Quit,
    /// End the commands that it has started in this run. Later appends wait for that.
    EndCommands,
    /// Note that a run begins: commands that run now and stderr written so far belong to earlier runs.
    BeginRun,
    /// Note that it has opened its conversation.
    NoteConversation,
}

/// A call to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedCall {
    /// The call.
    pub call_id: CallId,
    /// Name of the tool.
    pub tool_name: String,
    /// Arguments as JSON text.
    pub arguments: String,
    /// Who runs the tool.
    pub asker: Asker,
    /// Workspace of the run.
    pub workspace: PathBuf,
}

/// The party that runs a tool and asks whether it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// Callboard itself.
    Callboard,
    /// The agent's program.
    Program {
        /// The program would have let a harmless call pass by itself.
        is_judged: bool,
        /// The program takes edited arguments.
        can_edit: bool,
        /// The program has a form for a person to fill in.
        has_form: bool,
    },
}

/// A look-up in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The message with this idempotency key; answered by [`crate::Found::Message`].
    MessageOfClient(ClientId),
    /// A message of a person, unless it is superseded; answered by [`crate::Found::Message`].
    MessageOfPerson(MessageId),
    /// The answer that the conversation ends with; answered by [`crate::Found::Answer`].
    LastAnswer,
    /// The answer with this id, or the one to the message with this id, unless it is superseded; answered
    /// by [`crate::Found::Answer`].
    AnswerAt(String),
    /// A call of an earlier run; answered by [`crate::Found::Call`].
    Call(CallId),
    /// Whether a grant holds for good; answered by [`crate::Found::Granted`].
    Grant(String),
}
