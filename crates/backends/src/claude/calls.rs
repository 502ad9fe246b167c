//! The calls of a run, by the ids that the model service gave them.
//!
//! The program reports neither when a call begins to run nor that it will ask about one. It asks soon after a
//! call's block is finished, while the rest of the message comes, so a call of a message that has ended, and
//! that was not asked about, counts as running. Its duration is counted from when its block was finished,
//! which is when the program starts it.

use std::collections::HashMap;

use serde::de::IgnoredAny;
use serde_json::Value;
use transcript::{CallId, ErrorCode, ErrorInfo, Event, Executor, Millis};

use super::outcome::Outcome;
use super::wire::TaskEnd;
use crate::emitter::Emitter;
use crate::program::Recent;
use crate::program::plain_name;
use crate::program::{MAX_OPEN, abandoned};

#[derive(Debug)]
pub(super) struct Calls {
    open: HashMap<String, Call>,
    started: usize,
    /// Tool calls that have ended, by the model service's ids: a sub-agent may write within a call
    /// that has its result.
    ended: Recent<CallId>,
}

/// Number of ended tool calls that are remembered. No line of Claude Code refers to older ones.
const ENDED: usize = 128;

impl Default for Calls {
    fn default() -> Self {
        Self { open: HashMap::new(), started: 0, ended: Recent::keeping(ENDED) }
    }
}

#[derive(Debug)]
struct Call {
    id: CallId,
    /// Number of the tool call within the run, from 1.
    number: usize,
    name: String,
    arguments: Arguments,
    /// Arguments of the tool call as Claude Code parsed them. `None` until they are known.
    input: Option<Value>,
    phase: Phase,
    /// Error with which the tool call will end, because a person refused it or nobody decided in
    /// time.
    refusal: Option<ErrorInfo>,
    /// Result that the model got for a tool call that continues in the background. `None` for any
    /// other call.
    launched: Option<Outcome>,
}

#[derive(Debug)]
enum Arguments {
    Coming(String),
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// The tool call neither runs nor waits for a decision. `since` is the time at which its
    /// arguments were complete, `None` before that and after a decision.
    Ready {
        since: Option<Millis>,
    },
    Asking,
    Running {
        since: Millis,
    },
}

impl Calls {
    pub(super) fn id(&self, provider_id: &str) -> Option<&CallId> {
        let open = self.open.get(provider_id).map(|it| &it.id);
        open.or_else(|| self.ended.get(provider_id))
    }

    /// Starts a tool call, unless one with this id is open. The model service may reuse an id after
    /// the call has ended.
    pub(super) fn start(
        &mut self,
        provider_id: &str,
        name: &str,
        parent: Option<&CallId>,
        out: &mut Emitter,
    ) {
        if self.open.contains_key(provider_id) {
            return;
        }
        let name = plain_name(name);
        let id = out.start_call(Some(provider_id.to_owned()), name, parent, Executor::Agent);
        self.started += 1;
        let call = Call {
            id,
            number: self.started,
            name: name.to_owned(),
            arguments: Arguments::Coming(String::new()),
            input: None,
            phase: Phase::Ready { since: None },
            refusal: None,
            launched: None,
        };
        self.open.insert(provider_id.to_owned(), call);
    }

    pub(super) fn grow_arguments(&mut self, provider_id: &str, delta: String, out: &mut Emitter) {
        let Some(call) = self.open.get_mut(provider_id) else { return };
        if let Arguments::Coming(text) = &mut call.arguments
            && !delta.is_empty()
        {
            text.push_str(&delta);
            out.arguments_delta(&call.id, delta);
        }
    }

    /// Ends the arguments of a tool call. `input` is the value that Claude Code parsed; the model's
    /// own text is kept if it has the same value.
    pub(super) fn finish_arguments(&mut self, provider_id: &str, input: &Value, out: &mut Emitter) {
        let Some(call) = self.open.get_mut(provider_id) else { return };
        let Arguments::Coming(text) = &mut call.arguments else { return };
        let text = std::mem::take(text);
        call.input = Some(input.clone());
        let says_the_same = serde_json::from_str::<Value>(&text).is_ok_and(|it| it == *input);
        let arguments = match input {
            _ if says_the_same => text,
            Value::Null => "{}".to_owned(),
            input => input.to_string(),
        };
        call.end_arguments(arguments, false, out);
    }

    /// Handles the end of the model message that makes the tool call. `is_whole`: the service has
    /// sent the whole call.
    pub(super) fn message_ended(&mut self, provider_id: &str, is_whole: bool, out: &mut Emitter) {
        let Some(call) = self.open.get_mut(provider_id) else { return };
        match &mut call.arguments {
            Arguments::Done => call.run(out),
            Arguments::Coming(text) if is_whole && is_whole_json(text) => {
                let text = Some(std::mem::take(text)).filter(|it| !it.is_empty());
                call.end_arguments(text.unwrap_or_else(|| "{}".to_owned()), false, out);
                call.run(out);
            }
            Arguments::Coming(text) => {
                let text = std::mem::take(text);
                call.end_arguments(text, true, out);
                let why = "The message broke off before the call was complete; nothing ran.";
                let error = ErrorInfo::new(ErrorCode::ToolInterrupted, why);
                self.end(provider_id, Outcome::failed(error), out);
            }
        }
    }

    /// Marks the tool call as running, because Claude Code has reported that it runs.
    pub(super) fn run(&mut self, provider_id: &str, out: &mut Emitter) {
        if let Some(call) = self.open.get_mut(provider_id) {
            call.run(out);
        }
    }

    /// Finds the newest open tool call that an approval request without an id may be about. Returns
    /// the model service's id of the call.
    pub(super) fn unasked(&self, name: &str, input: &Value) -> Option<String> {
        let may_be = |call: &&(&String, &Call)| {
            let (_, call) = call;
            let is_it = call.name == plain_name(name) && call.phase != Phase::Asking;
            is_it && call.input.as_ref().is_none_or(|it| it == input)
        };
        let calls = self.open.iter().filter(|(_, it)| it.refusal.is_none());
        calls.filter(|it| may_be(&it)).max_by_key(|(_, it)| it.number).map(|(id, _)| id.clone())
    }

    /// Marks the tool call as waiting for a decision.
    pub(super) fn ask(&mut self, provider_id: &str) {
        if let Some(call) = self.open.get_mut(provider_id) {
            call.phase = Phase::Asking;
        }
    }

    /// Marks the tool call as running after it was allowed.
    pub(super) fn allow(&mut self, provider_id: &str, out: &mut Emitter) {
        if let Some(call) = self.open.get_mut(provider_id) {
            call.phase = Phase::Ready { since: None };
            call.run(out);
        }
    }

    pub(super) fn refuse(&mut self, provider_id: &str, why: ErrorInfo) {
        if let Some(call) = self.open.get_mut(provider_id) {
            call.refusal = Some(why);
        }
    }

    pub(super) fn refusal(&self, provider_id: &str) -> Option<&ErrorInfo> {
        self.open.get(provider_id)?.refusal.as_ref()
    }

    pub(super) fn name(&self, provider_id: &str) -> Option<&str> {
        Some(&self.open.get(provider_id)?.name)
    }

    /// Notes that the tool call continues in the background, although the model has a result for
    /// it.
    pub(super) fn launch(&mut self, provider_id: &str, outcome: Outcome, out: &mut Emitter) {
        if let Some(call) = self.open.get_mut(provider_id) {
            call.finish_late_arguments(out);
            call.run(out);
            call.launched = Some(outcome);
        }
    }

    /// Returns the tool calls that continue in the background, by the model service's ids.
    pub(super) fn launched(&self) -> Vec<String> {
        let launched = self.open.iter().filter(|(_, it)| it.launched.is_some());
        let mut ids: Vec<String> = launched.map(|(id, _)| id.clone()).collect();
        ids.sort();
        ids
    }

    /// Ends a tool call that continued in the background, as `task` reports. Returns false for any
    /// other call.
    pub(super) fn end_launched(
        &mut self,
        provider_id: &str,
        task: Option<&TaskEnd>,
        out: &mut Emitter,
    ) -> bool {
        let launched = self.open.get_mut(provider_id).and_then(|it| it.launched.take());
        let Some(outcome) = launched else { return false };
        let outcome = match task {
            Some(task) => outcome.ended(task),
            None => outcome,
        };
        self.end(provider_id, outcome, out);
        true
    }

    /// Returns the model service's id of the oldest open tool call, if more than [`MAX_OPEN`] are
    /// open.
    pub(super) fn oldest_excess(&self) -> Option<String> {
        let oldest = self.open.iter().filter(|_| self.open.len() > MAX_OPEN);
        oldest.min_by_key(|(_, it)| it.number).map(|(id, _)| id.clone())
    }

    /// Ends a tool call that was abandoned. Later lines about it are ignored.
    pub(super) fn abandon(&mut self, provider_id: &str, out: &mut Emitter) {
        self.end(provider_id, Outcome::failed(abandoned()), out);
        self.ended.forget(provider_id);
    }

    pub(super) fn end(&mut self, provider_id: &str, outcome: Outcome, out: &mut Emitter) {
        let Some(mut call) = self.open.remove(provider_id) else { return };
        self.ended.put(provider_id, call.id.clone());
        self.ended.take_excess();
        call.finish_late_arguments(out);
        if outcome.has_run {
            call.run(out);
        }
        let Call { id: call_id, name: tool_name, phase, .. } = call;
        for (stream, delta) in outcome.output {
            out.output(&call_id, stream, 0, delta);
        }
        out.emit(Event::ToolResult {
            call_id,
            tool_name,
            ok: outcome.error.is_none(),
            result: outcome.result,
            output: None,
            error: outcome.error,
            summary: None,
            duration_ms: match phase {
                Phase::Running { since } => Some(out.now().since(since)),
                Phase::Ready { .. } | Phase::Asking => None,
            },
            truncated: outcome.truncated,
        });
    }
}

impl Call {
    fn run(&mut self, out: &mut Emitter) {
        if let (Phase::Ready { since }, Arguments::Done) = (self.phase, &self.arguments) {
            self.phase = Phase::Running { since: since.unwrap_or(out.now()) };
            out.running(&self.id);
        }
    }

    /// Ends the arguments of a tool call with the text so far, because its result has arrived.
    fn finish_late_arguments(&mut self, out: &mut Emitter) {
        if let Arguments::Coming(text) = &mut self.arguments {
            let text = std::mem::take(text);
            self.end_arguments(text, false, out);
        }
    }

    fn end_arguments(&mut self, arguments: String, incomplete: bool, out: &mut Emitter) {
        self.arguments = Arguments::Done;
        self.phase = Phase::Ready { since: Some(out.now()) };
        out.finish_arguments(&self.id, arguments, incomplete, None);
    }
}

/// Returns whether the arguments of a tool call are complete JSON. A call without arguments has an
/// empty text.
fn is_whole_json(text: &str) -> bool {
    text.is_empty() || serde_json::from_str::<IgnoredAny>(text).is_ok()
}
