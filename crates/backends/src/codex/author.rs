//! The author of messages, Codex itself or one of its sub-agents: its steps, texts, thinking and calls become
//! events.
//!
//! An item opens when it has something to show, and closes once. Codex does not report when it calls the
//! model; it reports the usage when a model call is over.

use std::collections::HashSet;

use serde_json::{Value, json};
use transcript::{CallId, ErrorInfo, Event, Executor, Millis, OutputStream, Phase, Usage};

use super::output::Output;
use crate::emitter::{Emitter, Part};
use crate::openai::FinishReason;
use crate::program::Recent;
use crate::program::plain_name;
use crate::program::{MAX_OPEN, abandoned};

#[derive(Debug)]
pub(super) struct Author {
    pub(super) workspace: String,
    /// Id of the tool call that the sub-agent works for. `None` for Codex itself.
    parent: Option<CallId>,
    /// Whether this author's thread waits for a decision. A tool call that begins meanwhile does
    /// not run yet.
    pub(super) awaits_decision: bool,
    steps: u32,
    step: Option<Step>,
    /// Texts and thinking blocks that are open, in the order in which they began.
    words: Vec<OpenText>,
    calls: Vec<Call>,
    /// Items of the tool calls that stay open until their sub-agents end, even if Codex ends them
    /// before.
    held: HashSet<String>,
    /// Codex's ids of items that have ended and not begun again. Repeated reports about them are
    /// ignored.
    ended: Recent,
    usage: Option<Usage>,
    /// Kind of report that announced the last compaction: `item` or `notification`. `None` before a
    /// compaction, or if both kinds have reported it.
    pub(super) compaction_reported_by: Option<&'static str>,
}

/// The step that is open, which is one model call of Codex.
#[derive(Debug, Default)]
struct Step {
    has_calls: bool,
    has_results: bool,
}

/// A text or a thinking block of Codex that is not finished.
#[derive(Debug)]
struct OpenText {
    item: String,
    phase: Option<Phase>,
    /// Part that shows the text. `None` before its first character.
    part: Option<Part>,
    section: Section,
}

impl OpenText {
    fn close(self, discarded: bool, out: &mut Emitter) {
        if let Some(mut part) = self.part {
            part.end(self.phase, discarded, out);
        }
    }
}

/// Name and index of the section of a text or thinking item that a delta belongs to. A blank line
/// divides sections.
pub(super) type Section = (&'static str, u64);

/// A tool call of Codex that has no result yet.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) item: String,
    pub(super) id: CallId,
    pub(super) name: String,
    /// Raw JSON of the tool call's arguments. `None` until Codex has sent them.
    pub(super) arguments: Option<String>,
    began_at: Millis,
    output: Output,
    /// Time at which the tool call began to run. `None` if it may not run yet.
    runs_since: Option<Millis>,
    /// Whether a person was asked about the tool call.
    pub(super) was_asked: bool,
    /// Error with which Callboard refused or stopped the tool call. `None` if it did not.
    pub(super) refusal: Option<ErrorInfo>,
    /// Outcome that Codex reported for a tool call that is held open for its sub-agent.
    outcome: Option<Outcome>,
}

impl Call {
    /// Marks the tool call as waiting for a person's decision.
    pub(super) fn ask(&mut self) {
        (self.was_asked, self.runs_since) = (true, None);
    }

    pub(super) fn runs(&self) -> bool {
        self.runs_since.is_some()
    }
}

/// The outcome of a tool call.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) ok: bool,
    pub(super) result: Option<Value>,
    pub(super) error: Option<ErrorInfo>,
    pub(super) duration_ms: Option<u64>,
}

impl Author {
    pub(super) fn new(workspace: &str) -> Self {
        Self {
            workspace: workspace.to_owned(),
            parent: None,
            awaits_decision: false,
            steps: 0,
            step: None,
            words: Vec::new(),
            calls: Vec::new(),
            held: HashSet::new(),
            ended: Recent::default(),
            usage: None,
            compaction_reported_by: None,
        }
    }

    pub(super) fn within(parent: CallId, workspace: &str) -> Self {
        Self { parent: Some(parent), ..Self::new(workspace) }
    }

    pub(super) fn has_ended(&self, item: &str) -> bool {
        self.ended.contains(item)
    }

    /// Forgets that an item has ended, because it begins again: the model service may reuse its
    /// ids.
    pub(super) fn begin_item(&mut self, item: &str) {
        self.ended.forget(item);
    }

    /// Marks an item as ended. Returns false if it had ended before.
    pub(super) fn end_item(&mut self, item: &str) -> bool {
        self.ended.insert(item)
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    // Texts

    /// Notes that Codex has announced a text. The part begins when the first character arrives.
    pub(super) fn start_text(&mut self, item: &str, phase: Option<Phase>) {
        let words = self.text(item);
        words.phase = words.phase.or(phase);
    }

    pub(super) fn append_text(
        &mut self,
        item: &str,
        is_thinking: bool,
        (section, delta): (Section, &str),
        out: &mut Emitter,
    ) {
        if delta.is_empty() || self.has_ended(item) {
            return;
        }
        self.open_text(item, is_thinking, out);
        let words = self.text(item);
        let Some(part) = &mut words.part else { return };
        let is_next_section = words.section != section && !part.text.is_empty();
        words.section = section;
        let delta = if is_next_section { format!("\n\n{delta}") } else { delta.to_owned() };
        part.grow(delta, out);
    }

    /// Ends a text or a thinking block. `text` is its final form; `None` keeps the text so far.
    pub(super) fn finish_text(
        &mut self,
        item: &str,
        is_thinking: bool,
        phase: Option<Phase>,
        text: Option<String>,
        out: &mut Emitter,
    ) {
        if self.has_ended(item) {
            return;
        }
        self.start_text(item, phase);
        let text = text.filter(|it| !it.is_empty());
        if text.is_some() {
            self.open_text(item, is_thinking, out);
        }
        self.ended.insert(item);
        let Some(idx) = self.words.iter().position(|it| it.item == item) else { return };
        let mut words = self.words.remove(idx);
        if let (Some(part), Some(text)) = (&mut words.part, text) {
            part.text = text;
        }
        words.close(false, out);
    }

    /// Closes all unfinished texts as discarded: the model service starts again, and sends them
    /// under other ids.
    pub(super) fn discard_texts(&mut self, out: &mut Emitter) {
        for words in std::mem::take(&mut self.words) {
            words.close(true, out);
        }
    }

    fn text(&mut self, item: &str) -> &mut OpenText {
        let known = self.words.iter().position(|it| it.item == item);
        let idx = known.unwrap_or(self.words.len());
        if known.is_none() {
            self.words.push(OpenText {
                item: item.to_owned(),
                phase: None,
                part: None,
                section: ("", 0),
            });
        }
        &mut self.words[idx]
    }

    fn open_text(&mut self, item: &str, is_thinking: bool, out: &mut Emitter) {
        if self.text(item).part.is_some() {
            return;
        }
        self.begin_output(true, out);
        let part = out.start_part(is_thinking, self.parent.as_ref());
        self.text(item).part = Some(part);
    }

    // Calls

    /// Returns the open tool call of an item, and starts it if necessary. `None` if the item has
    /// ended.
    pub(super) fn call(&mut self, item: &str, name: &str, out: &mut Emitter) -> Option<&mut Call> {
        if self.has_ended(item) {
            return None;
        }
        if self.open_call(item).is_none() {
            self.begin_output(false, out);
            let (provider_id, parent) = (Some(item.to_owned()), self.parent.as_ref());
            let id = out.start_call(provider_id, plain_name(name), parent, Executor::Agent);
            self.calls.push(Call {
                item: item.to_owned(),
                id,
                name: name.to_owned(),
                arguments: None,
                began_at: out.now(),
                output: Output::default(),
                runs_since: None,
                was_asked: false,
                refusal: None,
                outcome: None,
            });
        }
        self.open_call(item)
    }

    pub(super) fn open_call(&mut self, item: &str) -> Option<&mut Call> {
        self.calls.iter_mut().find(|it| it.item == item)
    }

    pub(super) fn open_calls(&mut self) -> &mut [Call] {
        &mut self.calls
    }

    pub(super) fn set_arguments(&mut self, item: &str, arguments: &Value, out: &mut Emitter) {
        let Some(call) = self.open_call(item).filter(|it| it.arguments.is_none()) else { return };
        let arguments = arguments.to_string();
        call.arguments = Some(arguments.clone());
        out.finish_arguments(&call.id, arguments, false, None);
    }

    /// Marks the tool call as running: from now if a person was asked, else from its announcement.
    pub(super) fn running(&mut self, item: &str, out: &mut Emitter) {
        let Some(call) = self.open_call(item).filter(|it| it.runs_since.is_none()) else { return };
        call.runs_since = Some(if call.was_asked { out.now() } else { call.began_at });
        out.running(&call.id);
    }

    pub(super) fn output(&mut self, item: &str, delta: &str, out: &mut Emitter) {
        let Some(call) = self.open_call(item).filter(|_| !delta.is_empty()) else { return };
        let offset = call.output.bytes();
        call.output.push(delta);
        out.output(&call.id, OutputStream::Stdout, offset, delta.to_owned());
    }

    /// Replaces the output of a tool call by the whole output, from the first difference on.
    /// Streamed output may have gaps.
    pub(super) fn set_output(&mut self, item: &str, whole: &str, out: &mut Emitter) {
        let Some(call) = self.open_call(item) else { return };
        let Some(same) = call.output.replace(whole) else { return };
        out.output(&call.id, OutputStream::Stdout, same, whole[same..].to_owned());
    }

    pub(super) fn finish_call(&mut self, item: &str, outcome: Outcome, out: &mut Emitter) {
        let Some(idx) = self.calls.iter().position(|it| it.item == item) else { return };
        if self.held.contains(item) {
            self.calls[idx].outcome = Some(outcome);
            return;
        }
        let call = self.calls.remove(idx);
        self.ended.insert(&call.item);
        if let Some(step) = &mut self.step {
            step.has_results = true;
        }
        let Outcome { ok, result, error, duration_ms } = outcome;
        // Codex reports 0 also for longer durations.
        let duration_ms = duration_ms.filter(|it| *it > 0);
        let duration_ms = duration_ms.or_else(|| Some(out.now().since(call.runs_since?)));
        out.emit(Event::ToolResult {
            call_id: call.id,
            tool_name: plain_name(&call.name).to_owned(),
            ok,
            result,
            output: None,
            error: if ok { None } else { call.refusal.or(error) },
            summary: None,
            duration_ms,
            truncated: None,
        });
    }

    /// Holds the tool call of an item open until [`Author::release`], even if Codex ends it before.
    pub(super) fn hold(&mut self, item: &str) {
        self.held.insert(item.to_owned());
    }

    /// Stops holding a tool call open, and ends it if Codex has ended it. `amend` corrects the
    /// outcome, which Codex reported when the sub-agent started.
    pub(super) fn release(
        &mut self,
        item: &str,
        amend: impl FnOnce(&mut Outcome),
        out: &mut Emitter,
    ) {
        self.held.remove(item);
        let outcome = self.open_call(item).and_then(|it| it.outcome.take());
        if let Some(mut outcome) = outcome {
            outcome.duration_ms = None;
            amend(&mut outcome);
            self.finish_call(item, outcome, out);
        }
    }

    pub(super) fn release_all(&mut self, out: &mut Emitter) {
        let open: Vec<String> = self.calls.iter().map(|it| it.item.clone()).collect();
        for item in open {
            self.release(&item, |_| (), out);
        }
    }

    /// Returns the item of the oldest open tool call, if more than [`MAX_OPEN`] are open.
    pub(super) fn oldest_excess(&self) -> Option<String> {
        self.calls.first().filter(|_| self.calls.len() > MAX_OPEN).map(|it| it.item.clone())
    }

    /// Ends a tool call that was abandoned. Later reports about it are ignored.
    pub(super) fn abandon(&mut self, item: &str, out: &mut Emitter) {
        self.held.remove(item);
        self.set_arguments(item, &json!({}), out);
        let outcome =
            Outcome { ok: false, result: None, error: Some(abandoned()), duration_ms: None };
        self.finish_call(item, outcome, out);
    }

    /// Abandons the oldest texts and tool calls, if too many are open.
    pub(super) fn abandon_oldest(&mut self, out: &mut Emitter) {
        while let Some(item) = self.oldest_excess() {
            self.abandon(&item, out);
        }
        self.close_excess_texts(out);
    }

    /// Closes the oldest texts, if more than [`MAX_OPEN`] are open.
    pub(super) fn close_excess_texts(&mut self, out: &mut Emitter) {
        while self.words.len() > MAX_OPEN {
            let words = self.words.remove(0);
            words.close(false, out);
        }
    }

    // Steps

    /// Adds the usage of a finished model call, and ends its step. Its tool calls have run by then.
    pub(super) fn model_call_ended(&mut self, usage: Option<Usage>, out: &mut Emitter) {
        self.usage = match (self.usage, usage) {
            (Some(before), Some(usage)) => Some(before.plus(usage)),
            (before, usage) => usage.or(before),
        };
        self.finish_step(usage, out);
    }

    pub(super) fn finish_step(&mut self, usage: Option<Usage>, out: &mut Emitter) {
        let Some(step) = self.step.take() else { return };
        let finish_reason =
            if step.has_calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        let (index, reason) = (self.steps - 1, finish_reason.as_str());
        out.finish_step(index, reason, (usage, None), self.parent.as_ref());
    }

    fn begin_output(&mut self, is_words: bool, out: &mut Emitter) {
        // If Codex does not report usage, a text after a result begins the next step.
        if is_words && self.step.as_ref().is_some_and(|it| it.has_results) {
            self.finish_step(None, out);
        }
        if self.step.is_none() {
            self.step = Some(Step::default());
            out.start_step(self.steps, self.parent.as_ref());
            self.steps += 1;
        }
        if let Some(step) = &mut self.step {
            step.has_calls |= !is_words;
        }
    }
}
