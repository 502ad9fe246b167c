//! The events that end all that is open in a run: parts, calls, steps and the run get exactly one end.
//!
//! Used when a run is cancelled, when its agent exits, when the server stops or has crashed, and as a
//! safeguard when a run completes. The order is fixed: parts, arguments, approvals, awaited exchanges,
//! results in call order, steps, the cancellation, the run. The reply of an asynchronous exchange may
//! follow after the run.

use crate::{
    Call, CancelReason, Decision, ErrorCode, ErrorInfo, Event, Exchange, ExchangeMode, Millis,
    PartKind, RunCost, RunMessage, RunStatus, Validation,
};

/// The way in which a run ends, from which its closing events are made.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// The agent completed the run.
    Completed {
        /// Token usage and cost of the run.
        spent: RunCost,
    },
    /// The run failed: its agent reported a failure or exited.
    Failed {
        /// The error that ended the run.
        error: ErrorInfo,
        /// Token usage and cost of the run.
        spent: RunCost,
    },
    /// A person stopped the run, or the agent whose message it answers did.
    Cancelled {
        /// Token usage and cost of the run.
        spent: RunCost,
    },
    /// The run exceeded its time limit.
    TimedOut,
    /// The server stopped during the run, or crashed and was restarted.
    Restarted,
    /// The run was unfinished in an imported session.
    Imported,
}

impl Ending {
    /// Returns the ending of a completed run whose usage and cost are the sums over its steps.
    pub fn completed() -> Self {
        Self::Completed { spent: RunCost::default() }
    }

    /// Returns the ending of a cancelled run whose usage and cost are the sums over its steps.
    pub fn cancelled() -> Self {
        Self::Cancelled { spent: RunCost::default() }
    }

    /// Returns the ending of a failed run whose usage and cost are the sums over its steps.
    pub fn failed(error: ErrorInfo) -> Self {
        Self::Failed { error, spent: RunCost::default() }
    }

    /// Returns whether the run was cancelled on request, as opposed to a failure or a restart.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled { .. })
    }

    /// Returns the status of a run that ends this way.
    pub fn status(&self) -> RunStatus {
        match self {
            Self::Completed { .. } => RunStatus::Completed,
            Self::Failed { .. } | Self::TimedOut => RunStatus::Failed,
            Self::Cancelled { .. } | Self::Restarted | Self::Imported => RunStatus::Cancelled,
        }
    }

    fn cancel_reason(&self) -> Option<CancelReason> {
        match self {
            Self::Completed { .. } => None,
            Self::Failed { .. } => Some(CancelReason::Error),
            Self::Cancelled { .. } => Some(CancelReason::UserCancel),
            Self::TimedOut => Some(CancelReason::Timeout),
            Self::Restarted => Some(CancelReason::Restart),
            Self::Imported => Some(CancelReason::Import),
        }
    }

    fn spent(&self) -> RunCost {
        match self {
            Self::Completed { spent } | Self::Failed { spent, .. } | Self::Cancelled { spent } => {
                *spent
            }
            Self::TimedOut | Self::Restarted | Self::Imported => RunCost::default(),
        }
    }

    fn error(&self) -> Option<ErrorInfo> {
        match self {
            Self::Failed { error, .. } => Some(error.clone()),
            Self::TimedOut => Some(ErrorInfo::new(
                ErrorCode::UpstreamTimeout,
                "The run took longer than its time limit allows.",
            )),
            Self::Completed { .. } | Self::Cancelled { .. } | Self::Restarted | Self::Imported => {
                None
            }
        }
    }

    fn error_of_open_call(&self) -> ErrorInfo {
        let interrupted = |why| ErrorInfo::new(ErrorCode::ToolInterrupted, why);
        match self {
            Self::Completed { .. } => ErrorInfo::new(
                ErrorCode::ToolFailed,
                "The agent finished without giving a result for this call.",
            ),
            Self::Cancelled { .. } => interrupted("Tool call was interrupted by the user"),
            Self::Failed { .. } => interrupted("Tool call was interrupted because the run failed"),
            Self::TimedOut => interrupted("Tool call was interrupted by the run's time limit"),
            Self::Restarted => interrupted("Tool call was interrupted because the server stopped"),
            Self::Imported => interrupted("Tool call had not ended when the session was imported"),
        }
    }

    pub(crate) fn error_of_open_exchange(&self) -> ErrorInfo {
        let message = match self {
            Self::Completed { .. } => "The run ended without waiting for the answer.",
            Self::Failed { .. } => "The run that asked failed before the answer came.",
            Self::Cancelled { .. } => "The run that asked was stopped before the answer came.",
            Self::TimedOut => "The run that asked took longer than its time limit allows.",
            Self::Restarted => "The server was stopped before the answer came.",
            Self::Imported => "The session was imported before the answer came.",
        };
        ErrorInfo::new(ErrorCode::AgentCancelled, message)
    }

    fn finish_reason(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "stop",
            Self::Failed { .. } | Self::TimedOut => "error",
            Self::Cancelled { .. } | Self::Restarted | Self::Imported => "cancelled",
        }
    }
}

/// Returns the events that end a run, and everything that is open in it, at `now`. Empty if the run
/// has ended.
pub fn close(answer: &RunMessage, ending: &Ending, now: Millis) -> Vec<Event> {
    if !answer.is_open() {
        return Vec::new();
    }
    let mut events = Vec::new();
    events
        .extend(answer.parts.iter().filter_map(|part| close_part(&part.kind, part.parent.clone())));
    let open_calls = || answer.calls().filter(|call| call.is_open());
    events.extend(open_calls().filter(|call| !call.arguments_done).map(close_arguments));
    events.extend(open_calls().filter(|call| call.waits_for_approval()).map(withdraw_approval));
    events.extend(awaited_exchanges(answer).map(|exchange| close_exchange(exchange, ending)));
    events.extend(open_calls().map(|call| close_call(call, ending, now)));
    events.extend(close_steps(answer, ending));
    events.extend(
        ending
            .cancel_reason()
            .map(|reason| Event::OutputCancelled { reason, audio_truncated_at_ms: None }),
    );
    let RunCost { usage, cost } = ending.spent();
    events.push(Event::RunFinish {
        status: ending.status(),
        error: ending.error(),
        usage: usage.or_else(|| answer.usage()),
        cost: cost.or_else(|| answer.cost()),
        duration_ms: Some(now.since(answer.started_at)),
    });
    events
}

/// Returns the events that pause a run when the server stops at `now`: running tool calls are
/// interrupted, waiting ones and the run stay open. Returns `None` if the run has to be closed
/// instead, because it does more than wait for a person or for a client's tools.
pub fn pause(answer: &RunMessage, now: Millis) -> Option<Vec<Event>> {
    let mut open_calls = answer.calls().filter(|call| call.is_open());
    let waits = answer.calls().any(|call| call.waits_for_approval() || call.waits_for_client());
    let is_written = open_calls.all(|call| call.arguments_done);
    let is_silent = answer.parts.iter().all(|part| close_part(&part.kind, None).is_none());
    if !answer.is_open() || answer.cancel_requested.is_some() {
        return None;
    }
    let is_running =
        |call: &&Call| call.is_open() && call.running_since.is_some() && !call.waits_for_client();
    let ending = &Ending::Restarted;
    let exchanges = awaited_exchanges(answer).map(|exchange| close_exchange(exchange, ending));
    let running = answer.calls().filter(is_running).map(|call| close_call(call, ending, now));
    (waits && is_written && is_silent).then(|| exchanges.chain(running).collect())
}

fn close_part(kind: &PartKind, parent_call_id: Option<crate::CallId>) -> Option<Event> {
    match kind {
        PartKind::Text(text) if text.open => Some(Event::TextDone {
            part_id: text.id.clone(),
            parent_call_id,
            text: text.text.clone(),
            phase: text.phase,
            discarded: false,
        }),
        PartKind::Thinking(thinking) if thinking.open => Some(Event::ThinkingDone {
            part_id: thinking.id.clone(),
            parent_call_id,
            text: thinking.text.clone(),
            discarded: false,
        }),
        _ => None,
    }
}

/// Returns the event that ends the arguments of a tool call that broke off. The received part is
/// kept but the call never runs.
fn close_arguments(call: &Call) -> Event {
    Event::ToolArgumentsDone {
        call_id: call.id.clone(),
        arguments: call.arguments.whole().unwrap_or_default(),
        summary: String::new(),
        incomplete: true,
        validation: Validation::NotRequired,
        provider_data: None,
    }
}

fn withdraw_approval(call: &Call) -> Event {
    Event::ToolApprovalResolved {
        call_id: call.id.clone(),
        decision: Decision::Withdrawn,
        scope: None,
        arguments: None,
        feedback: None,
        covers: None,
        by: "callboard".to_owned(),
    }
}

fn awaited_exchanges(answer: &RunMessage) -> impl Iterator<Item = &Exchange> {
    let is_awaited = |it: &&Exchange| it.outcome.is_none() && it.mode == ExchangeMode::Sync;
    answer.exchanges().filter(is_awaited)
}

/// Returns the event that ends an exchange of the run whose reply is no longer awaited.
fn close_exchange(exchange: &Exchange, ending: &Ending) -> Event {
    let Exchange { id, direction, agent, peer_session_id, peer_response_id, .. } = exchange;
    Event::AgentCallbackResult {
        exchange_id: id.clone(),
        direction: *direction,
        agent: agent.clone(),
        peer_session_id: peer_session_id.clone(),
        peer_response_id: peer_response_id.clone(),
        ok: false,
        result: None,
        error: Some(ending.error_of_open_exchange()),
    }
}

fn close_call(call: &Call, ending: &Ending, now: Millis) -> Event {
    Event::ToolResult {
        call_id: call.id.clone(),
        tool_name: call.name.clone(),
        ok: false,
        result: None,
        output: None,
        error: Some(ending.error_of_open_call()),
        summary: None,
        duration_ms: call.running_since.map(|since| now.since(since)),
        truncated: None,
    }
}

fn close_steps(answer: &RunMessage, ending: &Ending) -> Vec<Event> {
    let open = answer.index.scopes.open_steps();
    open.into_iter()
        .map(|(parent, step)| Event::StepFinish {
            index: answer.steps[step].index,
            finish_reason: ending.finish_reason().to_owned(),
            usage: None,
            cost: None,
            parent_call_id: parent.cloned(),
        })
        .collect()
}
