//! A run as `chat.completion.chunk`s, for clients that take Callboard for a model.
//!
//! Such a client runs every call that it receives, so it only receives those that it has to run. The others can
//! be shown as part of the thinking. Texts are one content, separated by blank lines. Texts that stream in
//! parallel are sent one after the other. Nothing can be taken back: a text that its provider discarded stays.
//!
//! A response ends with its run, or where the client has calls to run. The rest of the run is a response of its
//! own.

mod whole;

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};
use transcript::{
    Call, CallId, Event, Executor, Part, PartId, PartKind, Record, ResponseId, RunMessage,
    RunStatus, Usage,
};

use crate::call;
use crate::follow::{Follow, RunChange};
use crate::known::Known;
use crate::run_stream::{Format, RunStream, write_events};
use crate::sequencer::{TextSequencer, Words};
use crate::ui::finish_reason;

/// How the response to a chat completion request shows tool calls that the client does not run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OtherCalls {
    /// The reasoning text contains a description of these tool calls and their results.
    #[default]
    Reasoning,
    /// The response does not contain these tool calls.
    Hidden,
}

/// Options of a chat completion request that affect the form of the response.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Model name from the request, which the response repeats.
    pub model: String,
    /// Whether the last chunk of the response contains the token usage.
    pub include_usage: bool,
    /// How the response shows tool calls that the client does not run.
    pub other_calls: OtherCalls,
}

/// A run as `chat.completion.chunk`s. Their stream ends with `[DONE]`.
pub type Chunks = RunStream<ChunkFormat>;

/// State of the chat completion responses to a run.
#[derive(Debug)]
pub struct ChunkFormat {
    run: ResponseId,
    options: Options,
    created: i64,
    response: Response,
    /// Content of earlier responses to the same run.
    before: Before,
    /// Token usage of the run at the time when the client had run its tool calls.
    earlier_usage: Usage,
    content: Joined,
    reasoning: Joined,
    /// Tool calls that the client runs, with their index in the response and whether any of their
    /// arguments were sent.
    calls: HashMap<CallId, (usize, bool)>,
    /// Ids of other tool calls whose approval request was mentioned in the reasoning.
    asked: Vec<CallId>,
}

/// A whole response to a chat completion request that does not stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Completion {
    /// The `chat.completion` object.
    Answer(Value),
    /// The error object that replaces the answer of a failed run.
    Failed(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Response {
    NotStarted,
    Open,
    Over,
}

#[derive(Debug, Default)]
struct Before {
    /// Number of responses, each of which ended with tool calls that the client had to run.
    n_responses: usize,
    n_parts: usize,
    usage: Usage,
}

/// A string of the response, `content` or `reasoning_content`, to which several parts are appended
/// in turn.
#[derive(Debug, Default)]
struct Joined {
    sequencer: TextSequencer,
    last: Option<PartId>,
}

impl Chunks {
    /// Creates the stream of a run, for the first response to a client with these options.
    pub fn new(run: ResponseId, options: Options) -> Self {
        let format = ChunkFormat {
            run: run.clone(),
            options,
            created: 0,
            response: Response::NotStarted,
            before: Before::default(),
            earlier_usage: Usage::default(),
            content: Joined::default(),
            reasoning: Joined::default(),
            calls: HashMap::new(),
            asked: Vec::new(),
        };
        Self::of(run, format)
    }

    /// Returns the whole response after it has ended, for a client that does not stream. `None` if
    /// the run has not started.
    pub fn completion(&self) -> Option<Completion> {
        self.follow.answer().map(|answer| self.format.completion(answer))
    }
}

impl Format for ChunkFormat {
    type Item = Value;

    fn failure(why: &str) -> String {
        write_events(&[failure(why, None)], true)
    }

    fn write(chunks: &[Value], is_last: bool) -> String {
        write_events(chunks, is_last)
    }

    fn add(&mut self, change: &RunChange<'_>, chunks: &mut Vec<Value>) {
        if self.response == Response::Over {
            return;
        }
        match change {
            RunChange::Begun(answer) => {
                self.created = answer.started_at.0 / 1000;
                self.open(chunks);
            }
            RunChange::TextBegun(text) => self.content.sequencer.begin(&text.id),
            RunChange::TextGrown(text, delta) => {
                let words = self.content.sequencer.grow(&text.id, delta);
                self.encode_content(words, chunks);
            }
            RunChange::TextEnded(text) => {
                let words = self.content.sequencer.end(&text.id);
                self.encode_content(words, chunks);
            }
            RunChange::ThinkingBegun(it) => self.reasoning.sequencer.begin(&it.id),
            RunChange::ThinkingGrown(it, delta) => {
                let words = self.reasoning.sequencer.grow(&it.id, delta);
                self.encode_reasoning(words, chunks);
            }
            RunChange::ThinkingEnded(it) => {
                let words = self.reasoning.sequencer.end(&it.id);
                self.encode_reasoning(words, chunks);
            }
            RunChange::CallBegun(call)
            | RunChange::ArgumentsGrown(call, _)
            | RunChange::ArgumentsDone(call)
            | RunChange::ApprovalRequested(call)
            | RunChange::ApprovalResolved(call)
            | RunChange::CallEnded(call) => match call.executor {
                Executor::Client => self.encode_client_call(call, change, chunks),
                Executor::Server | Executor::Agent => self.encode_other_call(call, change, chunks),
            },
            RunChange::Ended(answer) => self.end_run(answer, chunks),
            RunChange::StepBegun { .. } | RunChange::StepEnded { .. } | RunChange::Aside(..) => (),
        }
    }

    /// Ends the response if the run waits only for tool calls that the client runs. Their step is
    /// over by then, so its usage is known.
    fn pause(&mut self, calls: &[&Call], follow: &Follow, chunks: &mut Vec<Value>) {
        if let Some(answer) = follow.answer()
            && calls.iter().all(|it| it.waits_for_client())
        {
            self.end("tool_calls", answer, chunks);
        }
    }

    fn is_over(&self) -> bool {
        self.response == Response::Over
    }

    /// Remembers the usage at the time of a tool result from the client, because earlier responses
    /// contain everything until then.
    fn note_earlier(&mut self, record: &Record, follow: &Follow, known: &Known) {
        if matches!(&record.event, Event::ToolResult { call_id, .. } if known.has_run(call_id)) {
            self.earlier_usage = follow.answer().and_then(RunMessage::usage).unwrap_or_default();
        }
    }

    fn begin_next_response(&mut self, follow: &Follow, known: &Known) {
        let before = |answer| Before::new(answer, known, self.earlier_usage);
        self.before = follow.answer().map(before).unwrap_or_default();
        self.response = Response::NotStarted;
        self.content = Joined::default();
        self.reasoning = Joined::default();
        self.calls.clear();
    }
}

impl Before {
    fn new(answer: &RunMessage, known: &Known, usage: Usage) -> Self {
        let n_parts = known.n_parts(answer);
        let parts = &answer.parts[..n_parts];
        let is_at_client =
            |it: &&Part| matches!(&it.kind, PartKind::Call(it) if it.executor == Executor::Client);
        let steps: BTreeSet<_> = parts.iter().filter(is_at_client).map(|it| it.step).collect();
        Self { n_responses: steps.len(), n_parts, usage }
    }
}

impl ChunkFormat {
    /// Adds the chunks for a change of a tool call that the client runs.
    fn encode_client_call(&mut self, call: &Call, change: &RunChange<'_>, chunks: &mut Vec<Value>) {
        match change {
            RunChange::CallBegun(_) => {
                let index = self.calls.len();
                self.calls.insert(call.id.clone(), (index, false));
                let function = json!({ "name": call.label(), "arguments": "" });
                let call = json!({ "index": index, "id": call.id, "type": "function", "function": function });
                self.push_delta(json!({ "tool_calls": [call] }), chunks);
            }
            RunChange::ArgumentsGrown(_, delta) => self.arguments(call, delta, chunks),
            RunChange::ArgumentsDone(_)
                if self.calls.get(&call.id).is_some_and(|(_, has_arguments)| !has_arguments) =>
            {
                self.arguments(call, "{}", chunks);
            }
            _ => (),
        }
    }

    /// Adds the chunks for a change of a tool call that the client does not run.
    fn encode_other_call(&mut self, call: &Call, change: &RunChange<'_>, chunks: &mut Vec<Value>) {
        if self.options.other_calls == OtherCalls::Hidden {
            return;
        }
        let id = PartId::new(call.id.as_str());
        let words = match change {
            RunChange::CallBegun(_) => return self.reasoning.sequencer.begin(&id),
            RunChange::ArgumentsDone(_) => headline(call),
            RunChange::ApprovalRequested(_) | RunChange::ApprovalResolved(_)
                if !self.asked.contains(&call.id) =>
            {
                self.asked.push(call.id.clone());
                ASKS.to_owned()
            }
            RunChange::CallEnded(_) => outcome(call),
            _ => return,
        };
        let words = self.reasoning.sequencer.grow(&id, &words);
        self.encode_reasoning(words, chunks);
        if matches!(change, RunChange::CallEnded(_)) {
            let words = self.reasoning.sequencer.end(&id);
            self.encode_reasoning(words, chunks);
        }
    }

    fn encode_content(&mut self, words: impl IntoIterator<Item = Words>, chunks: &mut Vec<Value>) {
        for words in words {
            let text = self.content.join(words);
            self.push_delta(json!({ "content": text }), chunks);
        }
    }

    fn encode_reasoning(
        &mut self,
        words: impl IntoIterator<Item = Words>,
        chunks: &mut Vec<Value>,
    ) {
        for words in words {
            let text = self.reasoning.join(words);
            self.push_delta(json!({ "reasoning_content": text }), chunks);
        }
    }

    fn arguments(&mut self, call: &Call, delta: &str, chunks: &mut Vec<Value>) {
        let Some((index, has_arguments)) = self.calls.get_mut(&call.id) else { return };
        *has_arguments = true;
        let more = json!({ "index": *index, "function": { "arguments": delta } });
        self.push_delta(json!({ "tool_calls": [more] }), chunks);
    }

    fn end_run(&mut self, answer: &RunMessage, chunks: &mut Vec<Value>) {
        if has_failed(answer) {
            self.response = Response::Over;
            chunks.push(error(answer));
        } else {
            self.end(openai_reason(answer), answer, chunks);
        }
    }

    fn end(&mut self, reason: &str, answer: &RunMessage, chunks: &mut Vec<Value>) {
        if self.response == Response::Over {
            return;
        }
        self.open(chunks);
        self.response = Response::Over;
        let choice = json!({ "index": 0, "delta": {}, "finish_reason": reason });
        chunks.push(self.chunk(json!([choice])));
        if self.options.include_usage {
            let mut last = self.chunk(json!([]));
            last["usage"] = self.usage(answer);
            chunks.push(last);
        }
    }

    fn push_delta(&mut self, delta: Value, chunks: &mut Vec<Value>) {
        self.open(chunks);
        chunks.push(self.delta(delta));
    }

    /// Adds the first chunk of the response, which contains the role, if it was not sent yet.
    fn open(&mut self, chunks: &mut Vec<Value>) {
        if self.response == Response::NotStarted {
            self.response = Response::Open;
            chunks.push(self.delta(json!({ "role": "assistant", "content": "" })));
        }
    }

    fn delta(&self, delta: Value) -> Value {
        self.chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }]))
    }

    fn chunk(&self, choices: Value) -> Value {
        json!({
            "id": self.id(),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.options.model,
            "choices": choices,
        })
    }

    /// Returns the id of the response. Each response to a run has its own.
    fn id(&self) -> String {
        match self.before.n_responses {
            0 => format!("chatcmpl-{}", self.run),
            n => format!("chatcmpl-{}-{}", self.run, n + 1),
        }
    }

    /// Returns the token usage of this response alone, because clients add up the usage of
    /// responses.
    fn usage(&self, answer: &RunMessage) -> Value {
        let (all, before) = (answer.usage().unwrap_or_default(), self.before.usage);
        let more = |all: u64, before: u64| all.saturating_sub(before);
        let also = |all: Option<u64>, before: Option<u64>| Some(more(all?, before.unwrap_or(0)));
        token_counts(Usage {
            input_tokens: more(all.input_tokens, before.input_tokens),
            output_tokens: more(all.output_tokens, before.output_tokens),
            total_tokens: more(all.total_tokens, before.total_tokens),
            cached_tokens: also(all.cached_tokens, before.cached_tokens),
            reasoning_tokens: also(all.reasoning_tokens, before.reasoning_tokens),
        })
    }
}

impl Joined {
    fn join(&mut self, (id, text): Words) -> String {
        let before = self.last.replace(id.clone());
        let gap = if before.is_some_and(|before| before != id) { "\n\n" } else { "" };
        format!("{gap}{text}")
    }
}

const ASKS: &str = "\nwaits for a person to allow it, on Callboard's page";

/// Returns a line that describes a tool call: the name and a summary of the arguments.
fn headline(call: &Call) -> String {
    format!("{}({})", call.label(), call.summary)
}

/// Returns a line that describes the result of a tool call.
fn outcome(call: &Call) -> String {
    let failed = if call::error_text(call).is_some() { "failed: " } else { "" };
    format!("\n→ {failed}{}", call::summary(call))
}

fn has_failed(answer: &RunMessage) -> bool {
    answer.finish.as_ref().is_some_and(|it| it.status == RunStatus::Failed)
}

fn error(answer: &RunMessage) -> Value {
    match answer.finish.as_ref().and_then(|it| it.error.as_ref()) {
        Some(error) => failure(&error.message, Some(error.code.as_str())),
        None => failure("The run failed.", None),
    }
}

/// Returns the error object that replaces an answer or the rest of one.
pub fn failure(message: &str, code: Option<&str>) -> Value {
    json!({ "error": { "message": message, "type": "server_error", "param": null, "code": code } })
}

/// Returns the `finish_reason` of a run that has ended. It is never `tool_calls`, because such a
/// run waits for no tool calls.
fn openai_reason(answer: &RunMessage) -> &'static str {
    match finish_reason(answer) {
        Some("length") => "length",
        Some("content-filter") => "content_filter",
        _ => "stop",
    }
}

fn token_counts(usage: Usage) -> Value {
    let mut counts = json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    });
    if let Some(cached) = usage.cached_tokens {
        counts["prompt_tokens_details"] = json!({ "cached_tokens": cached });
    }
    if let Some(reasoning) = usage.reasoning_tokens {
        counts["completion_tokens_details"] = json!({ "reasoning_tokens": reasoning });
    }
    counts
}
