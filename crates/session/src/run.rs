//! The open run: what it has said so far, and what it waits for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use transcript::{
    Call, CallId, Event, Exchange, ExchangeState, Executor, Millis, ResponseId, RunMessage,
};

use crate::Asker;

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: ResponseId,
    /// The run's records so far, folded.
    pub(crate) message: RunMessage,
    pub(crate) workspace: PathBuf,
    /// Calls that wait for a person.
    pub(crate) approvals: BTreeMap<CallId, PendingApproval>,
    /// Calls that the client runs, with their deadlines.
    pub(crate) client_calls: BTreeMap<CallId, Millis>,
    /// Calls whose tools run here.
    pub(crate) running: HashSet<CallId>,
    /// Callboard's tools that the agent may call.
    pub(crate) offered: HashSet<String>,
    /// Whole arguments of open calls of a program: the message keeps only both ends.
    arguments: HashMap<CallId, String>,
}

/// A call that a person has to decide about.
#[derive(Debug, Clone)]
pub(crate) struct PendingApproval {
    pub(crate) arguments: String,
    pub(crate) asker: Asker,
    /// Scope of a decision for more than this call.
    pub(crate) covers: Option<String>,
    /// When the call is denied for lack of a decision.
    pub(crate) until: Option<Millis>,
}

impl Run {
    pub(crate) fn new(id: ResponseId, workspace: PathBuf) -> Self {
        let message = RunMessage::replay(&id, []);
        Self {
            id,
            message,
            workspace,
            approvals: BTreeMap::new(),
            client_calls: BTreeMap::new(),
            running: HashSet::new(),
            offered: HashSet::new(),
            arguments: HashMap::new(),
        }
    }

    /// Whether a person is asked something: about a call of this run, or by an agent that it waits for.
    pub(crate) fn is_asking(&self) -> bool {
        let waits = |it: &Exchange| it.state == Some(ExchangeState::AwaitingApproval);
        !self.approvals.is_empty() || self.message.open_exchanges().any(waits)
    }

    /// Whether the agent itself runs a call whose end it has not reported.
    pub(crate) fn has_running_call(&self) -> bool {
        let is_running = |it: &Call| {
            it.is_open() && it.running_since.is_some() && it.executor == Executor::Agent
        };
        self.message.calls().any(is_running)
    }

    /// Keeps the whole arguments of a program's call while it is open.
    pub(crate) fn remember_arguments(&mut self, event: &Event) {
        match event {
            Event::ToolArgumentsDone { call_id, arguments, .. } => {
                let call = self.message.call(call_id);
                if call.is_some_and(|it| it.executor == Executor::Agent) {
                    self.arguments.insert(call_id.clone(), arguments.clone());
                }
            }
            Event::ToolResult { call_id, .. } => {
                self.arguments.remove(call_id);
            }
            _ => (),
        }
    }

    /// Returns the whole arguments of a call of the program.
    pub(crate) fn arguments_of(&self, call: &Call) -> String {
        let whole = self.arguments.get(&call.id).cloned();
        whole.or_else(|| call.arguments.whole()).unwrap_or_default()
    }
}

impl Run {
    /// Whether an interrupt was asked for.
    pub(crate) fn is_stopped(&self) -> bool {
        self.message.cancel_requested.is_some()
    }
}
