//! The open run: what it has said so far, and what it waits for.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use transcript::{Call, CallId, Event, Exchange, ExchangeState, Executor, ResponseId, RunMessage};

use crate::pending_calls::PendingCalls;

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: ResponseId,
    /// Message that the run has produced so far, reduced from its records.
    pub(crate) message: RunMessage,
    pub(crate) workspace: PathBuf,
    pub(crate) pending: PendingCalls,
    /// Ids of the tool calls that run on the server.
    pub(crate) running: HashSet<CallId>,
    /// Names of Callboard's tools that the agent may call.
    pub(crate) offered: HashSet<String>,
    /// Complete arguments of a program's open tool calls. The message has only their beginning and
    /// end.
    arguments: HashMap<CallId, String>,
}

impl Run {
    pub(crate) fn new(id: ResponseId, workspace: PathBuf) -> Self {
        let message = RunMessage::replay(&id, []);
        Self {
            id,
            message,
            workspace,
            pending: PendingCalls::default(),
            running: HashSet::new(),
            offered: HashSet::new(),
            arguments: HashMap::new(),
        }
    }

    /// Returns whether the run waits for a person's decision, about its own tool calls or about
    /// those of an agent whose reply it waits for.
    pub(crate) fn is_asking(&self) -> bool {
        let waits = |it: &Exchange| it.state == Some(ExchangeState::AwaitingApproval);
        self.pending.has_approvals() || self.message.open_exchanges().any(waits)
    }

    /// Returns whether a tool call that the agent itself runs has started and not ended.
    pub(crate) fn has_running_call(&self) -> bool {
        let is_running = |it: &Call| {
            it.is_open() && it.running_since.is_some() && it.executor == Executor::Agent
        };
        self.message.calls().any(is_running)
    }

    /// Keeps the complete arguments of a program's tool call while the call is open.
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

    /// Returns the complete arguments of a program's tool call.
    pub(crate) fn arguments_of(&self, call: &Call) -> String {
        let whole = self.arguments.get(&call.id).cloned();
        whole.or_else(|| call.arguments.whole()).unwrap_or_default()
    }
}
