//! Emits the model's answer as events: parts and calls begin, grow and end, under ids of Callboard's own.

use serde_json::{Map, Value, json};
use transcript::{CallId, ErrorCode, ErrorInfo, Executor, ResponseId, RunMessage};

use super::{AnswerDelta, FinishedCall, Outcome};
use crate::emitter::{Emitter, Part};
use crate::{ModelEffect, ReadyCall};

const SOURCE: &str = "openai";

#[derive(Debug)]
pub(super) struct ModelEmitter {
    pub(super) out: Emitter<ModelEffect>,
    open: Option<Part>,
    /// White space before the first word of a part. It is emitted with that word, or not at all.
    blanks: String,
    /// Tool calls of the current step, in the order of their numbers.
    calls: Vec<StartedCall>,
}

#[derive(Debug)]
struct StartedCall {
    id: CallId,
    name: String,
}

impl ModelEmitter {
    pub(super) fn new(response_id: ResponseId) -> Self {
        let out = Emitter::for_run(SOURCE, response_id);
        Self { out, open: None, blanks: String::new(), calls: Vec::new() }
    }

    /// Creates an emitter for a run that has emitted parts and tool calls before a restart.
    pub(super) fn resumed(answer: &RunMessage) -> Self {
        let mut emitter = Self::new(answer.id.clone());
        emitter.out.resume_run(answer);
        emitter
    }

    pub(super) fn start_step(&mut self) {
        self.calls.clear();
        self.blanks.clear();
    }

    /// Emits a delta of the answer as events. Returns false if it emitted nothing visible.
    pub(super) fn emit(&mut self, said: AnswerDelta) -> bool {
        match said {
            AnswerDelta::Text(delta) => self.grow(false, delta),
            AnswerDelta::Thinking(delta) => self.grow(true, delta),
            AnswerDelta::Call { name, provider_call_id, .. } => {
                self.close_part();
                let id = self.out.start_call(provider_call_id, &name, None, Executor::Server);
                self.calls.push(StartedCall { id, name });
                true
            }
            AnswerDelta::Arguments { call, delta } => {
                if let Some(started) = self.calls.get(call) {
                    self.out.arguments_delta(&started.id, delta);
                }
                true
            }
            AnswerDelta::Unreadable(raw) => {
                self.out.unrecognized(raw);
                false
            }
        }
    }

    /// Ends the part and the tool calls of the step. Returns the calls that can be run.
    /// `is_cut_off`: the model reached its output limit.
    pub(super) fn finish_calls(&mut self, outcome: &Outcome, is_cut_off: bool) -> Vec<ReadyCall> {
        self.close_part();
        let calls = std::mem::take(&mut self.calls);
        let mut ready = Vec::new();
        let mut reasoning_details = outcome.reasoning_details.as_ref();
        for (StartedCall { id, name }, finished) in calls.into_iter().zip(&outcome.calls) {
            let incomplete = is_cut_off && !finished.is_complete;
            let arguments = finished.arguments.clone();
            let data = provider_data(finished, reasoning_details.take());
            self.out.finish_arguments(&id, arguments.clone(), incomplete, data);
            let call = ReadyCall { call_id: id, tool_name: name, arguments };
            if incomplete {
                let why =
                    "The arguments broke off because the answer became too long; nothing ran.";
                self.refuse(&call, ErrorInfo::new(ErrorCode::InvalidArguments, why));
            } else {
                ready.push(call);
            }
        }
        ready
    }

    pub(super) fn refuse_for_limit(&mut self, call: &ReadyCall) {
        let why = "This run reached its limit of tool calls; nothing ran.";
        self.refuse(call, ErrorInfo::new(ErrorCode::ToolIterationLimit, why));
    }

    /// Ends a tool call that does not run, with an error as its result.
    fn refuse(&mut self, call: &ReadyCall, error: ErrorInfo) {
        self.out.refuse_call(&call.call_id, &call.tool_name, error);
    }

    fn grow(&mut self, is_thinking: bool, delta: String) -> bool {
        let is_blank = delta.trim().is_empty();
        if self.open.as_ref().is_some_and(|it| it.is_thinking() != is_thinking) {
            // Blanks between two parts belong to neither.
            if is_blank {
                return false;
            }
            self.close_part();
        }
        if let Some(part) = &mut self.open {
            part.grow(delta, &mut self.out);
            return true;
        }
        self.blanks.push_str(&delta);
        if is_blank {
            return false;
        }
        let text = std::mem::take(&mut self.blanks);
        let part = self.open.insert(self.out.start_part(is_thinking, None));
        part.grow(text.trim_start_matches(['\r', '\n']), &mut self.out);
        true
    }

    fn close_part(&mut self) {
        self.blanks.clear();
        if let Some(mut part) = self.open.take() {
            part.end(None, false, &mut self.out);
        }
    }
}

/// Returns the data that the model service requires back with the tool call, and with the message
/// that makes it. The message's data is kept with its first call.
fn provider_data(call: &FinishedCall, reasoning_details: Option<&Value>) -> Option<Value> {
    let mut data = Map::new();
    if let Some(extra) = &call.extra_content {
        data.insert("toolCall".to_owned(), json!({ "extra_content": extra }));
    }
    if let Some(details) = reasoning_details {
        data.insert("message".to_owned(), json!({ "reasoning_details": details }));
    }
    (!data.is_empty()).then_some(Value::Object(data))
}
