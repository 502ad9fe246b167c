//! The model's messages as events: steps, parts and calls, with ids of Callboard's own.
//!
//! A part is closed when the next one grows, and not when Pi ends it: some services end all blocks of a
//! message at its very end, and a message that fails may be written again, so that its last part is
//! discarded. A block that grows after another one has begun becomes a second part.

use std::collections::HashMap;

use serde_json::Value;
use transcript::{ErrorCode, ErrorInfo, Executor, RunCost};

use super::tools::Call;
use super::wire::{Block, Message, Update, Usage};
use crate::emitter::{Emitter, Part};
use crate::program::MAX_OPEN;

#[derive(Debug, Default)]
pub(super) struct Author {
    steps: u32,
    /// Message that the model is writing, or that has failed and may be written again.
    message: Option<Written>,
    /// Open tool calls, and those that have ended since the model's last message, because Pi
    /// repeats results.
    pub(super) calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Written {
    open: Vec<OpenPart>,
    /// Text of the closed parts of each block, by the block's index in the message.
    emitted: HashMap<usize, String>,
    /// Argument deltas of tool calls whose name is not known yet, with the block's index in the
    /// message.
    nameless: Vec<(usize, String)>,
    failed: Option<Failed>,
}

#[derive(Debug)]
struct Failed {
    spent: RunCost,
}

#[derive(Debug)]
struct OpenPart {
    block: usize,
    part: Part,
}

/// Reason for which the model stopped writing a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stop {
    Done,
    Tools,
    Length,
    Aborted,
    Error(String),
    Other,
}

impl Stop {
    fn of(message: &Message) -> Self {
        match message.stop_reason.as_deref() {
            Some("stop") => Self::Done,
            Some("toolUse") => Self::Tools,
            Some("length") => Self::Length,
            Some("aborted") => Self::Aborted,
            Some("error") => Self::Error(message.error_message.clone().unwrap_or_default()),
            _ => Self::Other,
        }
    }

    fn finish_reason(&self) -> &'static str {
        match self {
            Self::Done => "stop",
            Self::Tools => "tool-calls",
            Self::Length => "length",
            Self::Aborted => "cancelled",
            Self::Error(_) => "error",
            Self::Other => "other",
        }
    }
}

impl Author {
    pub(super) fn start_message(&mut self, out: &mut Emitter) {
        self.end_step(Stop::Other.finish_reason(), RunCost::default(), false, out);
        self.calls.retain(|it| !it.has_ended);
        out.start_step(self.steps, None);
        self.message = Some(Written::default());
        self.steps += 1;
    }

    pub(super) fn update(&mut self, update: &Update, out: &mut Emitter) {
        self.ensure_message(out);
        let block = update.content_index;
        if update.grows() {
            self.close_parts(|part| part.block != block, false, out);
        }
        match update.kind.as_str() {
            "text_delta" => self.grow(block, false, &update.delta, out),
            "thinking_delta" => self.grow(block, true, &update.delta, out),
            "text_end" => self.end_part(block, false, update.content.as_deref(), out),
            "thinking_end" => self.end_part(block, true, update.content.as_deref(), out),
            "toolcall_start" | "toolcall_delta" => {
                self.grow_arguments(update, out);
            }
            "toolcall_end" => {
                let arguments = update.tool_call.as_ref().and_then(|it| it.arguments.as_ref());
                if let Some(call) = self.grow_arguments(update, out) {
                    call.finish_arguments(arguments, out);
                }
            }
            // A part begins with its first delta, so an empty part is not shown.
            _ => (),
        }
    }

    /// Ends the model's message, whose final form is authoritative. Returns why the model stopped.
    pub(super) fn end_message(&mut self, message: Message, out: &mut Emitter) -> Stop {
        self.ensure_message(out);
        let stop = Stop::of(&message);
        let spent = message.usage.as_ref().map(Usage::emitted).unwrap_or_default();
        let broke_off = matches!(stop, Stop::Aborted | Stop::Error(_));
        for (index, block) in message.content.into_blocks().into_iter().enumerate() {
            self.end_block(index, &block, broke_off, out);
        }
        match (&stop, &mut self.message) {
            (Stop::Error(_), Some(message)) => message.failed = Some(Failed { spent }),
            _ => self.end_step(stop.finish_reason(), spent, false, out),
        }
        stop
    }

    /// Ends the failed message as discarded, with the tool calls in it, because the model writes it
    /// again.
    pub(super) fn discard_failed(&mut self, out: &mut Emitter) {
        let Some(failed) = self.take_failed() else { return };
        let why = "The model's answer broke off before this call could run.";
        let error = ErrorInfo::new(ErrorCode::ToolInterrupted, why);
        for call in self.calls.iter_mut().filter(|it| it.block.is_some()) {
            call.break_off(error.clone(), out);
        }
        self.end_step("error", failed.spent, true, out);
    }

    /// Ends the failed message and keeps its text. `reason` is the finish reason of its step.
    pub(super) fn keep_failed(&mut self, reason: &str, out: &mut Emitter) {
        if let Some(failed) = self.take_failed() {
            self.end_step(reason, failed.spent, false, out);
        }
    }

    /// Returns the tool call that Pi reports about, and starts it if the model's message did not
    /// have it.
    pub(super) fn call(&mut self, id: &str, name: &str, out: &mut Emitter) -> &mut Call {
        let known = self.calls.iter().position(|it| it.provider_id == id);
        let idx = known.unwrap_or_else(|| self.begin_call(None, id, name, out));
        &mut self.calls[idx]
    }

    /// Returns the oldest open tool call, if more than [`MAX_OPEN`] are open.
    pub(super) fn oldest_excess(&mut self) -> Option<&mut Call> {
        let mut open = self.calls.iter_mut().filter(|it| !it.has_ended);
        let oldest = open.next();
        oldest.filter(|_| open.count() >= MAX_OPEN)
    }

    fn take_failed(&mut self) -> Option<Failed> {
        self.message.as_mut()?.failed.take()
    }

    fn ensure_message(&mut self, out: &mut Emitter) {
        if self.message.as_ref().is_none_or(|it| it.failed.is_some()) {
            self.start_message(out);
        }
    }

    fn grow(&mut self, block: usize, is_thinking: bool, delta: &str, out: &mut Emitter) {
        if let Some(part) = self.part(block, is_thinking, delta, out) {
            part.grow(delta, out);
        }
    }

    /// Sets the final text of a part. `text` is that of the whole block, and is ignored unless it
    /// starts with the text of the block's closed parts.
    fn end_part(&mut self, block: usize, is_thinking: bool, text: Option<&str>, out: &mut Emitter) {
        let emitted =
            self.message.as_ref().and_then(|it| it.emitted.get(&block)).map_or("", |it| it);
        let Some(rest) = text.and_then(|it| it.strip_prefix(emitted)) else { return };
        if let Some(part) = self.part(block, is_thinking, rest, out) {
            rest.clone_into(&mut part.text);
        }
    }

    fn end_block(&mut self, index: usize, block: &Block, broke_off: bool, out: &mut Emitter) {
        match block.kind.as_str() {
            "text" => self.end_part(index, false, block.text.as_deref(), out),
            "thinking" => self.end_part(index, true, block.thinking.as_deref(), out),
            "toolCall" => {
                let Some((id, name)) = block.call() else { return };
                let known = self.calls.iter().position(|it| it.provider_id == id);
                let idx = known.unwrap_or_else(|| self.begin_call(Some(index), id, name, out));
                if !broke_off {
                    self.calls[idx].finish_arguments(block.arguments.as_ref(), out);
                }
            }
            _ => out.unrecognized(serde_json::to_string(block).unwrap_or_default()),
        }
    }

    /// Returns the open part of a block, and begins it if there is text. `None` without a part.
    fn part(
        &mut self,
        block: usize,
        is_thinking: bool,
        text: &str,
        out: &mut Emitter,
    ) -> Option<&mut Part> {
        let message = self.message.as_mut()?;
        let fits = |it: &OpenPart| it.block == block && it.part.is_thinking() == is_thinking;
        if let Some(idx) = message.open.iter().position(fits) {
            return message.open.get_mut(idx).map(|it| &mut it.part);
        }
        if text.is_empty() {
            return None;
        }
        let part = out.start_part(is_thinking, None);
        message.open.push(OpenPart { block, part });
        message.open.last_mut().map(|it| &mut it.part)
    }

    fn close_parts(
        &mut self,
        which: impl Fn(&OpenPart) -> bool,
        discarded: bool,
        out: &mut Emitter,
    ) {
        let Some(message) = &mut self.message else { return };
        for OpenPart { block, mut part } in message.open.extract_if(.., |it| which(it)) {
            message.emitted.entry(block).or_default().push_str(&part.text);
            part.end(None, discarded, out);
        }
    }

    fn end_step(&mut self, reason: &str, spent: RunCost, discarded: bool, out: &mut Emitter) {
        self.close_parts(|_| true, discarded, out);
        if self.message.take().is_some() {
            out.finish_step(self.steps - 1, reason, (spent.usage, spent.cost), None);
        }
        for call in &mut self.calls {
            call.block = None;
        }
    }

    /// Appends to the arguments of a tool call, and returns the call. `None` while it has no name.
    fn grow_arguments(&mut self, update: &Update, out: &mut Emitter) -> Option<&mut Call> {
        let block = update.content_index;
        let known = self.calls.iter().position(|it| it.block == Some(block));
        let idx = match (known, update.call()) {
            (Some(idx), _) => idx,
            (None, Some((id, name))) => {
                let idx = self.begin_call(Some(block), id, name, out);
                let early = self.message.as_mut().map(|it| &mut it.nameless);
                for (_, delta) in
                    early.into_iter().flat_map(|it| it.extract_if(.., |it| it.0 == block))
                {
                    self.calls[idx].grow_arguments(&delta, out);
                }
                idx
            }
            (None, None) => {
                if let Some(message) = &mut self.message {
                    message.nameless.push((block, update.delta.clone()));
                }
                return None;
            }
        };
        let call = self.calls.get_mut(idx)?;
        call.grow_arguments(&update.delta, out);
        Some(call)
    }

    fn begin_call(
        &mut self,
        block: Option<usize>,
        id: &str,
        name: &str,
        out: &mut Emitter,
    ) -> usize {
        self.close_parts(|_| true, false, out);
        let call_id = out.start_call(Some(id.to_owned()), name, None, Executor::Agent);
        self.calls.push(Call::new(call_id, id, name, block));
        self.calls.len() - 1
    }
}

impl Call {
    fn grow_arguments(&mut self, delta: &str, out: &mut Emitter) {
        if self.arguments_done || delta.is_empty() {
            return;
        }
        self.arguments.push_str(delta);
        out.arguments_delta(&self.id, delta.to_owned());
    }

    /// Ends the arguments of a tool call. `read` is the value that Pi parsed; the model's own text
    /// is kept if it has the same value.
    pub(super) fn finish_arguments(&mut self, read: Option<&Value>, out: &mut Emitter) {
        let written = serde_json::from_str::<Value>(&self.arguments).ok();
        let text = match read {
            Some(read) if written.as_ref() != Some(read) => read.to_string(),
            _ => std::mem::take(&mut self.arguments),
        };
        self.end_arguments(text, false, out);
    }

    fn end_arguments(&mut self, arguments: String, incomplete: bool, out: &mut Emitter) {
        if std::mem::replace(&mut self.arguments_done, true) {
            return;
        }
        self.arguments = String::new();
        out.finish_arguments(&self.id, arguments, incomplete, None);
    }

    /// Ends a tool call that gets no more updates, with an error as its result.
    pub(super) fn break_off(&mut self, error: ErrorInfo, out: &mut Emitter) {
        let arguments = std::mem::take(&mut self.arguments);
        self.end_arguments(arguments, true, out);
        self.refuse(error, out);
    }
}
