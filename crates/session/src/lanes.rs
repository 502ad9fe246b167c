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

/// The agent's lane. What stands in an earlier queue comes first.
#[derive(Debug, Default)]
pub(crate) struct AgentLane {
    /// Rest of what the backend and its current input have caused.
    pub(crate) work: VecDeque<Work>,
    /// Inputs that the session owes the backend.
    pub(crate) owed: VecDeque<Owed>,
    /// Inputs from outside that came meanwhile.
    pub(crate) inputs: VecDeque<AgentInput>,
    /// Continuation for the driver's reply.
    waiting: Option<(QueryId, AgentWait)>,
    /// Guards against advancing the lane from within one of its steps.
    pub(crate) is_advancing: bool,
}

/// A step that follows from what happened before.
#[derive(Debug)]
pub(crate) enum Work {
    /// An effect of a model agent's backend.
    Model(ModelEffect),
    /// An effect of a program's backend.
    Program(ProgramEffect),
    /// An event that is logged as if the agent had emitted it.
    Log(Event),
    /// All effects of this line are done.
    LineDone(String),
    /// All effects of the program's end are done.
    Exited { message: String },
    /// A relayed call, whose events are in the log, begins.
    Relay { call_id: CallId, call: RelayedCall, reply: ReplyTo<ToolOutcome> },
}

impl Work {
    /// Returns the event that the backend has emitted.
    pub(crate) fn emitted(&mut self) -> Option<&mut Event> {
        match self {
            Self::Model(ModelEffect::Run(RunEffect::Emit(event)))
            | Self::Program(ProgramEffect::Run(RunEffect::Emit(event))) => Some(event),
            _ => None,
        }
    }
}

/// An input that the session owes the backend.
#[derive(Debug)]
pub(crate) enum Owed {
    Model(ModelInput),
    Program(ProgramInput),
    /// The outcome of a call that did not run.
    Refused(CallId, ToolOutcome),
}

/// Replies for which the agent's lane can wait.
#[derive(Debug)]
pub(crate) enum AgentWait {
    /// The judgement that goes into the record of a call's arguments.
    Validation(Event),
    /// The judgement of a call that is to run.
    Call(ProposedCall, WantedCall),
    /// The judgement of a call that the program asks about.
    Question(ProposedCall, Question),
    /// The judgement of a relayed call.
    Relay(ProposedCall),
    /// Stderr of a program whose run ends.
    End(Ending),
}

/// Facts in the log about a call that the agent wants to run.
#[derive(Debug)]
pub(crate) struct WantedCall {
    /// A person has approved it before.
    pub(crate) is_approved: bool,
    /// The log says that a person has to approve it.
    pub(crate) must_ask: bool,
    /// When a person was asked, by an earlier server.
    pub(crate) asked_at: Option<Millis>,
}

/// How a program asks a person.
#[derive(Debug)]
pub(crate) struct Question {
    /// Form to fill in instead of a yes or no; its answers are the edited arguments.
    pub(crate) form: Option<Value>,
    /// Reason in the program's words.
    pub(crate) reason: Option<String>,
}

impl AgentLane {
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    pub(crate) fn wait(&mut self, query: QueryId, wait: AgentWait) {
        self.waiting = Some((query, wait));
    }

    /// Returns what waits for the reply with this number.
    pub(crate) fn take_waiting(&mut self, query: QueryId) -> Option<AgentWait> {
        let waits = self.waiting.as_ref().is_some_and(|(it, _)| *it == query);
        self.waiting.take_if(|_| waits).map(|(_, wait)| wait)
    }

    /// Takes the callers of relayed calls that have not begun.
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

    /// Forgets what was to be done for a run that has ended. What a program has written stays.
    pub(crate) fn forget_run(&mut self) {
        self.waiting = None;
        self.owed.clear();
        self.work.retain(|it| matches!(it, Work::LineDone(_) | Work::Exited { .. }));
    }
}

/// The lane of commands.
#[derive(Debug, Default)]
pub(crate) struct CommandLane {
    pub(crate) held: VecDeque<Command>,
    waiting: Option<(QueryId, CommandWait)>,
}

/// A command that waits for the driver's reply.
#[derive(Debug)]
pub(crate) enum CommandWait {
    /// Whether the message was accepted before.
    Send { message: NewMessage, reply: ReplyTo<Receipt> },
    /// Whether there is an answer to continue.
    Continue { reply: ReplyTo<ResponseId> },
    /// The answer to replace.
    Retry { reason: RewindReason, reply: ReplyTo<ResponseId> },
    /// Whether the message can be replaced.
    Edit { named: String, message: NewMessage, reply: ReplyTo<Receipt> },
    /// The judgement of a call with the arguments that a person approved; `asked` are those that it was asked about
    /// with.
    Approve { approval: Approval, call: ProposedCall, asked: String, reply: ReplyTo<()> },
    /// The judgement of another pending call that a decision for more than one call may cover.
    AcceptSame { call: ProposedCall, same: SameCalls },
    /// Why a call does not wait for a decision.
    NotWaiting { call_id: CallId, caller: ReplyId },
    /// The call whose decision is to be undone.
    Undo { call_id: CallId, by: String, reply: ReplyTo<Undone> },
    /// Whether the decision's grant still holds.
    UndoGrant { undo: UndoGrant, reply: ReplyTo<Undone> },
}

impl CommandWait {
    /// Returns the caller, unless it has its reply already.
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

/// Pending calls that a decision for more than one call may cover.
#[derive(Debug)]
pub(crate) struct SameCalls {
    pub(crate) granted: AppliedGrant,
    /// Who decided.
    pub(crate) by: String,
    /// Calls that are not judged yet.
    pub(crate) rest: Vec<CallId>,
}

/// A decision whose grant is to be revoked.
#[derive(Debug)]
pub(crate) struct UndoGrant {
    pub(crate) call_id: CallId,
    /// The call has not started, so it can be stopped.
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

    /// Returns what waits for the reply with this number.
    pub(crate) fn take_waiting(&mut self, query: QueryId) -> Option<CommandWait> {
        let waits = self.waiting.as_ref().is_some_and(|(it, _)| *it == query);
        self.waiting.take_if(|_| waits).map(|(_, wait)| wait)
    }
}
