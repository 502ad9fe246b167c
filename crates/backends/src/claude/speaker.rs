//! Who speaks: the agent itself, or a sub-agent within one of its calls. Each has steps of its own.
//!
//! A block comes twice: piece by piece, and finished in an `assistant` line, which is right where
//! they differ. Only a message that broke off has blocks that are never finished; the message's end
//! closes those. A sub-agent's blocks come finished only, and so do its messages: a new id is a new
//! message.

use transcript::{CallId, Event, Millis, PartId, Usage};

use super::calls::Calls;
use super::wire::{ApiEvent, Block, Delta, TokenCounts};
use crate::openai::FinishReason;
use crate::telling::Telling;

#[derive(Default)]
pub(super) struct Speaker {
    parent: Option<CallId>,
    steps: u32,
    message: Option<Message>,
    /// It has said something, since that was last looked at.
    pub(super) has_words: bool,
}

/// A message that is being said; it is a step.
struct Message {
    id: String,
    /// By the model's own index.
    pieces: Vec<(u64, Piece)>,
    tokens: TokenCounts,
    /// The first counts come before anything was said.
    tokens_are_final: bool,
    stop_reason: Option<String>,
    has_calls: bool,
}

enum Piece {
    Words(Words),
    /// By the provider's id.
    Call(String),
}

struct Words {
    is_thinking: bool,
    /// There is none before there is a word to see.
    part: Option<PartId>,
    text: String,
    is_closed: bool,
}

impl Speaker {
    pub(super) fn within(parent: CallId) -> Self {
        Self { parent: Some(parent), ..Self::default() }
    }

    /// `cut_off` is why, where the message broke off. False if there is no place for what was said.
    pub(super) fn hear(
        &mut self,
        now: Millis,
        event: ApiEvent,
        cut_off: Option<&'static str>,
        calls: &mut Calls,
        telling: &mut Telling,
    ) -> bool {
        match event {
            ApiEvent::MessageStart { message } => {
                self.finish_message(now, None, calls, telling);
                self.start_message(message.id, message.usage, telling);
            }
            ApiEvent::ContentBlockStart { index, content_block } => {
                self.start_block(index, content_block, calls, telling);
            }
            ApiEvent::ContentBlockDelta { index, delta } => {
                return self.grow(index, delta, calls, telling);
            }
            ApiEvent::MessageDelta { delta, usage } => self.take_counts(delta.stop_reason, usage),
            ApiEvent::MessageStop {} => self.finish_message(now, cut_off, calls, telling),
            ApiEvent::ContentBlockStop {} | ApiEvent::Ping {} => (),
        }
        true
    }

    /// A finished block. False if it is of a kind that we do not know.
    pub(super) fn hear_finished(
        &mut self,
        now: Millis,
        message_id: &str,
        block: Block,
        calls: &mut Calls,
        telling: &mut Telling,
    ) -> bool {
        if self.message.as_ref().is_none_or(|it| it.id != message_id) {
            self.finish_message(now, None, calls, telling);
            self.start_message(message_id.to_owned(), None, telling);
        }
        match block {
            Block::Text { text } => self.finish_words(false, text, telling),
            Block::Thinking { thinking } => self.finish_words(true, thinking, telling),
            Block::ToolUse { id, name, input } => {
                self.add_call(None, &id, &name, calls, telling);
                calls.finish_arguments(&id, &input, now, telling);
                // The end of a sub-agent's message is not heard of.
                if self.parent.is_some() {
                    calls.run(&id, now, telling);
                }
            }
            Block::RedactedThinking {} => (),
            Block::ToolResult { .. } | Block::Other => return false,
        }
        true
    }

    /// A text that came whole, from outside of any message.
    pub(super) fn say(&mut self, text: String, telling: &mut Telling) {
        self.has_words = true;
        Words::new(false).close(text, self.parent.as_ref(), telling);
    }

    /// Closes what is left open of the message, and its step.
    pub(super) fn finish_message(
        &mut self,
        now: Millis,
        cut_off: Option<&'static str>,
        calls: &mut Calls,
        telling: &mut Telling,
    ) {
        let Some(message) = self.message.take() else { return };
        for (_, piece) in message.pieces {
            match piece {
                Piece::Words(mut words) => {
                    self.has_words |= !words.is_thinking && words.part.is_some();
                    let text = std::mem::take(&mut words.text);
                    words.close(text, self.parent.as_ref(), telling);
                }
                Piece::Call(id) => calls.message_ended(&id, now, telling),
            }
        }
        let reason = match message.stop_reason.as_deref().and_then(FinishReason::parse) {
            Some(reason) => reason.as_str(),
            None if message.has_calls => FinishReason::ToolCalls.as_str(),
            None => FinishReason::Stop.as_str(),
        };
        telling.emit(Event::StepFinish {
            index: self.steps.saturating_sub(1),
            finish_reason: cut_off.unwrap_or(reason).to_owned(),
            usage: message.tokens_are_final.then(|| message.tokens.usage()),
            cost: None,
            parent_call_id: self.parent.clone(),
        });
    }

    fn start_message(&mut self, id: String, tokens: Option<TokenCounts>, telling: &mut Telling) {
        let (index, parent_call_id) = (self.steps, self.parent.clone());
        telling.emit(Event::StepStart { index, parent_call_id });
        self.steps = self.steps.saturating_add(1);
        self.message = Some(Message {
            id,
            pieces: Vec::new(),
            tokens: tokens.unwrap_or_default(),
            tokens_are_final: false,
            stop_reason: None,
            has_calls: false,
        });
    }

    fn start_block(&mut self, index: u64, block: Block, calls: &mut Calls, telling: &mut Telling) {
        let Some(message) = &mut self.message else { return };
        if message.pieces.iter().any(|(it, _)| *it == index) {
            return;
        }
        let (is_thinking, text) = match block {
            Block::Text { text } => (false, text),
            Block::Thinking { thinking } => (true, thinking),
            Block::ToolUse { id, name, .. } => {
                return self.add_call(Some(index), &id, &name, calls, telling);
            }
            // Known by its finished block, if at all.
            Block::RedactedThinking {} | Block::ToolResult { .. } | Block::Other => return,
        };
        let mut words = Words::new(is_thinking);
        words.grow(&text, self.parent.as_ref(), telling);
        message.pieces.push((index, Piece::Words(words)));
    }

    fn add_call(
        &mut self,
        index: Option<u64>,
        id: &str,
        name: &str,
        calls: &mut Calls,
        telling: &mut Telling,
    ) {
        let Some(message) = &mut self.message else { return };
        message.has_calls = true;
        calls.start(id, name, self.parent.as_ref(), telling);
        let is_listed =
            message.pieces.iter().any(|(_, it)| matches!(it, Piece::Call(listed) if listed == id));
        if !is_listed {
            // Nothing is added to a block that has no index.
            message.pieces.push((index.unwrap_or(u64::MAX), Piece::Call(id.to_owned())));
        }
    }

    fn grow(&mut self, index: u64, delta: Delta, calls: &mut Calls, telling: &mut Telling) -> bool {
        let pieces = self.message.as_mut().map(|it| &mut it.pieces);
        let Some((_, piece)) = pieces.and_then(|it| it.iter_mut().find(|(it, _)| *it == index))
        else {
            // A block that we do not know is heard of when it is finished.
            return !matches!(delta, Delta::Text { .. } | Delta::Thinking { .. });
        };
        match (piece, delta) {
            (Piece::Words(words), Delta::Text { text: delta }) if !words.is_thinking => {
                words.grow(&delta, self.parent.as_ref(), telling);
            }
            (Piece::Words(words), Delta::Thinking { thinking: delta }) if words.is_thinking => {
                words.grow(&delta, self.parent.as_ref(), telling);
            }
            (Piece::Call(id), Delta::Input { partial_json: delta }) => {
                calls.grow_arguments(id, delta, telling);
            }
            _ => (),
        }
        true
    }

    fn finish_words(&mut self, is_thinking: bool, text: String, telling: &mut Telling) {
        let Some(message) = &mut self.message else { return };
        self.has_words |= !is_thinking && !text.trim().is_empty();
        let mut open = message.pieces.iter_mut().filter_map(|(_, piece)| match piece {
            Piece::Words(it) if it.is_thinking == is_thinking && !it.is_closed => Some(it),
            _ => None,
        });
        match open.next() {
            Some(words) => words.close(text, self.parent.as_ref(), telling),
            None => Words::new(is_thinking).close(text, self.parent.as_ref(), telling),
        }
    }

    fn take_counts(&mut self, stop_reason: Option<String>, counts: Option<TokenCounts>) {
        let Some(message) = &mut self.message else { return };
        message.stop_reason = stop_reason.or(message.stop_reason.take());
        if let Some(TokenCounts { output_tokens: Some(_), .. }) = counts {
            message.tokens_are_final = true;
        }
        message.tokens = message.tokens.updated(counts.unwrap_or_default());
    }
}

impl Words {
    fn new(is_thinking: bool) -> Self {
        Self { is_thinking, part: None, text: String::new(), is_closed: false }
    }

    fn grow(&mut self, delta: &str, parent: Option<&CallId>, telling: &mut Telling) {
        if self.is_closed || delta.is_empty() {
            return;
        }
        self.text.push_str(delta);
        let (part_id, delta) = match &self.part {
            Some(part) => (part.clone(), delta.to_owned()),
            None if self.text.trim().is_empty() => return,
            None => (self.start(parent, telling), self.text.clone()),
        };
        let parent_call_id = parent.cloned();
        telling.emit(match self.is_thinking {
            true => Event::ThinkingDelta { part_id, parent_call_id, delta },
            false => Event::TextDelta { part_id, parent_call_id, delta },
        });
    }

    fn start(&mut self, parent: Option<&CallId>, telling: &mut Telling) -> PartId {
        let (part_id, parent_call_id) = (telling.next_part(), parent.cloned());
        self.part = Some(part_id.clone());
        telling.emit(match self.is_thinking {
            true => Event::ThinkingStart { part_id: part_id.clone(), parent_call_id },
            false => Event::TextStart { part_id: part_id.clone(), parent_call_id },
        });
        part_id
    }

    fn close(&mut self, text: String, parent: Option<&CallId>, telling: &mut Telling) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        self.text = String::new();
        let part_id = match self.part.clone() {
            Some(part_id) => part_id,
            None if text.trim().is_empty() => return,
            None => self.start(parent, telling),
        };
        let (parent_call_id, discarded) = (parent.cloned(), false);
        telling.emit(match self.is_thinking {
            true => Event::ThinkingDone { part_id, parent_call_id, text, discarded },
            false => Event::TextDone { part_id, parent_call_id, text, phase: None, discarded },
        });
    }
}

impl TokenCounts {
    /// The program counts what was read from its cache, and what was put there, apart.
    pub(super) fn usage(self) -> Usage {
        let cached = self.cache_read_input_tokens;
        let parts = [self.input_tokens, self.cache_creation_input_tokens, cached];
        let input_tokens = parts.into_iter().flatten().fold(0, u64::saturating_add);
        let output_tokens = self.output_tokens.unwrap_or(0);
        Usage {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens.saturating_add(output_tokens),
            cached_tokens: cached,
            reasoning_tokens: self.output_tokens_details.and_then(|it| it.thinking_tokens),
        }
    }

    /// Later counts are of the whole message too.
    fn updated(self, later: Self) -> Self {
        Self {
            input_tokens: later.input_tokens.or(self.input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
            cache_creation_input_tokens: later
                .cache_creation_input_tokens
                .or(self.cache_creation_input_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            output_tokens_details: later.output_tokens_details.or(self.output_tokens_details),
        }
    }
}
