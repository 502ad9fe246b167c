//! Decides whether a run continues, by its usage and its limits.
//!
//! All counts can be derived from the run's own records.

use transcript::{Call, ErrorCode, Evaluation, Event, Millis, RunMessage, Usage};

use super::{FinishReason, Limits};
use crate::ReadyCall;

#[derive(Debug)]
pub(super) struct Progress {
    started_at: Millis,
    pub(super) steps: u32,
    tool_calls: u32,
    pub(super) usage: Option<Usage>,
    /// Whether a tool call was refused because the run has reached its limit of tool calls.
    has_refused_calls: bool,
}

/// Decision to continue or to end the run after a step, with its reason.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) should_continue: bool,
    stop_reason: &'static str,
    resolved_by: &'static str,
    evaluations: Vec<Evaluation>,
}

impl Progress {
    pub(super) fn new(started_at: Millis) -> Self {
        Self { started_at, steps: 0, tool_calls: 0, usage: None, has_refused_calls: false }
    }

    /// Restores the counts of a run from its records.
    pub(super) fn resumed(answer: &RunMessage) -> Self {
        let is_over_limit = |call: &&Call| {
            let error = call.outcome.as_ref().and_then(|it| it.error.as_ref());
            error.is_some_and(|it| it.code == ErrorCode::ToolIterationLimit)
        };
        let calls = answer.calls().filter(|call| !call.arguments_incomplete);
        let refused = answer.calls().filter(is_over_limit).count();
        Self {
            started_at: answer.started_at,
            steps: answer.steps.len() as u32,
            tool_calls: (calls.count() - refused) as u32,
            usage: answer.usage(),
            has_refused_calls: refused > 0,
        }
    }

    /// Counts the next step of the run, and returns its index.
    pub(super) fn start_step(&mut self) -> u32 {
        self.steps += 1;
        self.steps - 1
    }

    pub(super) fn add_usage(&mut self, usage: Option<Usage>) {
        self.usage = match (self.usage, usage) {
            (Some(before), Some(usage)) => Some(before.plus(usage)),
            (before, usage) => usage.or(before),
        };
    }

    /// Splits tool calls into those that may run and those over the run's limit of tool calls.
    pub(super) fn take_calls(
        &mut self,
        limits: &Limits,
        mut calls: Vec<ReadyCall>,
    ) -> (Vec<ReadyCall>, Vec<ReadyCall>) {
        let left = limits.tool_calls.map_or(u32::MAX, |it| it.saturating_sub(self.tool_calls));
        let refused = calls.split_off(calls.len().min(left as usize));
        self.tool_calls += calls.len() as u32;
        self.has_refused_calls |= !refused.is_empty();
        (calls, refused)
    }

    pub(super) fn deadline(&self, limits: &Limits) -> Option<Millis> {
        limits.seconds.map(|it| self.started_at.plus(it.saturating_mul(1000)))
    }

    /// Returns the decision after a step with tool calls: the first limit that is reached ends the
    /// run, otherwise the run continues.
    pub(super) fn evaluate(&self, limits: &Limits, now: Millis) -> Decision {
        let seconds = now.since(self.started_at) / 1000;
        let tokens = self.usage.map_or(0, |it| it.total_tokens);
        let looked_at = [
            limits.seconds.map(|max| Limit {
                names: ("time_limit", "TimeLimit"),
                is_reached: seconds >= max,
                reason: format!("{seconds} of {max} seconds"),
            }),
            limits.steps.map(|max| Limit {
                names: ("steps_limit", "StepsLimit"),
                is_reached: self.steps >= max,
                reason: format!("{} of {max} steps", self.steps),
            }),
            limits.tokens.map(|max| Limit {
                names: ("token_limit", "TokenLimit"),
                is_reached: tokens >= max,
                reason: format!("{tokens} of {max} tokens"),
            }),
            limits.tool_calls.map(|max| Limit {
                names: ("tool_limit", "ToolLimit"),
                is_reached: self.has_refused_calls,
                reason: format!("{} of {max} tool calls", self.tool_calls),
            }),
        ];
        let looked_at: Vec<Limit> = looked_at.into_iter().flatten().collect();
        let reached = looked_at.iter().find(|it| it.is_reached);
        let (stop_reason, resolved_by) = reached.map_or(("tool_calls", "ToolCalls"), |it| it.names);
        Decision {
            should_continue: reached.is_none(),
            stop_reason,
            resolved_by,
            evaluations: looked_at.into_iter().map(Limit::into_evaluation).collect(),
        }
    }
}

/// A limit of a run, and whether the run has reached it.
#[derive(Debug)]
struct Limit {
    /// Name of the limit as a stop reason, and its name as a criterion.
    names: (&'static str, &'static str),
    is_reached: bool,
    reason: String,
}

impl Limit {
    fn into_evaluation(self) -> Evaluation {
        Evaluation {
            criterion: self.names.1.to_owned(),
            decision: if self.is_reached { "stop" } else { "continue" }.to_owned(),
            reason: self.reason,
        }
    }
}

impl Decision {
    pub(super) fn stop(stop_reason: &'static str, resolved_by: &'static str) -> Self {
        Self { should_continue: false, stop_reason, resolved_by, evaluations: Vec::new() }
    }

    pub(super) fn into_event(self) -> Event {
        Event::Continuation {
            should_continue: self.should_continue,
            stop_reason: self.stop_reason.to_owned(),
            resolved_by: self.resolved_by.to_owned(),
            evaluations: self.evaluations,
        }
    }
}

/// Returns the decision after a step without tool calls: the run ends.
pub(super) fn without_calls(reason: FinishReason) -> Decision {
    match reason {
        FinishReason::Length => Decision::stop("token_limit", "OutputLimit"),
        FinishReason::ContentFilter => Decision::stop("unknown", "ContentFilter"),
        FinishReason::Stop
        | FinishReason::ToolCalls
        | FinishReason::Error
        | FinishReason::Other => Decision::stop("completed", "NoToolCalls"),
    }
}
