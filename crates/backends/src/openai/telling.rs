//! What the model says, told as events: parts and calls begin, grow and end, with ids of our own.

use serde_json::{Map, Value, json};
use transcript::{
    CallId, ErrorCode, ErrorInfo, Event, Executor, PartId, ResponseId, RunMessage, Validation,
};

use super::{FinishedCall, Outcome, Said};
use crate::{Effect, arguments_summary, ids_given};

#[derive(Debug)]
pub(super) struct Telling {
    response_id: ResponseId,
    ids_given: u32,
    open: Option<OpenPart>,
    /// Blanks that came before any word: told with the first word, or not at all.
    blanks: String,
    /// Of this step.
    calls: Vec<ToldCall>,
}

#[derive(Debug)]
struct OpenPart {
    id: PartId,
    is_thinking: bool,
    text: String,
}

#[derive(Debug)]
struct ToldCall {
    id: CallId,
    name: String,
}

/// A call that can be run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReadyCall {
    id: CallId,
    name: String,
    arguments: String,
}

impl ReadyCall {
    pub(super) fn run(self) -> Effect {
        Effect::RunTool { call_id: self.id, tool_name: self.name, arguments: self.arguments }
    }
}

impl Telling {
    pub(super) fn new(response_id: ResponseId) -> Self {
        Self { response_id, ids_given: 0, open: None, blanks: String::new(), calls: Vec::new() }
    }

    /// Of a run that has said something before.
    pub(super) fn resumed(answer: &RunMessage) -> Self {
        Self { ids_given: ids_given(answer), ..Self::new(answer.id.clone()) }
    }

    pub(super) fn start_step(&mut self) {
        self.calls.clear();
        self.blanks.clear();
    }

    /// False if there is nothing to see of it.
    pub(super) fn tell(&mut self, said: Said, effects: &mut Vec<Effect>) -> bool {
        match said {
            Said::Text(delta) => self.grow(false, delta, effects),
            Said::Thinking(delta) => self.grow(true, delta, effects),
            Said::Call { name, provider_call_id, .. } => {
                self.close_part(effects);
                self.ids_given += 1;
                let id = CallId::numbered(&self.response_id, self.ids_given);
                effects.push(Effect::Emit(Event::ToolCallStart {
                    call_id: id.clone(),
                    provider_call_id,
                    tool_name: name.clone(),
                    arguments: None,
                    parent_call_id: None,
                    executor: Executor::Server,
                }));
                self.calls.push(ToldCall { id, name });
                true
            }
            Said::Arguments { call, delta } => {
                let told = self.calls.get(call).map(|it| it.id.clone());
                effects.extend(
                    told.map(|call_id| Effect::Emit(Event::ToolArgumentsDelta { call_id, delta })),
                );
                true
            }
            Said::Unreadable(raw) => {
                let source = "openai".to_owned();
                effects.push(Effect::Emit(Event::Unrecognized { source, raw, lines: 1 }));
                false
            }
        }
    }

    /// Ends the step's parts and calls; gives the calls that can be run.
    pub(super) fn finish_calls(
        &mut self,
        outcome: &Outcome,
        is_cut_off: bool,
        effects: &mut Vec<Effect>,
    ) -> Vec<ReadyCall> {
        self.close_part(effects);
        let calls = std::mem::take(&mut self.calls);
        let mut ready = Vec::new();
        let mut reasoning_details = outcome.reasoning_details.as_ref();
        for (ToldCall { id, name }, finished) in calls.into_iter().zip(&outcome.calls) {
            let incomplete = is_cut_off && !finished.is_complete;
            let arguments = finished.arguments.clone();
            effects.push(Effect::Emit(Event::ToolArgumentsDone {
                call_id: id.clone(),
                summary: arguments_summary(&arguments),
                arguments: arguments.clone(),
                incomplete,
                validation: Validation::NotRequired,
                provider_data: provider_data(finished, reasoning_details.take()),
            }));
            let call = ReadyCall { id, name, arguments };
            if incomplete {
                let why =
                    "The arguments broke off because the answer became too long; nothing ran.";
                refuse(&call, ErrorInfo::new(ErrorCode::InvalidArguments, why), effects);
            } else {
                ready.push(call);
            }
        }
        ready
    }

    pub(super) fn refuse_for_limit(&self, call: &ReadyCall, effects: &mut Vec<Effect>) {
        let why = "This run has called as many tools as it may; nothing ran.";
        refuse(call, ErrorInfo::new(ErrorCode::ToolIterationLimit, why), effects);
    }

    fn grow(&mut self, is_thinking: bool, delta: String, effects: &mut Vec<Effect>) -> bool {
        if self.open.as_ref().is_some_and(|it| it.is_thinking != is_thinking) {
            // Blanks between two parts belong to neither.
            if delta.trim().is_empty() {
                return false;
            }
            self.close_part(effects);
        }
        if self.open.is_none() {
            self.blanks.push_str(&delta);
            if delta.trim().is_empty() {
                return false;
            }
            self.begin_part(is_thinking, effects);
            let text = std::mem::take(&mut self.blanks);
            self.push(text.trim_start_matches(['\r', '\n']).to_owned(), effects);
        } else {
            self.push(delta, effects);
        }
        true
    }

    fn begin_part(&mut self, is_thinking: bool, effects: &mut Vec<Effect>) {
        self.ids_given += 1;
        let id = PartId::numbered(&self.response_id, self.ids_given);
        let (part_id, parent_call_id) = (id.clone(), None);
        effects.push(Effect::Emit(match is_thinking {
            true => Event::ThinkingStart { part_id, parent_call_id },
            false => Event::TextStart { part_id, parent_call_id },
        }));
        self.open = Some(OpenPart { id, is_thinking, text: String::new() });
    }

    fn push(&mut self, delta: String, effects: &mut Vec<Effect>) {
        let Some(part) = &mut self.open else { return };
        part.text.push_str(&delta);
        let (part_id, parent_call_id) = (part.id.clone(), None);
        effects.push(Effect::Emit(match part.is_thinking {
            true => Event::ThinkingDelta { part_id, parent_call_id, delta },
            false => Event::TextDelta { part_id, parent_call_id, delta },
        }));
    }

    fn close_part(&mut self, effects: &mut Vec<Effect>) {
        self.blanks.clear();
        let Some(OpenPart { id: part_id, is_thinking, text }) = self.open.take() else { return };
        let (parent_call_id, discarded) = (None, false);
        effects.push(Effect::Emit(match is_thinking {
            true => Event::ThinkingDone { part_id, parent_call_id, text, discarded },
            false => Event::TextDone { part_id, parent_call_id, text, phase: None, discarded },
        }));
    }
}

/// What the provider wants back: within the call, and within the message that makes it, with whose
/// first call it is kept.
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

/// A call that is not run has its result from us.
fn refuse(call: &ReadyCall, error: ErrorInfo, effects: &mut Vec<Effect>) {
    effects.push(Effect::Emit(Event::ToolResult {
        call_id: call.id.clone(),
        tool_name: call.name.clone(),
        ok: false,
        result: None,
        output: None,
        error: Some(error),
        summary: None,
        duration_ms: None,
        truncated: None,
    }));
}
