//! Two lanes in which things happen in order: one for the agent and its tools, one for commands.
//!
//! A lane that waits for the driver's reply holds back what comes after it in the same lane. The other lane
//! goes on, so a cancel takes effect while a call is being judged.

use std::collections::VecDeque;

use backends::{
    Ending, ModelEffect, ModelInput, ProgramEffect, ProgramInput, RunEffect, ToolOutcome,
};
use serde_json::Value;
use transcript::{AppliedGrant, CallId, Event, Millis, ResponseId, RewindReason, Scope};

use crate::{
    AgentInput, Approval, Command, NewMessage, ProposedCall, QueryId, Receipt, RelayedCall,
    ReplyId, ReplyTo, Undone,
};

/// Pending work between a session and its agent. Entries of `work` come before those of `owed`,
/// which come before `inputs`.
#[derive(Debug, Default)]
pub(crate) struct AgentLane {
    /// Effects of the backend's last input that are not carried out yet, and steps that follow
    /// them.
    pub(crate) work: VecDeque<Work>,
    /// Inputs of the session that the backend has not got yet.
    pub(crate) owed: VecDeque<Owed>,
    /// Events of the agent and its tools that are not handled yet.
    pub(crate) inputs: VecDeque<AgentInput>,
    /// Id of the query to the driver for whose reply the lane waits, and how to continue then.
    /// `None` if the lane does not wait.
    waiting: Option<(QueryId, AgentWait)>,
    /// Whether the lane is being advanced. Prevents a step from advancing it recursively.
    pub(crate) is_advancing: bool,
}

/// A pending step of the agent's lane.
#[derive(Debug)]
pub(crate) enum Work {
    /// An effect of a model agent's backend, to be carried out.
    Model(ModelEffect),
    /// An effect of a program agent's backend, to be carried out.
    Program(ProgramEffect),
    /// An event to log as if the agent had emitted it.
    Log(Event),
    /// All effects of this line of the program are carried out, so the line can become a raw line.
    LineDone(String),
    /// All effects of the program's exit are carried out. `message` describes the exit.
    Exited { message: String },
    /// A relayed tool call begins that the program has not reported. Its start is in the log
    /// already.
    Relay { call_id: CallId, call: RelayedCall, reply: ReplyTo<ToolOutcome> },
}

impl Work {
    /// Returns the event that the backend emits with this step. `None` for other steps.
    pub(crate) fn emitted(&mut self) -> Option<&mut Event> {
        match self {
            Self::Model(ModelEffect::Run(RunEffect::Emit(event)))
            | Self::Program(ProgramEffect::Run(RunEffect::Emit(event))) => Some(event),
            _ => None,
        }
    }
}

/// An input of the session that the agent's backend has not got yet.
#[derive(Debug)]
pub(crate) enum Owed {
    Model(ModelInput),
    Program(ProgramInput),
    /// The outcome of a tool call that did not run.
    Refused(CallId, ToolOutcome),
}

/// A reply of the driver for which the agent's lane waits, with the data needed to continue.
#[derive(Debug)]
pub(crate) enum AgentWait {
    /// Judgement of a tool call whose arguments are complete. The event has the arguments and is
    /// logged with the result.
    Validation(Event),
    /// Judgement of a tool call that a model agent wants to run.
    Call(ProposedCall, WantedCall),
    /// Judgement of a tool call that the program wants to run itself and asks about.
    Question(ProposedCall, Question),
    /// Judgement of a relayed tool call.
    Relay(ProposedCall),
    /// Stderr of a program whose run has failed, to be added to the run's ending.
    End(Ending),
}

/// Facts from the log about a tool call that the agent wants to run.
#[derive(Debug)]
pub(crate) struct WantedCall {
    /// Whether a person has approved the tool call already.
    pub(crate) is_approved: bool,
    /// Whether the log says that a person has to approve the tool call.
    pub(crate) must_ask: bool,
    /// Time at which an earlier server asked a person about the tool call. `None` if it did not.
    pub(crate) asked_at: Option<Millis>,
}

/// Content of a request for a person's decision about a tool call.
#[derive(Debug)]
pub(crate) struct Question {
    /// Form that a person fills in instead of accepting or rejecting; the answers become the edited
    /// arguments. `None` for a plain approval.
    pub(crate) form: Option<Value>,
    /// Reason for the request in the program's words. `None` if it gives none.
    pub(crate) reason: Option<String>,
}

impl AgentLane {
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    pub(crate) fn wait(&mut self, query: QueryId, wait: AgentWait) {
        self.waiting = Some((query, wait));
    }

    /// Returns the pending continuation if it waits for the reply to this query, and ends the wait.
    pub(crate) fn take_waiting(&mut self, query: QueryId) -> Option<AgentWait> {
        self.waiting.take_if(|(it, _)| *it == query).map(|(_, wait)| wait)
    }

    /// Removes the relayed tool calls that have not begun from the lane's work, and returns their
    /// callers.
    pub(crate) fn take_relayed(&mut self) -> Vec<ReplyTo<ToolOutcome>> {
        let (relayed, rest): (Vec<Work>, Vec<Work>) =
            self.work.drain(..).partition(|it| matches!(it, Work::Relay { .. }));
        self.work.extend(rest);
        let reply = |it| match it {
            Work::Relay { reply, .. } => Some(reply),
            _ => None,
        };
        relayed.into_iter().filter_map(reply).collect()
    }

    /// Discards the pending work for a run that has ended. Output that the program has written
    /// stays.
    pub(crate) fn forget_run(&mut self) {
        self.waiting = None;
        self.owed.clear();
        self.work.retain(|it| matches!(it, Work::LineDone(_) | Work::Exited { .. }));
    }
}

/// Pending commands of a session, of which one at a time waits for the driver.
#[derive(Debug, Default)]
pub(crate) struct CommandLane {
    pub(crate) held: VecDeque<Command>,
    waiting: Option<(QueryId, CommandWait)>,
}

/// A command that waits for a reply of the driver, with the data needed to continue.
#[derive(Debug)]
pub(crate) enum CommandWait {
    /// Waits for the message with the same idempotency key, if one was accepted before.
    Send { message: NewMessage, reply: ReplyTo<Receipt> },
    /// Waits for the answer at the end of the conversation, which is to be continued.
    Continue { reply: ReplyTo<ResponseId> },
    /// Waits for the id of the answer to replace.
    Retry { reason: RewindReason, reply: ReplyTo<ResponseId> },
    /// Waits for the id of the message to replace, if that message can be replaced. `named` is the
    /// requested id.
    Edit { named: String, message: NewMessage, reply: ReplyTo<Receipt> },
    /// Waits for the judgement of a tool call with the arguments that a person approved. `asked`
    /// has the arguments for which the approval was requested.
    Approve { approval: Approval, call: ProposedCall, asked: String, reply: ReplyTo<()> },
    /// Waits for the judgement of another pending tool call that a decision for more than one call
    /// may cover.
    AcceptSame { call: ProposedCall, same: SameCalls },
    /// Waits for the tool call of an earlier run, to say why it does not wait for a decision.
    NotWaiting { call_id: CallId, caller: ReplyId },
    /// Waits for the tool call whose approval is to be undone.
    Undo { call_id: CallId, by: String, reply: ReplyTo<Undone> },
    /// Waits for the look-up of the permanent grant that is to be revoked.
    UndoGrant { undo: UndoGrant, reply: ReplyTo<Undone> },
}

impl CommandWait {
    /// Returns the id of the caller that waits for the reply. `None` if the caller has its reply
    /// already.
    pub(crate) fn caller(&self) -> Option<ReplyId> {
        match self {
            Self::Send { reply, .. } | Self::Edit { reply, .. } => Some(reply.id()),
            Self::Continue { reply } | Self::Retry { reply, .. } => Some(reply.id()),
            Self::Approve { reply, .. } => Some(reply.id()),
            Self::NotWaiting { caller, .. } => Some(*caller),
            Self::Undo { reply, .. } | Self::UndoGrant { reply, .. } => Some(reply.id()),
            Self::AcceptSame { .. } => None,
        }
    }
}

/// Pending tool calls that a decision for more than one call may cover.
#[derive(Debug)]
pub(crate) struct SameCalls {
    pub(crate) granted: AppliedGrant,
    /// Name of the person who made the decision.
    pub(crate) by: String,
    /// Ids of the tool calls that are not judged yet.
    pub(crate) rest: Vec<CallId>,
}

/// An approval to undo, whose grant is to be revoked.
#[derive(Debug)]
pub(crate) struct UndoGrant {
    pub(crate) call_id: CallId,
    /// Whether the tool call has not started, so that it can be stopped.
    pub(crate) is_queued: bool,
    pub(crate) scope: Scope,
    pub(crate) covers: String,
    pub(crate) by: String,
}

impl CommandLane {
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    pub(crate) fn wait(&mut self, query: QueryId, wait: CommandWait) {
        self.waiting = Some((query, wait));
    }

    /// Returns the pending continuation if it waits for the reply to this query, and ends the wait.
    pub(crate) fn take_waiting(&mut self, query: QueryId) -> Option<CommandWait> {
        self.waiting.take_if(|(it, _)| *it == query).map(|(_, wait)| wait)
    }
}
