//! Orders of a session to its driver.

use std::collections::BTreeMap;
use std::path::PathBuf;

use backends::Request;
use transcript::{
    CallId, ClientId, ExchangeId, MessageId, OpenExchange, RawLine, Record, ResponseId, Summary,
};

use crate::{Answer, Refused, ReplyId};

/// Id of a query to the driver, repeated in the driver's reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryId(pub u64);

/// An instruction of a session to its driver. The crate's documentation says when it is carried
/// out.
#[derive(Debug)]
pub enum Effect {
    /// Judges a tool call by the policy and the stored grants; answered by
    /// [`crate::Input::Judged`].
    Judge {
        /// Id of the query, to be repeated in the reply.
        query: QueryId,
        /// Tool call to judge.
        call: ProposedCall,
    },
    /// Looks something up in the store; answered by [`crate::Input::Found`].
    Find {
        /// Id of the query, to be repeated in the reply.
        query: QueryId,
        /// Subject of the look-up.
        lookup: Lookup,
    },
    /// Takes the text that the program wrote to its stderr during this run; answered by
    /// [`crate::Input::Stderr`].
    TakeStderr {
        /// Id of the query, to be repeated in the reply.
        query: QueryId,
    },
    /// Ends the agent's program with all its descendants. Later appends wait for their end, and the
    /// output until then is delivered as [`crate::Input::LateLines`].
    StopAgent,
    /// Gives an order to the agent's program.
    Program(ProgramOrder),
    /// Writes a warning to the server's own log, for the operator.
    Warn(&'static str),
    /// Writes an informational message to the server's own log, for the operator.
    Inform(&'static str),
    /// Records that the installed program is too old for the protocol that its backend uses.
    MarkOutdated {
        /// Name of the agent whose program is too old.
        agent: String,
    },
    /// Stops all work for the run: its tools and its HTTP request. Later replies and launches wait
    /// until the tools have ended.
    StopRun,
    /// Stops the tool that runs for this tool call.
    StopTool(CallId),
    /// Ends processes that these tool calls of an earlier server left running.
    EndProcesses(Vec<CallId>),

    /// Appends records to the log, then publishes them to subscribers.
    Append {
        /// Records to append, with consecutive sequence numbers.
        records: Vec<Record>,
        /// New summary of the log. `None` if the records did not change it.
        summary: Option<Box<Summary>>,
    },
    /// Stores raw lines that the program wrote. If that fails, the session continues.
    StoreRaw {
        /// Raw lines to store.
        lines: Vec<RawLine>,
        /// Number of unrecognized messages of the program, by their kind.
        unrecognized: BTreeMap<String, u64>,
    },
    /// Launches the agent; answered by [`crate::Input::Launched`].
    Launch {
        /// Id of the run that needs the agent.
        run: ResponseId,
        /// Name of the agent to launch.
        agent: String,
        /// Workspace folder in which a program agent is started.
        workspace: PathBuf,
    },
    /// Reads the conversation for the agent, and which tools it may call; answered by
    /// [`crate::Input::History`].
    ReadHistory {
        /// Id of the run that needs the conversation.
        run: ResponseId,
        /// Whether the agent's program remembers the conversation itself.
        remembers: bool,
        /// Whether to wait for MCP servers that are starting.
        waits_for_tools: bool,
    },
    /// Sends the HTTP request of a model agent, in place of an earlier one; answered by
    /// [`crate::AgentInput::Response`].
    Request(Request),
    /// Runs a tool call that was judged with exactly these arguments; answered by
    /// [`crate::AgentInput::Tool`].
    RunTool {
        /// Id of the run to which the tool call belongs.
        run: ResponseId,
        /// Id of the tool call.
        call_id: CallId,
        /// Arguments of the tool call, as JSON text.
        arguments: String,
    },
    /// Replies to the caller of a command.
    Reply {
        /// Id of the caller that gets the reply.
        to: ReplyId,
        /// The reply, or the reason why the command is refused.
        answer: Result<Answer, Refused>,
    },
    /// Stores a permanent grant.
    StoreGrant {
        /// Id of the grant to store.
        id: String,
        /// Tool calls that the grant covers; see [`transcript::GrantScope`].
        covers: String,
    },
    /// Removes a permanent grant, then replies to a caller.
    RemoveGrant {
        /// Tool calls that the grant covers; see [`transcript::GrantScope`].
        covers: String,
        /// Id of the caller that gets the reply.
        to: ReplyId,
        /// Reply for the case that the grant could be removed.
        answer: Answer,
    },
    /// Continues the exchanges that the log leaves open.
    ResumeExchanges(BTreeMap<ExchangeId, OpenExchange>),
    /// Deletes the session from the store and replies. The session takes no input after that.
    Delete {
        /// Id of the caller that gets the reply.
        to: ReplyId,
    },
}

/// An order about the process of a program agent. It is ignored if the program has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramOrder {
    /// Writes a line to the program's stdin.
    Write(String),
    /// Closes the program's stdin.
    CloseInput,
    /// Asks the program to end. Its output until then is still delivered.
    Quit,
    /// Ends the commands that the program has started in this run. Later appends wait for their
    /// end.
    EndCommands,
    /// Marks the beginning of a run: commands that run now and the stderr so far belong to earlier
    /// runs.
    BeginRun,
    /// Marks that the program has opened its own conversation, so that its start is complete.
    NoteConversation,
}

/// A tool call that is to be judged and perhaps run.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedCall {
    /// Id of the tool call.
    pub call_id: CallId,
    /// Name of the tool to call.
    pub tool_name: String,
    /// Arguments of the tool call, as JSON text.
    pub arguments: String,
    /// The party that runs the tool.
    pub asker: Asker,
    /// Workspace of the run to which the tool call belongs.
    pub workspace: PathBuf,
}

/// The party that runs a tool and asks whether it may: Callboard or the agent's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// Callboard runs the tool itself.
    Callboard,
    /// The agent's program runs the tool.
    Program {
        /// Whether the program has judged the tool call itself and would have allowed a harmless
        /// one without asking.
        is_judged: bool,
        /// Whether the program accepts edited arguments.
        can_edit: bool,
        /// Whether the program shows a form for a person to fill in.
        has_form: bool,
    },
}

/// A look-up in the store, on behalf of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// Message with this idempotency key; answered by [`crate::Found::Message`].
    MessageOfClient(ClientId),
    /// Message of a person with this id, unless it is superseded; answered by
    /// [`crate::Found::Message`].
    MessageOfPerson(MessageId),
    /// Answer at the end of the conversation; answered by [`crate::Found::Answer`].
    LastAnswer,
    /// Answer with this id, or the answer to the message with this id, unless it is superseded;
    /// answered by [`crate::Found::Answer`].
    AnswerAt(String),
    /// Tool call of an earlier run; answered by [`crate::Found::Call`].
    Call(CallId),
    /// Whether a permanent grant covers these tool calls (see [`transcript::GrantScope`]); answered
    /// by [`crate::Found::Granted`].
    Grant(String),
}
