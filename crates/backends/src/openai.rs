//! Any model behind an OpenAI-compatible chat-completions API; the server runs its tools.
//!
//! One value is one run: it calls the model, runs the tool calls of the response and calls the model again
//! with their results, until there are no calls or a limit is reached. Each step's request is made from the
//! log of the conversation at that moment, so the loop has no state that the log lacks.

mod calls;
mod decoder;
mod emitter;
mod failure;
mod finish_reason;
mod limits;
mod lines;
mod reasoning_details;
mod request;
mod retry;
mod settings;
mod template;
mod think_tags;
mod wire;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use transcript::{
    CallId, ErrorInfo, Event, Level, MessageId, Millis, ResponseId, RunMessage, RunStatus,
};

pub use self::decoder::{AnswerDelta, Decoder, FinishedCall, Outcome, ServiceError};
use self::emitter::ModelEmitter;
use self::failure::Failure;
pub use self::finish_reason::FinishReason;
use self::limits::{Decision, Progress};
pub use self::settings::{Limits, Settings};
use crate::model_backend::open_calls;
use crate::steering::Steering;
use crate::{
    Ending, Lost, ModelBackend, ModelEffect, ModelInput, ReadyCall, Request, ResponsePart,
    RunEffect, RunInput,
};

/// Maximum number of bytes of an error response's body that are kept.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// Returns the description of a tool as a function of the OpenAI API.
pub fn function(name: &str, description: &str, parameters: &Value) -> Value {
    json!({ "type": "function", "function": {
        "name": name, "description": description, "parameters": parameters,
    }})
}

/// Backend of an agent that is a model behind an OpenAI-compatible API, for one run.
#[derive(Debug)]
pub struct OpenAi {
    settings: Arc<Settings>,
    tools: Vec<Value>,
    /// The open run. `None` before its start and after its end.
    run: Option<Run>,
}

impl OpenAi {
    /// Creates the backend for one run of a model agent.
    pub fn new(settings: Arc<Settings>) -> Self {
        Self { settings, tools: Vec::new(), run: None }
    }
}

impl ModelBackend for OpenAi {
    fn on(&mut self, now: Millis, input: ModelInput) -> Vec<ModelEffect> {
        let settings = || Arc::clone(&self.settings);
        let (tools, run) = (&mut self.tools, &mut self.run);
        match (input, &mut *run) {
            (ModelInput::Tools(given), _) => *tools = given,
            (ModelInput::Run(RunInput::Start { response_id, history }), run) => {
                run.insert(Run::new(settings(), response_id, now)).ask(&history, tools);
            }
            (ModelInput::Resume { answer, .. }, run) => {
                run.insert(Run::resumed(settings(), &answer)).run_tools(now);
            }
            (ModelInput::Run(RunInput::Steer { message_id, message }), Some(run)) => {
                run.steer(message_id, &message);
            }
            (ModelInput::Run(RunInput::Interrupt), Some(run)) => run.interrupt(),
            (ModelInput::Run(RunInput::Wake), Some(run)) => run.wake(now),
            (ModelInput::History(history), Some(run)) => run.ask(&history, tools),
            (ModelInput::Response(part), Some(run)) => run.take_response(now, part),
            (ModelInput::ToolResult { call_id, .. }, Some(run)) => run.take_result(now, &call_id),
            (ModelInput::ToolWaits(call_id), Some(run)) => run.move_elsewhere(now, &call_id),
            (_, None) => (),
        }
        let effects = run.as_mut().map(|it| it.emitter.out.take_effects()).unwrap_or_default();
        if let Some(ModelEffect::Run(RunEffect::End(_))) = effects.last() {
            *run = None;
        }
        effects
    }
}

#[derive(Debug)]
struct Run {
    settings: Arc<Settings>,
    response_id: ResponseId,
    progress: Progress,
    emitter: ModelEmitter,
    steering: Steering,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// The run waits for the conversation, from which the next request is built.
    Reading,
    Asking(Box<Attempt>),
    /// The run waits before it sends the request again, because the model service failed.
    Pausing {
        until: Millis,
        request: Request,
        attempt: u32,
    },
    Tools {
        waiting: VecDeque<ReadyCall>,
        running: Vec<CallId>,
        /// Tool calls that wait for a person or a client.
        elsewhere: Vec<CallId>,
        /// Whether the model reached its output limit in the step that made these tool calls.
        cut_off: bool,
    },
    Ended,
}

/// One attempt to send a step's request, and the response to it.
#[derive(Debug)]
struct Attempt {
    /// Number of the attempt for the step's request, from 1.
    number: u32,
    request: Request,
    /// HTTP status code of the response. Zero until the response begins.
    status: u16,
    headers: Vec<(String, String)>,
    error_body: Vec<u8>,
    decoder: Decoder,
    /// Whether a part of the response was emitted, which another attempt would repeat.
    has_emitted: bool,
}

impl Run {
    fn new(settings: Arc<Settings>, response_id: ResponseId, now: Millis) -> Self {
        Self {
            settings,
            emitter: ModelEmitter::new(response_id.clone()),
            response_id,
            progress: Progress::new(now),
            steering: Steering::default(),
            phase: Phase::Reading,
        }
    }

    /// Resumes a run at its open tool calls. The conversation is read before the next step.
    fn resumed(settings: Arc<Settings>, answer: &RunMessage) -> Self {
        let last_step = answer.steps.last().and_then(|it| it.finished.as_ref());
        Self {
            settings,
            emitter: ModelEmitter::resumed(answer),
            response_id: answer.id.clone(),
            progress: Progress::resumed(answer),
            steering: Steering::default(),
            phase: Phase::Tools {
                waiting: open_calls(answer).collect(),
                running: Vec::new(),
                elsewhere: Vec::new(),
                cut_off: last_step.is_some_and(|it| it.reason == FinishReason::Length.as_str()),
            },
        }
    }

    fn steer(&mut self, message_id: MessageId, message: &Value) {
        let text = message["content"].as_str().unwrap_or_default().to_owned();
        self.steering.send("", message_id, text);
        // The conversation that is being read includes it.
        if let Phase::Reading = self.phase {
            self.hand_over();
        }
    }

    fn take_response(&mut self, now: Millis, part: ResponsePart) {
        match part {
            ResponsePart::Head { status, headers } => {
                if let Phase::Asking(attempt) = &mut self.phase {
                    (attempt.status, attempt.headers) = (status, headers);
                }
            }
            ResponsePart::Bytes(bytes) => self.read(now, &bytes),
            ResponsePart::Ended(how) => self.ended(now, how),
        }
    }

    fn ask(&mut self, history: &[Value], tools: &[Value]) {
        if !matches!(self.phase, Phase::Reading) {
            return;
        }
        let index = self.progress.start_step();
        self.emitter.start_step();
        self.emitter.out.start_step(index, None);
        let request = request::chat(&self.settings, history, tools);
        self.send(request, 1);
    }

    fn send(&mut self, request: Request, number: u32) {
        self.emitter.out.push(ModelEffect::Request(request.clone()));
        self.phase = Phase::Asking(Box::new(Attempt {
            number,
            request,
            status: 0,
            headers: Vec::new(),
            error_body: Vec::new(),
            decoder: Decoder::default(),
            has_emitted: false,
        }));
        self.wake_at_latest(None);
    }

    fn read(&mut self, now: Millis, bytes: &[u8]) {
        let Phase::Asking(attempt) = &mut self.phase else { return };
        if !attempt.is_good() {
            let room = MAX_ERROR_BODY.saturating_sub(attempt.error_body.len());
            attempt.error_body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            return;
        }
        let said = attempt.decoder.feed(bytes);
        let is_over = attempt.decoder.is_over();
        self.emit_all(said);
        if is_over {
            self.answered(now, None);
        }
    }

    fn ended(&mut self, now: Millis, how: Result<(), Lost>) {
        let Phase::Asking(attempt) = &self.phase else { return };
        match how {
            Err(lost) if attempt.status == 0 => {
                self.give_up_or_retry(now, Failure::lost(&self.settings, &lost));
            }
            _ if !attempt.is_good() => {
                let (status, headers) = (attempt.status, &attempt.headers);
                let body = &attempt.error_body;
                let failure = Failure::refused(&self.settings, status, headers, body, now);
                self.give_up_or_retry(now, failure);
            }
            how => self.answered(now, how.err()),
        }
    }

    fn emit_all(&mut self, said: Vec<AnswerDelta>) {
        let mut has_emitted = false;
        for it in said {
            has_emitted |= self.emitter.emit(it);
        }
        if let Phase::Asking(attempt) = &mut self.phase {
            attempt.has_emitted |= has_emitted;
        }
        if has_emitted {
            self.mark_seen();
        }
    }

    /// Marks the steered messages as handed over to the model. Called when all tool calls have
    /// results, because a conversation cannot take user messages between a call and its result.
    fn hand_over(&mut self) {
        self.steering.hand_over(|_| true, &mut self.emitter.out);
    }

    /// Marks all handed-over messages as seen: the model has begun to answer the conversation with
    /// them.
    fn mark_seen(&mut self) {
        while self.steering.mark_seen(|_| true, &mut self.emitter.out) {}
    }

    /// Handles the end of the model's response, complete or not. `lost` is why the connection ended
    /// early.
    fn answered(&mut self, now: Millis, lost: Option<Lost>) {
        let Phase::Asking(attempt) = &mut self.phase else { return };
        let (said, outcome) = attempt.decoder.finish();
        self.emit_all(said);
        match self.what_failed(&outcome, lost) {
            Some(failure) => self.give_up_or_retry(now, failure),
            None => self.finish_step(now, outcome),
        }
    }

    fn what_failed(&self, outcome: &Outcome, lost: Option<Lost>) -> Option<Failure> {
        let settings = &self.settings;
        if let Some(error) = &outcome.error {
            return Some(Failure::reported(settings, error));
        }
        match outcome.finish_reason {
            Some(FinishReason::Error) => Some(Failure::stopped_with_error(settings)),
            Some(_) => None,
            None if outcome.is_marked_done && outcome.has_answer => None,
            None => Some(match lost {
                Some(lost) => Failure::lost(settings, &lost),
                None if outcome.has_answer => Failure::broke_off(settings),
                None => Failure::unreadable(settings),
            }),
        }
    }

    fn finish_step(&mut self, now: Millis, outcome: Outcome) {
        self.mark_seen();
        let Outcome { finish_reason, usage, .. } = outcome;
        let calls = &outcome.calls;
        let reason = match finish_reason {
            // Some services give another reason although there are calls.
            None | Some(FinishReason::Stop | FinishReason::Other) if !calls.is_empty() => {
                FinishReason::ToolCalls
            }
            reason => reason.unwrap_or(FinishReason::Other),
        };
        if finish_reason.is_none() {
            self.emitter.out.notice(
                Level::Info,
                "The model service did not say why the answer ended; it may be incomplete.",
            );
        }
        let is_cut_off = reason == FinishReason::Length;
        let ready = self.emitter.finish_calls(&outcome, is_cut_off);
        let index = self.progress.steps - 1;
        self.emitter.out.finish_step(index, reason.as_str(), (usage, None), None);
        self.progress.add_usage(usage);
        if calls.is_empty() {
            return self.decide(limits::without_calls(reason));
        }
        let (allowed, refused) = self.progress.take_calls(&self.settings.limits, ready);
        for call in &refused {
            self.emitter.refuse_for_limit(call);
        }
        let waiting = allowed.into();
        let (running, elsewhere) = (Vec::new(), Vec::new());
        self.phase = Phase::Tools { waiting, running, elsewhere, cut_off: is_cut_off };
        self.run_tools(now);
    }

    /// Runs the waiting tool calls of the step in parallel, up to the limit. Calls that wait for a
    /// person or a client do not count, as they may take long.
    fn run_tools(&mut self, now: Millis) {
        let Phase::Tools { waiting, running, elsewhere, cut_off } = &mut self.phase else { return };
        while running.len() < self.settings.parallel_tools.max(1) {
            let Some(call) = waiting.pop_front() else { break };
            running.push(call.call_id.clone());
            self.emitter.out.push(ModelEffect::RunTool(call));
        }
        if running.is_empty() && elsewhere.is_empty() {
            let decision = match *cut_off {
                true => limits::without_calls(FinishReason::Length),
                false => self.progress.evaluate(&self.settings.limits, now),
            };
            self.decide(decision);
        }
    }

    fn take_result(&mut self, now: Millis, call_id: &CallId) {
        if let Phase::Tools { running, elsewhere, .. } = &mut self.phase {
            running.retain(|it| it != call_id);
            elsewhere.retain(|it| it != call_id);
            self.run_tools(now);
        }
    }

    fn move_elsewhere(&mut self, now: Millis, call_id: &CallId) {
        if let Phase::Tools { running, elsewhere, .. } = &mut self.phase
            && let Some(idx) = running.iter().position(|it| it == call_id)
        {
            elsewhere.push(running.swap_remove(idx));
            self.run_tools(now);
        }
    }

    fn decide(&mut self, decision: Decision) {
        let should_continue = decision.should_continue;
        self.emit(decision.into_event());
        if should_continue {
            self.phase = Phase::Reading;
            self.hand_over();
            self.emitter.out.push(ModelEffect::ReadHistory);
        } else {
            self.end(RunStatus::Completed, None);
        }
    }

    /// Retries the request after a pause, or ends the run as failed. A request is retried only if
    /// the failure may pass and none of the response was emitted.
    fn give_up_or_retry(&mut self, now: Millis, failure: Failure) {
        let Phase::Asking(attempt) = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return;
        };
        let Attempt { number, request, has_emitted, .. } = *attempt;
        let retries = self.settings.retries;
        let wait = failure.wait_ms.unwrap_or_else(|| retry::pause_ms(&self.response_id, number));
        let waits_too_long = wait > retry::MAX_PAUSE_MS;
        if !failure.may_pass || has_emitted || waits_too_long {
            let waits = if waits_too_long { Some(wait) } else { None };
            return self.fail(Decision::stop("error", "ErrorPolicy"), failure.after(waits));
        }
        if number > retries {
            return self.fail(Decision::stop("retry_limit", "RetryLimit"), failure.error);
        }
        self.emitter.start_step();
        self.emitter.out.notice(
            Level::Info,
            format!(
                "{} Trying again in {} (attempt {} of {}).",
                failure.error.message,
                retry::in_seconds(wait),
                number + 1,
                retries + 1,
            ),
        );
        let until = now.plus(wait);
        self.phase = Phase::Pausing { until, request, attempt: number + 1 };
        self.wake_at_latest(Some(until));
    }

    fn wake(&mut self, now: Millis) {
        let is_too_late = self.progress.deadline(&self.settings.limits).is_some_and(|it| it <= now);
        match &self.phase {
            // Tools have time limits of their own; the run's is checked when they are done.
            Phase::Reading | Phase::Tools { .. } | Phase::Ended => (),
            _ if is_too_late => {
                let decision = self.progress.evaluate(&self.settings.limits, now);
                self.decide(decision);
            }
            Phase::Pausing { until, request, attempt } if *until <= now => {
                let (request, attempt) = (request.clone(), *attempt);
                self.send(request, attempt);
            }
            Phase::Pausing { until, .. } => {
                let until = *until;
                self.wake_at_latest(Some(until));
            }
            Phase::Asking(_) => self.wake_at_latest(None),
        }
    }

    /// Ends the run as cancelled, after emitting the text that was held back. Open parts stay open:
    /// the driver closes them.
    fn interrupt(&mut self) {
        if let Phase::Asking(attempt) = &mut self.phase {
            let (said, _) = attempt.decoder.finish();
            self.emit_all(said);
        }
        self.emit(Decision::stop("user_requested", "UserCancel").into_event());
        self.end(RunStatus::Cancelled, None);
    }

    fn fail(&mut self, decision: Decision, error: ErrorInfo) {
        self.emit(decision.into_event());
        self.end(RunStatus::Failed, Some(error));
    }

    fn end(&mut self, status: RunStatus, error: Option<ErrorInfo>) {
        self.phase = Phase::Ended;
        self.steering.give_back(|_| true, &mut self.emitter.out);
        let usage = self.progress.usage;
        self.emitter.out.end_run(Ending { status, error, usage, cost: None });
    }

    fn wake_at_latest(&mut self, at: Option<Millis>) {
        let deadline = self.progress.deadline(&self.settings.limits);
        if let Some(at) = at.into_iter().chain(deadline).min() {
            self.emitter.out.push(RunEffect::WakeAt(at));
        }
    }

    fn emit(&mut self, event: Event) {
        self.emitter.out.emit(event);
    }
}

impl Attempt {
    fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }
}
