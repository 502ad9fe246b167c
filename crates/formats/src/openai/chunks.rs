//! A run as `chat.completion.chunk`s, for clients that take Callboard for a model.
//!
//! Such a client runs every call that it hears of, so unless all are asked for it hears only of those
//! that are its own to run. Texts are one content, with blank lines between. What streams side by side
//! is held until its turn comes. Nothing can be taken back: a text that its provider discarded stays.

use std::collections::HashMap;

use serde_json::{Value, json};
use transcript::{
    Answer, Call, CallId, Executor, PartId, PartKind, Record, ResponseId, RunStatus, TextRole,
    Usage,
};

use crate::call;
use crate::follow::{Follow, News};
use crate::turns::{Turns, Words};
use crate::ui::finish_reason;

/// Which calls are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Calls {
    /// Those that the client runs.
    #[default]
    OfClient,
    All,
}

impl Calls {
    fn include(self, call: &Call) -> bool {
        self == Self::All || call.executor == Executor::Client
    }
}

/// How a client wants its answer.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What the client asked for, which is what it hears.
    pub model: String,
    pub include_usage: bool,
    pub calls: Calls,
}

#[derive(Debug)]
pub struct Chunks {
    follow: Follow,
    voice: Voice,
}

#[derive(Debug)]
struct Voice {
    run: ResponseId,
    options: Options,
    created: i64,
    is_over: bool,
    content: Joined,
    reasoning: Joined,
    /// With their indexes, and whether anything of their arguments was told.
    calls: HashMap<CallId, (usize, bool)>,
}

/// One string of the message, to which several parts add in turn.
#[derive(Debug, Default)]
struct Joined {
    turns: Turns,
    last: Option<PartId>,
}

impl Chunks {
    pub fn new(run: ResponseId, options: Options) -> Self {
        let voice = Voice {
            run: run.clone(),
            options,
            created: 0,
            is_over: false,
            content: Joined::default(),
            reasoning: Joined::default(),
            calls: HashMap::new(),
        };
        Self { follow: Follow::new(run), voice }
    }

    /// What this record adds. After the last chunk comes `[DONE]`.
    pub fn apply(&mut self, record: &Record) -> Vec<Value> {
        self.replay([record])
    }

    /// The run as far as these records go.
    pub fn replay<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) -> Vec<Value> {
        records.into_iter().for_each(|record| self.follow.take_in(record));
        let Self { follow, voice } = self;
        let mut chunks = Vec::new();
        for news in follow.news() {
            voice.say(&news, &mut chunks);
        }
        let is_theirs = |call: &&Call| call.executor == Executor::Client;
        if let Some(calls) = follow.waiting()
            && let Some(answer) = follow.answer()
            && calls.iter().all(is_theirs)
        {
            voice.end("tool_calls", answer.usage(), &mut chunks);
        }
        chunks
    }

    /// The last chunk was told: the run has ended, or the client has calls to run.
    pub fn is_over(&self) -> bool {
        self.voice.is_over
    }
}

impl Voice {
    fn say(&mut self, news: &News<'_>, chunks: &mut Vec<Value>) {
        if self.is_over {
            return;
        }
        match news {
            News::Begun(answer) => {
                self.created = answer.started_at.0 / 1000;
                chunks.push(self.delta(json!({ "role": "assistant", "content": "" })));
            }
            News::TextBegun(text) => self.content.turns.begin(&text.id),
            News::TextGrown(text, delta) => {
                let words = self.content.turns.grow(&text.id, delta);
                chunks.extend(words.map(|it| self.content(it)));
            }
            News::TextEnded(text) => {
                let words = self.content.turns.end(&text.id);
                chunks.extend(words.into_iter().map(|it| self.content(it)));
            }
            News::ThinkingBegun(it) => self.reasoning.turns.begin(&it.id),
            News::ThinkingGrown(it, delta) => {
                let words = self.reasoning.turns.grow(&it.id, delta);
                chunks.extend(words.map(|it| self.reasoning(it)));
            }
            News::ThinkingEnded(it) => {
                let words = self.reasoning.turns.end(&it.id);
                chunks.extend(words.into_iter().map(|it| self.reasoning(it)));
            }
            News::CallBegun(call) if self.options.calls.include(call) => {
                let index = self.calls.len();
                self.calls.insert(call.id.clone(), (index, false));
                let function = json!({ "name": call.label(), "arguments": "" });
                let call = json!({ "index": index, "id": call.id, "type": "function", "function": function });
                chunks.push(self.delta(json!({ "tool_calls": [call] })));
            }
            News::ArgumentsGrown(call, delta) => chunks.extend(self.arguments(call, delta)),
            News::CallWritten(call) if self.calls.get(&call.id).is_some_and(|(_, told)| !told) => {
                chunks.extend(self.arguments(call, "{}"));
            }
            News::Ended(answer) => self.end_run(answer, chunks),
            News::CallBegun(_)
            | News::CallWritten(_)
            | News::StepBegun { .. }
            | News::StepEnded { .. }
            | News::ApprovalAsked(_)
            | News::ApprovalSettled(_)
            | News::CallEnded(_)
            | News::Aside(..) => (),
        }
    }

    fn content(&mut self, words: Words) -> Value {
        let said = self.content.join(words);
        self.delta(json!({ "content": said }))
    }

    fn reasoning(&mut self, words: Words) -> Value {
        let said = self.reasoning.join(words);
        self.delta(json!({ "reasoning_content": said }))
    }

    fn arguments(&mut self, call: &Call, delta: &str) -> Option<Value> {
        let (index, told) = self.calls.get_mut(&call.id)?;
        *told = true;
        let more = json!({ "index": *index, "function": { "arguments": delta } });
        Some(self.delta(json!({ "tool_calls": [more] })))
    }

    fn end_run(&mut self, answer: &Answer, chunks: &mut Vec<Value>) {
        let finish = answer.finish.as_ref();
        if finish.map(|it| it.status) == Some(RunStatus::Failed) {
            self.is_over = true;
            chunks.push(error(answer));
        } else {
            self.end(openai_reason(answer), answer.usage(), chunks);
        }
    }

    fn end(&mut self, reason: &str, usage: Option<Usage>, chunks: &mut Vec<Value>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let choice = json!({ "index": 0, "delta": {}, "finish_reason": reason });
        chunks.push(self.chunk(json!([choice])));
        if self.options.include_usage {
            let mut last = self.chunk(json!([]));
            last["usage"] = token_counts(usage.unwrap_or_default());
            chunks.push(last);
        }
    }

    fn delta(&self, delta: Value) -> Value {
        self.chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }]))
    }

    fn chunk(&self, choices: Value) -> Value {
        json!({
            "id": completion_id(&self.run),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.options.model,
            "choices": choices,
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

/// The same as one answer, for a client that does not stream. What failed is an error instead.
pub fn completion(answer: &Answer, options: &Options) -> Value {
    if answer.finish.as_ref().is_some_and(|it| it.status == RunStatus::Failed) {
        return error(answer);
    }
    let outer = || answer.parts.iter().filter(|part| part.parent.is_none());
    let texts = outer().filter_map(|part| match &part.kind {
        PartKind::Text(text) if text.role != TextRole::Discarded && !text.leaked => {
            Some(text.text.as_str())
        }
        _ => None,
    });
    let thinking = outer().filter_map(|part| match &part.kind {
        PartKind::Thinking(it) if !it.discarded => Some(it.text.as_str()),
        _ => None,
    });
    let calls = outer().filter_map(|part| match &part.kind {
        PartKind::Call(call) if options.calls.include(call) => Some(tool_call(call)),
        _ => None,
    });
    let (reasoning, calls) = (joined(thinking), calls.collect::<Vec<_>>());
    let mut message = json!({ "role": "assistant", "content": joined(texts) });
    if !reasoning.is_empty() {
        message["reasoning_content"] = json!(reasoning);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let reason = if answer.is_open() { "tool_calls" } else { openai_reason(answer) };
    json!({
        "id": completion_id(&answer.id),
        "object": "chat.completion",
        "created": answer.started_at.0 / 1000,
        "model": options.model,
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": token_counts(answer.usage().unwrap_or_default()),
    })
}

fn tool_call(call: &Call) -> Value {
    let text = call::text_of(&call.arguments);
    let arguments = if text.is_empty() { "{}".to_owned() } else { text };
    let function = json!({ "name": call.label(), "arguments": arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn error(answer: &Answer) -> Value {
    let error = answer.finish.as_ref().and_then(|it| it.error.as_ref());
    let message = error.map_or("The run failed.", |it| it.message.as_str());
    let code = error.map_or("internal_error", |it| it.code.as_str());
    json!({ "error": { "message": message, "type": "server_error", "code": code } })
}

fn completion_id(run: &ResponseId) -> String {
    format!("chatcmpl-{run}")
}

/// A run that has ended waits for no calls.
fn openai_reason(answer: &Answer) -> &'static str {
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
