//! Collects the effects of a backend, and numbers the parts and calls of its runs.

use serde_json::Value;
use transcript::{
    CallId, ErrorInfo, Event, Executor, Level, Millis, OutputStream, PartId, Phase, ResponseId,
    RunMessage, Usage, Validation,
};

use crate::model_backend::ids_given;
use crate::{Ending, ProgramEffect, RunEffect, arguments_summary};

/// Collects the effects of a backend, in order. Events are dropped while no run is open. `E` is the
/// effect type of the backend's family.
#[derive(Debug)]
pub(crate) struct Emitter<E = ProgramEffect> {
    /// The `source` of the `unrecognized` events that this emitter emits.
    source: &'static str,
    now: Millis,
    response_id: ResponseId,
    is_running: bool,
    ids_given: u32,
    requests: u64,
    effects: Vec<E>,
}

/// A text or a thinking block that has begun in the log.
#[derive(Debug)]
pub(crate) struct Part {
    id: PartId,
    parent: Option<CallId>,
    is_thinking: bool,
    pub(crate) text: String,
}

impl<E: From<RunEffect>> Emitter<E> {
    pub(crate) fn new(source: &'static str) -> Self {
        Self {
            source,
            now: Millis::default(),
            response_id: ResponseId::new(""),
            is_running: false,
            ids_given: 0,
            requests: 0,
            effects: Vec::new(),
        }
    }

    pub(crate) fn for_run(source: &'static str, response_id: ResponseId) -> Self {
        let mut out = Self::new(source);
        out.begin_run(response_id);
        out
    }

    pub(crate) fn begin_run(&mut self, response_id: ResponseId) {
        (self.response_id, self.ids_given) = (response_id, 0);
        self.is_running = true;
    }

    /// Begins to emit events for a run that has parts and tool calls already.
    pub(crate) fn resume_run(&mut self, answer: &RunMessage) {
        self.begin_run(answer.id.clone());
        self.ids_given = ids_given(answer);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Returns the id of the open run, or else of the last one.
    pub(crate) fn response_id(&self) -> &ResponseId {
        &self.response_id
    }

    /// Returns the time of the input that the backend is handling.
    pub(crate) fn now(&self) -> Millis {
        self.now
    }

    pub(crate) fn set_now(&mut self, now: Millis) {
        self.now = now;
    }

    pub(crate) fn take_effects(&mut self) -> Vec<E> {
        std::mem::take(&mut self.effects)
    }

    pub(crate) fn push(&mut self, effect: impl Into<E>) {
        self.effects.push(effect.into());
    }

    pub(crate) fn emit(&mut self, event: Event) {
        if self.is_running {
            self.push(RunEffect::Emit(event));
        }
    }

    pub(crate) fn notice(&mut self, level: Level, text: impl Into<String>) {
        self.emit(Event::Notice { level, text: text.into() });
    }

    pub(crate) fn unrecognized(&mut self, raw: impl Into<String>) {
        let (source, raw) = (self.source.to_owned(), raw.into());
        self.emit(Event::Unrecognized { source, raw, lines: 1 });
    }

    /// Emits a `continuation` event: whether the run continues, and why. It has no evaluations of
    /// limits.
    pub(crate) fn continuation(&mut self, goes_on: bool, stop_reason: &str, resolved_by: &str) {
        self.emit(Event::Continuation {
            should_continue: goes_on,
            stop_reason: stop_reason.to_owned(),
            resolved_by: resolved_by.to_owned(),
            evaluations: Vec::new(),
        });
    }

    /// Ends the run with [`RunEffect::End`]. Nothing may be pushed after it.
    pub(crate) fn end_run(&mut self, ending: Ending) {
        self.push(RunEffect::End(ending));
        self.is_running = false;
    }

    /// Closes the run without an effect, because another backend continues it.
    pub(crate) fn abandon_run(&mut self) {
        self.is_running = false;
    }

    // Steps

    pub(crate) fn start_step(&mut self, index: u32, parent: Option<&CallId>) {
        self.emit(Event::StepStart { index, parent_call_id: parent.cloned() });
    }

    pub(crate) fn finish_step(
        &mut self,
        index: u32,
        finish_reason: &str,
        (usage, cost): (Option<Usage>, Option<f64>),
        parent: Option<&CallId>,
    ) {
        self.emit(Event::StepFinish {
            index,
            finish_reason: finish_reason.to_owned(),
            usage,
            cost,
            parent_call_id: parent.cloned(),
        });
    }

    // Parts

    pub(crate) fn start_part(&mut self, is_thinking: bool, parent: Option<&CallId>) -> Part {
        self.ids_given += 1;
        let id = PartId::numbered(&self.response_id, self.ids_given);
        let (part_id, parent_call_id) = (id.clone(), parent.cloned());
        self.emit(match is_thinking {
            true => Event::ThinkingStart { part_id, parent_call_id },
            false => Event::TextStart { part_id, parent_call_id },
        });
        Part { id, parent: parent.cloned(), is_thinking, text: String::new() }
    }

    // Calls

    /// Starts a tool call under a new id. `provider_call_id` is the model service's id.
    pub(crate) fn start_call(
        &mut self,
        provider_call_id: Option<String>,
        tool_name: &str,
        parent: Option<&CallId>,
        executor: Executor,
    ) -> CallId {
        self.ids_given += 1;
        let id = CallId::numbered(&self.response_id, self.ids_given);
        self.emit(Event::ToolCallStart {
            call_id: id.clone(),
            provider_call_id,
            tool_name: tool_name.to_owned(),
            arguments: None,
            parent_call_id: parent.cloned(),
            executor,
        });
        id
    }

    pub(crate) fn arguments_delta(&mut self, call_id: &CallId, delta: String) {
        self.emit(Event::ToolArgumentsDelta { call_id: call_id.clone(), delta });
    }

    pub(crate) fn finish_arguments(
        &mut self,
        call_id: &CallId,
        arguments: String,
        incomplete: bool,
        provider_data: Option<Value>,
    ) {
        self.emit(Event::ToolArgumentsDone {
            call_id: call_id.clone(),
            summary: arguments_summary(&arguments),
            arguments,
            incomplete,
            validation: Validation::NotRequired,
            provider_data,
        });
    }

    pub(crate) fn running(&mut self, call_id: &CallId) {
        self.emit(Event::ToolRunning { call_id: call_id.clone() });
    }

    pub(crate) fn output(
        &mut self,
        call_id: &CallId,
        stream: OutputStream,
        offset: usize,
        delta: String,
    ) {
        let (call_id, offset) = (call_id.clone(), offset as u64);
        self.emit(Event::ToolOutputDelta { call_id, stream, offset, delta });
    }

    /// Ends a tool call that did not run, with an error as its result.
    pub(crate) fn refuse_call(&mut self, call_id: &CallId, tool_name: &str, error: ErrorInfo) {
        self.emit(Event::ToolResult {
            call_id: call_id.clone(),
            tool_name: tool_name.to_owned(),
            ok: false,
            result: None,
            output: None,
            error: Some(error),
            summary: None,
            duration_ms: None,
            truncated: None,
        });
    }

    /// Returns a name that is unique in the run, for an item that the program reports without a
    /// name.
    pub(crate) fn unused_name(&self) -> String {
        format!("{}+{}", self.response_id, self.ids_given)
    }
}

impl Emitter {
    pub(crate) fn write(&mut self, line: String) {
        self.push(ProgramEffect::Write(line));
    }

    /// Returns a number for the next request to the program, unique for the life of its process.
    pub(crate) fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }
}

impl Part {
    pub(crate) fn is_thinking(&self) -> bool {
        self.is_thinking
    }

    pub(crate) fn grow<E: From<RunEffect>>(
        &mut self,
        delta: impl Into<String>,
        out: &mut Emitter<E>,
    ) {
        let delta = delta.into();
        self.text.push_str(&delta);
        let (part_id, parent_call_id) = (self.id.clone(), self.parent.clone());
        out.emit(match self.is_thinking {
            true => Event::ThinkingDelta { part_id, parent_call_id, delta },
            false => Event::TextDelta { part_id, parent_call_id, delta },
        });
    }

    /// Ends the part with its current text. `discarded`: the model writes the text again in another
    /// part.
    pub(crate) fn end<E: From<RunEffect>>(
        &mut self,
        phase: Option<Phase>,
        discarded: bool,
        out: &mut Emitter<E>,
    ) {
        let (part_id, parent_call_id) = (self.id.clone(), self.parent.clone());
        let text = std::mem::take(&mut self.text);
        out.emit(match self.is_thinking {
            true => Event::ThinkingDone { part_id, parent_call_id, text, discarded },
            false => Event::TextDone { part_id, parent_call_id, text, phase, discarded },
        });
    }
}
