//! A run as the lines of a v4 data stream (`x-vercel-ai-data-stream: v1`): a code, a colon, JSON.
//!
//! The client has one text and one thinking at a time, which end with their step. So before another
//! begins within a step the step is ended, and texts that stream in parallel are sent one after the other.
//! Nothing can be taken back. The client appends every annotation; the last one of each id counts.

use serde_json::{Value, json};
use transcript::{Call, Executor, PartId, ResponseId, RunMessage, RunStatus, Step, Usage};

use super::{foreign_part, message_annotation, result, tool_annotation};
use crate::call;
use crate::follow::{Follow, RunChange};
use crate::known::Known;
use crate::run_stream::{Format, RunStream};
use crate::sequencer::{TextSequencer, Words};
use crate::ui::{self, known_reason};

/// Name of the response header that marks a v4 data stream.
pub const MARKER_HEADER: &str = "x-vercel-ai-data-stream";

/// A run as lines of a v4 data stream, each with its newline.
pub type Stream = RunStream<LineFormat>;

/// State of the v4 data stream of a run.
#[derive(Debug)]
pub struct LineFormat {
    run: ResponseId,
    has_steps: bool,
    step_is_open: bool,
    step_has_calls: bool,
    texts: Kind,
    thinkings: Kind,
    is_over: bool,
}

/// The texts or the thinking blocks in a v4 data stream.
#[derive(Debug)]
struct Kind {
    code: char,
    sequencer: TextSequencer,
    /// Id of the part whose text is sent in the client's current step; `None` if there is none.
    last: Option<PartId>,
}

impl Stream {
    /// Creates the stream of a run, for the first response.
    pub fn new(run: ResponseId) -> Self {
        let kind = |code| Kind { code, sequencer: TextSequencer::default(), last: None };
        let format = LineFormat {
            run: run.clone(),
            has_steps: false,
            step_is_open: false,
            step_has_calls: false,
            texts: kind('0'),
            thinkings: kind('g'),
            is_over: false,
        };
        Self::of(run, format)
    }
}

impl Format for LineFormat {
    type Item = String;

    const MEDIA_TYPE: &'static str = "text/plain; charset=utf-8";
    const MARKER: Option<(&'static str, &'static str)> = Some((MARKER_HEADER, "v1"));
    const KEEP_ALIVE: &'static str = "\n";

    fn failure(why: &str) -> String {
        line('3', &json!(why))
    }

    fn write(lines: &[String], _is_last: bool) -> String {
        lines.concat()
    }

    fn add(&mut self, change: &RunChange<'_>, lines: &mut Vec<String>) {
        if self.is_over {
            return;
        }
        match change {
            RunChange::Begun(_) => (),
            RunChange::StepBegun { .. } => self.start_step(lines),
            RunChange::StepEnded { step, .. } => self.finish_step(Some(step), lines),
            RunChange::TextBegun(text) => self.texts.sequencer.begin(&text.id),
            RunChange::TextGrown(text, delta) => {
                let words = self.texts.sequencer.grow(&text.id, delta);
                self.encode_words(|it| &mut it.texts, words, lines);
            }
            RunChange::TextEnded(text) => {
                let words = self.texts.sequencer.end(&text.id);
                self.encode_words(|it| &mut it.texts, words, lines);
            }
            RunChange::ThinkingBegun(it) => self.thinkings.sequencer.begin(&it.id),
            RunChange::ThinkingGrown(it, delta) => {
                let words = self.thinkings.sequencer.grow(&it.id, delta);
                self.encode_words(|it| &mut it.thinkings, words, lines);
            }
            RunChange::ThinkingEnded(it) => {
                let words = self.thinkings.sequencer.end(&it.id);
                self.encode_words(|it| &mut it.thinkings, words, lines);
            }
            RunChange::CallBegun(call) => {
                self.ensure_step(lines);
                self.step_has_calls = true;
                let call = json!({ "toolCallId": call.id, "toolName": call.label() });
                lines.push(line('b', &call));
            }
            RunChange::ArgumentsGrown(call, delta) => {
                lines.push(line('c', &json!({ "toolCallId": call.id, "argsTextDelta": delta })));
            }
            RunChange::ArgumentsDone(call) => {
                let name = call.label();
                let args = call::input_object(call);
                let written = json!({ "toolCallId": call.id, "toolName": name, "args": args });
                lines.extend([line('9', &written), line('8', &json!([tool_annotation(call)]))]);
            }
            RunChange::ApprovalRequested(call) => {
                lines.push(line('8', &json!([tool_annotation(call)])))
            }
            RunChange::ApprovalResolved(call) => {
                if call::accepted(call).is_some_and(|it| it.arguments.is_some()) {
                    let (name, args) = (call.label(), call::input_object(call));
                    let written = json!({ "toolCallId": call.id, "toolName": name, "args": args });
                    lines.push(line('9', &written));
                }
                lines.push(line('8', &json!([tool_annotation(call)])));
            }
            RunChange::CallEnded(call) => {
                let ended = json!({ "toolCallId": call.id, "result": result(call) });
                lines.extend([line('a', &ended), line('8', &json!([tool_annotation(call)]))]);
            }
            RunChange::Aside(idx, kind) => {
                self.ensure_step(lines);
                lines.push(match foreign_part(kind) {
                    Some(part) if part["type"] == "source" => line('h', &part["source"]),
                    Some(file) => line('k', &without_type(file)),
                    None => line('8', &json!([ui::data(&self.run, *idx, kind)])),
                });
            }
            RunChange::Ended(answer) => self.end(answer, lines),
        }
    }

    /// Ends the response, because the client has tool calls to run. The client has no approvals, so
    /// the response stays open while the run waits for one.
    fn pause(&mut self, calls: &[&Call], follow: &Follow, lines: &mut Vec<String>) {
        if self.is_over || calls.iter().any(|it| it.waits_for_approval()) {
            return;
        }
        self.is_over = true;
        self.finish_step(follow.finished_step(), lines);
        lines.push(line('d', &ending("tool-calls", None)));
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    /// Updates the state with a change that the client already has. It has the results of its own
    /// tool calls, but not their annotations, so these are added.
    fn skip(&mut self, change: &RunChange<'_>, lines: &mut Vec<String>) {
        self.add(change, &mut Vec::new());
        if let RunChange::CallEnded(call) = change
            && call.executor == Executor::Client
        {
            lines.push(line('8', &json!([tool_annotation(call)])));
        }
    }

    fn begin_next_response(&mut self, _: &Follow, _: &Known) {
        self.step_is_open = false;
        self.texts.last = None;
        self.thinkings.last = None;
    }
}

impl LineFormat {
    fn encode_words(
        &mut self,
        kind: fn(&mut Self) -> &mut Kind,
        words: impl IntoIterator<Item = Words>,
        lines: &mut Vec<String>,
    ) {
        for (id, text) in words {
            if kind(self).last.as_ref().is_some_and(|last| *last != id) {
                self.finish_step(None, lines);
            }
            self.ensure_step(lines);
            let kind = kind(self);
            kind.last = Some(id);
            lines.push(line(kind.code, &json!(text)));
        }
    }

    fn ensure_step(&mut self, lines: &mut Vec<String>) {
        if !self.step_is_open {
            self.start_step(lines);
        }
    }

    fn start_step(&mut self, lines: &mut Vec<String>) {
        (self.has_steps, self.step_is_open, self.step_has_calls) = (true, true, false);
        lines.push(line('f', &json!({ "messageId": self.run })));
    }

    /// Ends the step, if one is open. A step that only the client's message needs is `None` and has
    /// no usage.
    fn finish_step(&mut self, step: Option<&Step>, lines: &mut Vec<String>) {
        if !std::mem::take(&mut self.step_is_open) {
            return;
        }
        (self.texts.last, self.thinkings.last) = (None, None);
        let finished = step.and_then(|it| it.finished.as_ref());
        let reason = finished.map_or("unknown", |it| known_reason(&it.reason));
        let usage = finished.and_then(|it| it.usage);
        let mut end = ending(reason, usage);
        end["isContinued"] = json!(false);
        lines.push(line('e', &end));
    }

    fn end(&mut self, answer: &RunMessage, lines: &mut Vec<String>) {
        self.is_over = true;
        self.finish_step(None, lines);
        // The client learns the message's id from a step. And if all calls of the last step have ended, it may
        // take them for its own and send their results.
        if !self.has_steps || self.step_has_calls {
            self.start_step(lines);
            self.finish_step(None, lines);
        }
        lines.extend(message_annotation(answer).map(|it| line('8', &json!([it]))));
        let finish = answer.finish.as_ref();
        match finish.map(|it| it.status) {
            Some(RunStatus::Failed) => {
                let error = finish.and_then(|it| it.error.as_ref());
                let text = error.map_or("The run failed.", |it| it.message.as_str());
                lines.push(line('3', &json!(text)));
            }
            Some(RunStatus::Cancelled) => {
                lines.push(line('d', &ending("unknown", answer.usage())));
            }
            Some(RunStatus::Completed) | None => {
                let reason = ui::finish_reason(answer).unwrap_or("unknown");
                lines.push(line('d', &ending(reason, answer.usage())));
            }
        }
    }
}

fn ending(reason: &str, usage: Option<Usage>) -> Value {
    let mut ending = json!({ "finishReason": reason });
    if let Some(usage) = usage {
        ending["usage"] =
            json!({ "promptTokens": usage.input_tokens, "completionTokens": usage.output_tokens });
    }
    ending
}

fn without_type(mut part: Value) -> Value {
    if let Some(fields) = part.as_object_mut() {
        fields.remove("type");
    }
    part
}

fn line(code: char, value: &Value) -> String {
    format!("{code}:{value}\n")
}
