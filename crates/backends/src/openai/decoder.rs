//! Decodes the bytes of a chat completion, in any chunking.
//!
//! One decoder for all providers: server-sent events with any framing, or one JSON document if the server
//! does not stream. Unreadable parts are passed on unchanged. The result does not depend on how the bytes
//! were chunked, and the cost of a chunk does not depend on the bytes before it.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use transcript::Usage;

use super::calls::{CallUpdate, Calls, Fragment};
use super::finish_reason::FinishReason;
use super::lines::{Lines, MAX_LINE};
use super::reasoning_details::ReasoningDetails;
use super::template::Template;
use super::think_tags::{Kind, ThinkTags};
use super::wire::{self, CallDelta, Choice, Chunk, Delta, FirstChoice, Function};
use crate::surrogates::Surrogates;

/// Maximum number of bytes that are kept of a part of the response that cannot be read.
const MAX_UNREADABLE: usize = 4096;

/// A delta of a model's answer. Tool calls are numbered from zero in the order in which they are
/// emitted, which is the order of the service's indexes, if it gives any.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerDelta {
    /// A delta of the answer's visible text.
    Text(String),
    /// A delta of the model's thinking.
    Thinking(String),
    /// A tool call begins, and its name is known. Its arguments follow.
    Call {
        /// Number of the tool call within the answer, from zero.
        call: usize,
        /// Name of the tool to call.
        name: String,
        /// Id that the model service gave the tool call. `None` if it gave none or repeated an id.
        provider_call_id: Option<String>,
    },
    /// A delta of a tool call's arguments.
    Arguments {
        /// Number of the tool call within the answer, from zero.
        call: usize,
        /// Raw text to append to the arguments.
        delta: String,
    },
    /// A part of the response that cannot be read, as raw text of limited length.
    Unreadable(String),
}

/// Result of a model's response that has ended, complete or not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Reason for which the model stopped. `None` if the service gave none.
    pub finish_reason: Option<FinishReason>,
    /// Whether the service marked the end of the response.
    pub is_marked_done: bool,
    /// Whether any part of an answer arrived, even if only its end.
    pub has_answer: bool,
    /// Token usage that the service reported. `None` if it reported none.
    pub usage: Option<Usage>,
    /// Error that ended the response. `None` without an error.
    pub error: Option<ServiceError>,
    /// Tool calls of the answer in the order of their numbers.
    pub calls: Vec<FinishedCall>,
    /// Reasoning data that the service requires back with the message that makes the tool calls.
    pub reasoning_details: Option<Value>,
}

/// A tool call of an answer that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedCall {
    /// Arguments of the tool call as raw text; `{}` if there was none.
    pub arguments: String,
    /// Whether the arguments are a complete JSON object or list, or empty.
    pub is_complete: bool,
    /// Data that the service requires back with the tool call.
    pub extra_content: Option<Value>,
}

/// An error that a model service reported in a response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServiceError {
    /// The service's description of the error.
    pub message: String,
    /// Codes and types of the error in lower case, by which it is classified.
    pub codes: Vec<String>,
}

/// Decodes the body of a model service's response to deltas of the answer and a result.
#[derive(Debug, Default)]
pub struct Decoder {
    form: Form,
    lines: Lines,
    think_tags: ThinkTags,
    template: Template,
    surrogates: Surrogates,
    calls: Calls,
    reasoning_details: ReasoningDetails,
    /// Data lines that are not JSON on their own, but may be together.
    pending: Vec<u8>,
    /// Whether the current server-sent event was announced as an error.
    is_error_event: bool,
    has_refused: bool,
    has_deltas: bool,
    outcome: Outcome,
    deltas: Vec<AnswerDelta>,
}

#[derive(Debug, Default)]
enum Form {
    /// The response has only blank bytes so far.
    #[default]
    Unknown,
    Events,
    /// The response is one JSON document, which is parsed when it is complete.
    Document(Vec<u8>),
}

impl Decoder {
    /// Decodes the next bytes of the response body, and returns the deltas of the answer in them.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<AnswerDelta> {
        let mut bytes = bytes;
        if matches!(self.form, Form::Unknown) {
            let blanks = bytes.iter().take_while(|it| is_blank_or_bom(**it)).count();
            match bytes.get(blanks) {
                None => return Vec::new(),
                Some(b'{' | b'[') => self.form = Form::Document(Vec::new()),
                Some(_) => self.form = Form::Events,
            }
            bytes = &bytes[blanks..];
        }
        match &mut self.form {
            Form::Document(document) if document.len() + bytes.len() <= MAX_LINE => {
                document.extend_from_slice(bytes);
            }
            Form::Document(_) => self.too_long(),
            Form::Events | Form::Unknown => {
                let mut lines = std::mem::take(&mut self.lines);
                let fits = lines.feed(bytes, |line| self.line(line));
                self.lines = lines;
                if !fits {
                    self.too_long();
                }
            }
        }
        std::mem::take(&mut self.deltas)
    }

    /// Ends the response. Returns the deltas that were held back, and the result.
    pub fn finish(&mut self) -> (Vec<AnswerDelta>, Outcome) {
        match std::mem::take(&mut self.form) {
            Form::Document(document) => self.document(&document),
            Form::Events | Form::Unknown => {
                let mut lines = std::mem::take(&mut self.lines);
                lines.finish(|line| self.line(line));
                self.end_of_event();
            }
        }
        self.flush_text();
        let mut updates = Vec::new();
        self.calls.finish(&mut updates);
        self.push_updates(updates);
        let mut outcome = std::mem::take(&mut self.outcome);
        outcome.calls = self.calls.in_order().map(finished).collect();
        outcome.reasoning_details = self.reasoning_details.take();
        if self.has_refused && outcome.finish_reason == Some(FinishReason::Stop) {
            outcome.finish_reason = Some(FinishReason::ContentFilter);
        }
        (std::mem::take(&mut self.deltas), outcome)
    }

    /// Returns whether the response has its end or an error, so that later bytes are ignored.
    pub fn is_over(&self) -> bool {
        self.outcome.is_marked_done || self.outcome.error.is_some()
    }

    fn line(&mut self, line: &[u8]) {
        if self.is_over() {
            return;
        }
        match line {
            [] => self.end_of_event(),
            // A comment.
            [b':', ..] => (),
            // Some services send errors between the events, without framing.
            [b'{', ..] => self.data(line),
            _ => match field(line) {
                (b"data", value) => self.data(value),
                (b"event", b"error") => self.is_error_event = true,
                (b"error", value) => self.outcome.error = Some(read_error(value)),
                _ => (),
            },
        }
    }

    /// Handles a data line, as an event of its own if possible. The standard requires a blank line
    /// after each event, which not all services send, and allows an event to have several lines.
    fn data(&mut self, data: &[u8]) {
        if data.trim_ascii().is_empty() {
            return;
        }
        if data.trim_ascii() == b"[DONE]" {
            self.outcome.is_marked_done = true;
        } else if !self.event(data) {
            if !self.pending.is_empty() {
                self.pending.push(b'\n');
            }
            self.pending.extend_from_slice(data);
            if self.pending.len() > MAX_LINE {
                self.pending = Vec::new();
                self.too_long();
            }
        }
    }

    fn end_of_event(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() && !self.event(&pending) {
            if self.is_error_event {
                self.outcome.error = Some(read_error(&pending));
            } else {
                self.unreadable(&pending);
            }
        }
        self.is_error_event = false;
    }

    /// Handles a response that is one JSON document, which some services wrap in a list.
    fn document(&mut self, document: &[u8]) {
        let listed = serde_json::from_slice::<Vec<&RawValue>>(document);
        let is_read = match &listed {
            Ok(listed) => listed.iter().all(|it| self.event(it.get().as_bytes())),
            Err(_) => self.event(document),
        };
        if is_read {
            // A document is readable only if it is complete.
            self.outcome.is_marked_done = true;
        } else {
            self.unreadable(document);
        }
    }

    /// Handles the JSON of one event. Returns false if it cannot be parsed.
    fn event(&mut self, json: &[u8]) -> bool {
        let is_ordinary = self.pending.is_empty() && !self.is_error_event;
        if let Some(text) = self.template.text_of(json).filter(|_| is_ordinary) {
            self.content(text);
            return true;
        }
        // If a proxy cut a character in two, only that character is lost.
        let json = match std::str::from_utf8(json) {
            Ok(json) => Cow::Borrowed(json),
            Err(_) => String::from_utf8_lossy(json),
        };
        let json = self.surrogates.repair(&json);
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(&json) else { return false };
        if !self.pending.is_empty() {
            let pending = std::mem::take(&mut self.pending);
            self.unreadable(&pending);
        }
        if let Some(text) = chunk.text_alone() {
            self.template.learn(&json, text);
        }
        let is_error = self.is_error_event || chunk.error.is_some() || chunk.object.0 == "error";
        if let FirstChoice(Some(choice)) = &chunk.choices {
            self.choice(choice);
        }
        let usage = chunk.usage.and_then(wire::usage);
        self.note_usage(usage.or_else(|| chunk.x_groq.and_then(wire::groq_usage)));
        if is_error && self.outcome.error.is_none() {
            self.outcome.error = Some(read_error(json.as_bytes()));
        }
        true
    }

    fn choice(&mut self, choice: &Choice<'_>) {
        self.outcome.has_answer = true;
        if let Some(delta) = &choice.delta {
            self.has_deltas = true;
            self.delta(delta);
        } else if let Some(message) = choice.message.filter(|_| !self.has_deltas) {
            // A message after deltas only repeats them.
            let message = serde_json::from_str::<Delta<'_>>(message.get());
            message.iter().for_each(|message| self.delta(message));
        }
        let words = [&choice.finish_reason, &choice.finish_reason_in_camel_case];
        if let Some(reason) = words.into_iter().find_map(|it| FinishReason::parse(&it.0)) {
            self.outcome.finish_reason = Some(reason);
        }
        self.note_usage(choice.usage.and_then(wire::usage));
        if let Some(error) = choice.error {
            self.outcome.error = Some(read_error(error.get().as_bytes()));
        }
    }

    fn delta(&mut self, delta: &Delta<'_>) {
        delta.reasoning_details.iter().flatten().for_each(|it| self.reasoning_details.add(it));
        let reasoning = delta.reasoning_text();
        self.push_text(Kind::Thinking, &reasoning);
        self.push_text(Kind::Thinking, &delta.content.thinking);
        self.content(&delta.content.text);
        self.has_refused |= !delta.refusal.0.is_empty();
        self.push_text(Kind::Text, &delta.refusal.0);
        for (position, call) in delta.tool_calls.iter().flatten().enumerate() {
            self.call(call, position);
        }
        // The older form, which allows only one call.
        let function = delta.function_call.and_then(|it| serde_json::from_str(it.get()).ok());
        if function.is_some() {
            self.piece(&Fragment::default(), function.as_ref(), None);
        }
    }

    fn content(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut tags = std::mem::take(&mut self.think_tags);
        tags.feed(text, |kind, text| self.push_text(kind, text));
        self.think_tags = tags;
    }

    fn call(&mut self, call: &CallDelta<'_>, position: usize) {
        let piece =
            Fragment { index: call.index.0, id: call.id.0.trim(), position, ..Fragment::default() };
        self.piece(&piece, call.function.as_ref(), call.extra_content);
    }

    fn piece(
        &mut self,
        at: &Fragment<'_>,
        function: Option<&Function<'_>>,
        extra: Option<&RawValue>,
    ) {
        self.flush_text();
        let arguments = function.map(Function::arguments_text).unwrap_or_default();
        let name = function.map_or("", |it| it.name.0.trim());
        let piece = Fragment { name, arguments: &arguments, ..*at };
        let mut updates = Vec::new();
        let idx = self.calls.add(&piece, &mut updates);
        let extra = extra.and_then(|it| serde_json::from_str(it.get()).ok());
        if let (Some(idx), Some(extra)) = (idx, extra) {
            self.calls.calls[idx].extra = Some(extra);
        }
        self.push_updates(updates);
    }

    fn push_text(&mut self, kind: Kind, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut updates = Vec::new();
        self.calls.interrupt(&mut updates);
        self.push_updates(updates);
        let text = text.to_owned();
        self.deltas.push(match kind {
            Kind::Text => AnswerDelta::Text(text),
            Kind::Thinking => AnswerDelta::Thinking(text),
        });
    }

    /// Emits the text that was held back because it may be the beginning of a thinking tag.
    fn flush_text(&mut self) {
        let mut tags = std::mem::take(&mut self.think_tags);
        tags.finish(|kind, text| self.push_text(kind, text));
        self.think_tags = tags;
    }

    fn push_updates(&mut self, updates: Vec<CallUpdate>) {
        for it in updates {
            self.deltas.push(match it {
                CallUpdate::Started(idx) => AnswerDelta::Call {
                    call: self.calls.number(idx),
                    name: self.calls.calls[idx].name.clone(),
                    provider_call_id: self.calls.provider_id(idx).map(str::to_owned),
                },
                CallUpdate::Grown(idx, delta) => {
                    AnswerDelta::Arguments { call: self.calls.number(idx), delta }
                }
            });
        }
    }

    fn note_usage(&mut self, usage: Option<Usage>) {
        self.outcome.usage = usage.or(self.outcome.usage);
    }

    fn unreadable(&mut self, bytes: &[u8]) {
        let kept = &bytes[..bytes.len().min(MAX_UNREADABLE)];
        self.deltas.push(AnswerDelta::Unreadable(String::from_utf8_lossy(kept).into_owned()));
    }

    fn too_long(&mut self) {
        let message = format!("it sent more than {} MiB in one piece", MAX_LINE >> 20);
        self.outcome.error = Some(ServiceError { message, codes: Vec::new() });
    }
}

fn is_blank_or_bom(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\xef\xbb\xbf".contains(&byte)
}

fn finished(call: &super::calls::Call) -> FinishedCall {
    let is_empty = call.arguments.trim().is_empty();
    FinishedCall {
        arguments: if is_empty { "{}".to_owned() } else { call.arguments.clone() },
        is_complete: call.is_complete(),
        extra_content: call.extra.clone(),
    }
}

/// Splits a line of a server-sent event into field name and value, without the space after the
/// colon.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        Some(colon) => {
            let value = &line[colon + 1..];
            (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, b""),
    }
}

/// Parses an error of a model service in any form: an object, an object within an object, a list, a
/// string or plain text.
pub(super) fn read_error(text: &[u8]) -> ServiceError {
    let text = String::from_utf8_lossy(&text[..text.len().min(MAX_UNREADABLE * 4)]);
    let Ok(json) = serde_json::from_str::<Value>(&text) else {
        return ServiceError { message: text.trim().to_owned(), codes: Vec::new() };
    };
    let json = json.get(0).unwrap_or(&json);
    let error = json.get("error").filter(|it| !it.is_null()).unwrap_or(json);
    let words = ["message", "detail", "msg", "error_msg"];
    let message = words.iter().find_map(|it| error.get(it)).or_else(|| json.get("message"));
    let message = message.unwrap_or(error);
    let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    let codes = ["code", "type", "status"].iter().filter_map(|it| match error.get(it)? {
        Value::String(code) => Some(code.to_ascii_lowercase()),
        Value::Number(code) => Some(code.to_string()),
        _ => None,
    });
    ServiceError { message, codes: codes.collect() }
}
