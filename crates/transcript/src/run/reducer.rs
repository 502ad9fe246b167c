//! The reducer of one run: folds its records into a [`RunMessage`].
//!
//! It never fails: one bad record must not break a page. A record about an unknown part or call creates
//! it. Every text keeps the position of its first record, and no text is lost. Parts are found and
//! created in `parts.rs`, calls are in `call.rs`, and `commentary.rs` assigns texts to calls.

use std::ops::Range;

use super::call::{input_excerpt, json_body};
use super::excerpt::excerpt;
use super::part_traits::PartTraits;
use super::parts::PartIndex;
use super::result_files::result_files;
use crate::{
    AppliedGrant, Approval, Body, CallId, CallOutcome, CallState, Continuation, Event, EventGroup,
    Finish, Millis, OutputStream, Record, Resolution, ResponseId, Retry, RunMessage, Seq, Steered,
    Step, StepFinished, Trigger, Validation,
};

/// Indexes of the parts of a message that a record changed; empty if only the message's own fields
/// changed.
pub(crate) type PartRange = Range<usize>;

impl RunMessage {
    pub(crate) fn new(id: ResponseId, at: Millis, body_edge: usize) -> Self {
        Self {
            id,
            agent: String::new(),
            model: None,
            trigger: Trigger::User,
            exchange_id: None,
            started_at: at,
            parts: Vec::new(),
            steps: Vec::new(),
            continuations: Vec::new(),
            cancel_requested: None,
            cancelled: None,
            audio_truncated_at_ms: None,
            finish: None,
            index: PartIndex::keeping(body_edge),
            part_traits: PartTraits::default(),
        }
    }

    /// Returns the assistant message of the run `id`, built from its records.
    pub fn replay<'a>(id: &ResponseId, records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut records = records.into_iter().peekable();
        let at = records.peek().map_or(Millis::default(), |it| it.at);
        let mut answer = Self::new(id.clone(), at, crate::BODY_EDGE);
        records.for_each(|record| {
            answer.apply(record);
        });
        answer
    }

    /// Applies a record of this run to its message. Returns the indexes of the parts that it
    /// changed; empty if only the message's own fields changed.
    pub fn apply(&mut self, record: &Record) -> Range<usize> {
        let Record { seq, at, .. } = *record;
        let mut touched = self.apply_event(&record.event, seq, at);
        touched.end = touched.end.min(self.parts.len());
        touched.start = touched.start.min(touched.end);
        for idx in touched.clone() {
            let is_at_top = self.parent_of(idx).is_none();
            let part = &mut self.parts[idx];
            part.changed = seq;
            if part.first == Seq(0) {
                part.first = seq;
            }
            self.part_traits.note(idx, part, is_at_top);
        }
        touched
    }

    fn apply_event(&mut self, event: &Event, seq: Seq, at: Millis) -> PartRange {
        match event.group() {
            EventGroup::Run => self.apply_run_event(event, at),
            EventGroup::Part => self.apply_part_event(event, at),
            EventGroup::Call => self.apply_call_event(event, seq, at),
            EventGroup::Exchange => self.apply_exchange_event(event, at),
            EventGroup::Session | EventGroup::Queue | EventGroup::Other => 0..0,
        }
    }

    fn apply_run_event(&mut self, event: &Event, at: Millis) -> PartRange {
        match event {
            Event::RunStart { agent, model, trigger, exchange_id } => {
                self.agent.clone_from(agent);
                self.model.clone_from(model);
                self.trigger = *trigger;
                self.exchange_id.clone_from(exchange_id);
                self.started_at = at;
                0..0
            }
            Event::StepStart { index, parent_call_id } => {
                self.start_step(*index, parent_call_id.as_ref(), at)
            }
            Event::StepFinish { finish_reason, usage, cost, parent_call_id, .. } => {
                let (reason, usage, cost) = (finish_reason.clone(), *usage, *cost);
                let finished = StepFinished { at, reason, usage, cost };
                self.finish_step(parent_call_id.as_ref(), finished)
            }
            Event::Continuation { should_continue, stop_reason, resolved_by, evaluations } => {
                let n_steps = self.steps.iter().filter(|step| step.parent.is_none()).count();
                self.continuations.push(Continuation {
                    at,
                    n_steps,
                    should_continue: *should_continue,
                    stop_reason: stop_reason.clone(),
                    resolved_by: resolved_by.clone(),
                    evaluations: evaluations.clone(),
                });
                0..0
            }
            Event::CancelRequested { by } => {
                self.cancel_requested.get_or_insert((by.clone(), at));
                0..0
            }
            Event::OutputCancelled { reason, audio_truncated_at_ms } => {
                self.cancelled.get_or_insert(*reason);
                self.audio_truncated_at_ms = *audio_truncated_at_ms;
                0..0
            }
            Event::RunFinish { status, error, usage, cost, duration_ms } => {
                self.finish.get_or_insert_with(|| Finish {
                    at,
                    status: *status,
                    error: error.clone(),
                    usage: *usage,
                    cost: *cost,
                    // Earlier versions wrote 0 if the duration was not measured.
                    duration_ms: duration_ms.filter(|it| *it > 0),
                });
                self.decide_remaining(at)
            }

            Event::MessageSteered { message_id, text, state } => {
                let steered = Steered { id: message_id.clone(), text: text.clone(), state: *state };
                self.steer(steered, at)
            }
            _ => 0..0,
        }
    }

    fn apply_part_event(&mut self, event: &Event, at: Millis) -> PartRange {
        match event {
            Event::TextStart { part_id, parent_call_id } => {
                self.text(part_id, parent_call_id.as_ref(), at, |_| ())
            }
            Event::TextDelta { part_id, parent_call_id, delta } => {
                self.text(part_id, parent_call_id.as_ref(), at, |text| text.text.push_str(delta))
            }
            Event::TextDone { part_id, parent_call_id, text, phase, discarded } => {
                let touched = self.text(part_id, parent_call_id.as_ref(), at, |part| {
                    part.text.clone_from(text);
                    part.open = false;
                    part.phase = *phase;
                });
                let decided = self.decide_closed_text(touched.start, *discarded, at);
                union(touched, decided)
            }
            Event::ThinkingStart { part_id, parent_call_id } => {
                self.thinking(part_id, parent_call_id.as_ref(), at, |_| ())
            }
            Event::ThinkingDelta { part_id, parent_call_id, delta } => {
                self.thinking(part_id, parent_call_id.as_ref(), at, |thinking| {
                    thinking.text.push_str(delta)
                })
            }
            Event::ThinkingDone { part_id, parent_call_id, text, discarded } => {
                self.thinking(part_id, parent_call_id.as_ref(), at, |thinking| {
                    thinking.text.clone_from(text);
                    thinking.open = false;
                    thinking.finished_at = Some(at);
                    thinking.discarded = *discarded;
                })
            }

            Event::PartExtras { part_id, fields } => {
                let found = self.parts.iter().rposition(|it| it.id() == Some(part_id));
                found.map_or(0..0, |idx| {
                    self.parts[idx].extras.clone_from(fields);
                    idx..idx + 1
                })
            }
            Event::Notice { .. } => self.aside(event, at),
            Event::Unrecognized { .. } => self.unrecognized(event, at),
            _ => 0..0,
        }
    }

    fn apply_call_event(&mut self, event: &Event, seq: Seq, at: Millis) -> PartRange {
        match event {
            Event::ToolCallStart {
                call_id,
                provider_call_id,
                tool_name,
                arguments,
                parent_call_id,
                executor,
            } => self.call_mut(call_id, parent_call_id.as_ref(), at, |call| {
                call.name.clone_from(tool_name);
                call.provider_call_id.clone_from(provider_call_id);
                call.executor = *executor;
                if let Some(arguments) = arguments {
                    call.arguments.set(arguments);
                }
            }),
            Event::ToolArgumentsDelta { call_id, delta } => {
                self.call_mut(call_id, None, at, |call| call.arguments.push(delta))
            }
            Event::ToolArgumentsDone {
                call_id,
                arguments,
                summary,
                incomplete,
                validation,
                provider_data,
            } => {
                let edge = self.index.body_edge();
                let touched = self.call_mut(call_id, None, at, |call| {
                    call.arguments = Body::keeping(edge);
                    call.arguments.push(arguments);
                    if call.edited.is_none() {
                        call.input_value = input_excerpt(arguments, edge);
                    }
                    call.arguments_done = true;
                    call.arguments_incomplete = *incomplete;
                    call.summary.clone_from(summary);
                    call.validation = Some(*validation);
                    call.provider_data.clone_from(provider_data);
                    call.move_to(match validation {
                        Validation::NotRequired => CallState::Queued,
                        Validation::Pending => CallState::AwaitingApproval,
                    });
                });
                let leaked = self.mark_leaked_arguments(arguments);
                union(touched, leaked)
            }
            Event::ToolRunning { call_id } => {
                self.call_mut(call_id, None, at, |call| call.mark_running(at))
            }
            Event::ToolApprovalRequested { call_id, options } => {
                self.call_mut(call_id, None, at, |call| {
                    let options = Some(options.clone());
                    call.request_approval(Approval { options, requested_at: at, resolved: None });
                })
            }
            Event::ToolApprovalResolved {
                call_id,
                decision,
                scope,
                arguments,
                feedback,
                covers,
                by,
            } => {
                let resolution = Resolution {
                    at,
                    decision: *decision,
                    scope: *scope,
                    arguments: arguments.clone(),
                    feedback: feedback.clone(),
                    covers: covers.clone(),
                    by: by.clone(),
                };
                let edge = self.index.body_edge();
                self.call_mut(call_id, None, at, |call| call.resolve_approval(resolution, edge))
            }
            Event::ToolGranted { call_id, scope, covers } => {
                let granted = AppliedGrant { scope: *scope, covers: covers.clone() };
                self.call_mut(call_id, None, at, |call| call.granted = Some(granted))
            }
            Event::ToolOutputDelta { call_id, stream, offset, delta } => {
                self.call_mut(call_id, None, at, |call| match stream {
                    OutputStream::Stdout => call.stdout.replace_from(*offset, delta),
                    OutputStream::Stderr => call.stderr.replace_from(*offset, delta),
                })
            }
            Event::ToolRetry { call_id, attempt, max_attempts, error } => {
                self.call_mut(call_id, None, at, |call| {
                    call.retries.push(Retry {
                        at,
                        attempt: *attempt,
                        max_attempts: *max_attempts,
                        error: error.clone(),
                    });
                })
            }
            Event::ToolResult {
                call_id,
                tool_name,
                ok,
                result,
                output,
                error,
                summary,
                duration_ms,
                truncated,
            } => {
                let edge = self.index.body_edge();
                let outcome = CallOutcome {
                    seq,
                    at,
                    ok: *ok,
                    result: result.as_ref().map(|value| json_body(value, edge)),
                    result_value: result.as_ref().and_then(|value| excerpt(value, edge)),
                    files: result.as_ref().map(result_files).unwrap_or_default(),
                    error: error.clone(),
                    summary: summary.clone().unwrap_or_default(),
                    duration_ms: *duration_ms,
                    truncated: *truncated,
                };
                self.call_mut(call_id, None, at, |call| {
                    call.end(tool_name, outcome, result.as_ref(), output.as_deref())
                })
            }
            _ => 0..0,
        }
    }

    fn apply_exchange_event(&mut self, event: &Event, at: Millis) -> PartRange {
        match event {
            Event::AgentMessage { .. } | Event::AgentCallbackResult { .. } => {
                self.exchange(event, at)
            }
            Event::AgentProgress { exchange_id, state } => {
                self.exchange_progress(exchange_id, *state)
            }
            _ => 0..0,
        }
    }

    fn start_step(&mut self, index: u32, parent: Option<&CallId>, at: Millis) -> PartRange {
        // An unfinished step ends where the next one starts.
        let touched = self.decide_step_end(parent, at);
        self.index.scopes.of(parent).start_step(self.steps.len());
        self.steps.push(Step { index, parent: parent.cloned(), started_at: at, finished: None });
        touched
    }

    fn finish_step(&mut self, parent: Option<&CallId>, finished: StepFinished) -> PartRange {
        let at = finished.at;
        let step = self.index.scopes.of(parent).open_step;
        if let Some(step) = step.and_then(|idx| self.steps.get_mut(idx)) {
            step.finished = Some(finished);
        }
        self.decide_step_end(parent, at)
    }
}

/// Returns the smallest range of parts that covers both ranges.
pub(crate) fn union(a: PartRange, b: PartRange) -> PartRange {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}
