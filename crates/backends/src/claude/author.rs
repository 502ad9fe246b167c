//! The author of messages: the agent itself, or a sub-agent within one of its calls. Each has steps of its
//! own.
//!
//! A block arrives twice: as deltas, and finished in an `assistant` line, which is authoritative. The
//! finished block usually arrives before the message's end, but it may arrive later, and repeatedly: it is
//! recognised by its message's id and by its text. Only a failed message has blocks that are never finished.
//! If another message arrives instead of its end, or after its failure, that message repeats them, and they
//! are discarded. If they arrive finished after that, they are emitted again. Without another message they
//! stay. A sub-agent's blocks and messages only arrive finished, and a new id is a new message.

use std::collections::VecDeque;

use transcript::{CallId, Usage};

use super::blocks::{BlockKind, BlockState, Target, TextBlock, find_target, has_call};
use super::calls::Calls;
use super::wire::{ApiEvent, Block, Delta, TokenCounts};
use crate::emitter::Emitter;
use crate::openai::FinishReason;

/// Number of ended model messages whose blocks may still arrive in finished form.
const REMEMBERED: usize = 32;

/// The way in which a message of the model ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum MessageEnd {
    /// The message of the model is complete.
    Whole,
    /// The message was cut off because a person stopped the run.
    Stopped,
    /// The message was cut off by an error.
    BrokeOff,
    /// Another message of the model has begun, without a report of this message's end.
    Superseded,
}

#[derive(Debug, Default)]
pub(super) struct Author {
    parent: Option<CallId>,
    steps: u32,
    message: Option<Message>,
    /// Messages of the model that have ended, the newest last: their ids and blocks.
    ended: VecDeque<(String, Vec<BlockState>)>,
    /// Whether visible text was emitted since this flag was last cleared.
    pub(super) has_visible_text: bool,
}

/// The message that the model is writing, which is one step.
#[derive(Debug)]
struct Message {
    id: String,
    blocks: Vec<BlockState>,
    tokens: TokenCounts,
    /// Whether the token counts are final. The first counts arrive before any output.
    tokens_are_final: bool,
    stop_reason: Option<String>,
    has_calls: bool,
    /// Whether the model's message failed with text that no finished block has confirmed. The next
    /// line shows whether the text is kept.
    broke_off: bool,
}

impl Message {
    fn has_open_text(&self) -> bool {
        self.blocks
            .iter()
            .any(|it| matches!(&it.block, BlockKind::TextBlock(words) if words.is_open()))
    }
}

impl Author {
    pub(super) fn within(parent: CallId) -> Self {
        Self { parent: Some(parent), ..Self::default() }
    }

    pub(super) fn is_within(&self, parent: &CallId) -> bool {
        self.parent.as_ref() == Some(parent)
    }

    /// Handles a streaming event of the model service. `end` is how the message ends if the event
    /// ends it. Returns false if a text or thinking delta refers to an unknown block.
    pub(super) fn handle_event(
        &mut self,
        event: ApiEvent,
        end: MessageEnd,
        calls: &mut Calls,
        out: &mut Emitter,
    ) -> bool {
        match event {
            // The program repeats the event.
            ApiEvent::MessageStart { message } if self.is_current(&message.id) => (),
            ApiEvent::MessageStart { message } => {
                self.finish_message(MessageEnd::Superseded, calls, out);
                self.start_message(message.id, message.usage, out);
            }
            ApiEvent::ContentBlockStart { index, content_block } => {
                self.start_block(index, content_block, calls, out);
            }
            ApiEvent::ContentBlockDelta { index, delta } => {
                return self.grow(index, delta, calls, out);
            }
            ApiEvent::MessageDelta { delta, usage } => self.take_counts(delta.stop_reason, usage),
            ApiEvent::MessageStop {} => match (&mut self.message, end) {
                (Some(message), MessageEnd::BrokeOff) if message.has_open_text() => {
                    message.broke_off = true;
                }
                _ => self.finish_message(end, calls, out),
            },
            ApiEvent::ContentBlockStop { index } => {
                if let Some(state) = self.state(index) {
                    state.is_stopped = true;
                }
            }
            ApiEvent::Ping {} => (),
        }
        true
    }

    /// Handles a finished block of a model message. Returns false if a model message cannot have a
    /// block of this kind.
    pub(super) fn finish_block(
        &mut self,
        message_id: &str,
        block: Block,
        calls: &mut Calls,
        out: &mut Emitter,
    ) -> bool {
        match block {
            Block::Text { text } => {
                self.finish_text(message_id, (false, text), calls, out);
            }
            Block::Thinking { thinking } => {
                self.finish_text(message_id, (true, thinking), calls, out);
            }
            Block::ToolUse { id, name, input } => {
                let is_known = self.blocks_of(message_id).is_some_and(|it| has_call(it, &id));
                if !is_known {
                    self.open_message(message_id, calls, out);
                    self.add_call(None, &id, &name, calls, out);
                }
                calls.finish_arguments(&id, &input, out);
                // A sub-agent's message has no end of its own.
                if self.parent.is_some() {
                    calls.run(&id, out);
                }
            }
            Block::RedactedThinking {} => (),
            Block::ToolResult { .. } | Block::Other => return false,
        }
        true
    }

    /// Emits a complete text that belongs to no model message, such as the output of a command.
    pub(super) fn emit_text(&mut self, text: String, out: &mut Emitter) {
        self.has_visible_text = true;
        TextBlock::new(false).confirm(text, self.parent.as_ref(), out);
    }

    /// Ends the current message of the model: closes its open blocks and its step.
    pub(super) fn finish_message(&mut self, end: MessageEnd, calls: &mut Calls, out: &mut Emitter) {
        let Some(mut message) = self.message.take() else { return };
        let is_superseded = matches!(end, MessageEnd::Superseded);
        let mut cut_off = match end {
            MessageEnd::Stopped => Some("cancelled"),
            MessageEnd::BrokeOff => Some("error"),
            MessageEnd::Whole | MessageEnd::Superseded => message.broke_off.then_some("error"),
        };
        for state in &mut message.blocks {
            let is_whole = state.is_stopped && cut_off.is_none();
            match &mut state.block {
                BlockKind::TextBlock(words) => {
                    let discarded = is_superseded && words.is_open();
                    cut_off = cut_off.or(discarded.then_some("error"));
                    self.has_visible_text |= !words.is_thinking && words.is_shown() && !discarded;
                    words.close_as_it_is(discarded, self.parent.as_ref(), out);
                }
                BlockKind::Call(id) => calls.message_ended(id, is_whole, out),
            }
        }
        let reason = match message.stop_reason.as_deref().and_then(FinishReason::parse) {
            Some(reason) => reason.as_str(),
            None if message.has_calls => FinishReason::ToolCalls.as_str(),
            None => FinishReason::Stop.as_str(),
        };
        out.finish_step(
            self.steps.saturating_sub(1),
            cut_off.unwrap_or(reason),
            (message.tokens_are_final.then(|| message.tokens.usage()), None),
            self.parent.as_ref(),
        );
        self.ended.push_back((message.id, message.blocks));
        if self.ended.len() > REMEMBERED {
            self.ended.pop_front();
        }
    }

    fn is_current(&self, message_id: &str) -> bool {
        self.message.as_ref().is_some_and(|it| it.id == message_id)
    }

    /// Returns the blocks of a message, if it is the current one or an ended one that is
    /// remembered.
    fn blocks_of(&mut self, message_id: &str) -> Option<&mut Vec<BlockState>> {
        match &mut self.message {
            Some(message) if message.id == message_id => Some(&mut message.blocks),
            _ => {
                let mut ended = self.ended.iter_mut().rev();
                ended.find(|(id, _)| id == message_id).map(|(_, blocks)| blocks)
            }
        }
    }

    fn state(&mut self, index: u64) -> Option<&mut BlockState> {
        self.message.as_mut()?.blocks.iter_mut().find(|it| it.index == Some(index))
    }

    /// Begins a message with this id, unless it is the current one. The current message is
    /// superseded.
    fn open_message(&mut self, message_id: &str, calls: &mut Calls, out: &mut Emitter) {
        if !self.is_current(message_id) {
            self.finish_message(MessageEnd::Superseded, calls, out);
            self.start_message(message_id.to_owned(), None, out);
        }
    }

    fn start_message(&mut self, id: String, tokens: Option<TokenCounts>, out: &mut Emitter) {
        out.start_step(self.steps, self.parent.as_ref());
        self.steps = self.steps.saturating_add(1);
        self.message = Some(Message {
            id,
            blocks: Vec::new(),
            tokens: tokens.unwrap_or_default(),
            tokens_are_final: false,
            stop_reason: None,
            has_calls: false,
            broke_off: false,
        });
    }

    fn start_block(&mut self, index: u64, block: Block, calls: &mut Calls, out: &mut Emitter) {
        let Some(message) = &mut self.message else { return };
        if message.blocks.iter().any(|it| it.index == Some(index)) {
            return;
        }
        let (is_thinking, text) = match block {
            Block::Text { text } => (false, text),
            Block::Thinking { thinking } => (true, thinking),
            Block::ToolUse { id, name, .. } => {
                return self.add_call(Some(index), &id, &name, calls, out);
            }
            // Shown when the finished block arrives, if at all.
            Block::RedactedThinking {} | Block::ToolResult { .. } | Block::Other => return,
        };
        let mut words = TextBlock::new(is_thinking);
        words.grow(&text, self.parent.as_ref(), out);
        message.blocks.push(BlockState::new(Some(index), BlockKind::TextBlock(words)));
    }

    fn add_call(
        &mut self,
        index: Option<u64>,
        id: &str,
        name: &str,
        calls: &mut Calls,
        out: &mut Emitter,
    ) {
        let Some(message) = &mut self.message else { return };
        message.has_calls = true;
        if !has_call(&message.blocks, id) {
            calls.start(id, name, self.parent.as_ref(), out);
            message.blocks.push(BlockState::new(index, BlockKind::Call(id.to_owned())));
        }
    }

    fn grow(&mut self, index: u64, delta: Delta, calls: &mut Calls, out: &mut Emitter) -> bool {
        let mut blocks = self.message.iter_mut().flat_map(|it| &mut it.blocks);
        let Some(state) = blocks.find(|it| it.index == Some(index)) else {
            // An unknown block is reported when its finished form arrives.
            return !matches!(delta, Delta::Text { .. } | Delta::Thinking { .. });
        };
        match (&mut state.block, delta) {
            (BlockKind::TextBlock(words), Delta::Text { text: delta }) if !words.is_thinking => {
                words.grow(&delta, self.parent.as_ref(), out);
            }
            (BlockKind::TextBlock(words), Delta::Thinking { thinking: delta })
                if words.is_thinking =>
            {
                words.grow(&delta, self.parent.as_ref(), out);
            }
            (BlockKind::Call(id), Delta::Input { partial_json: delta }) => {
                calls.grow_arguments(id, delta, out);
            }
            _ => (),
        }
        true
    }

    fn finish_text(
        &mut self,
        message_id: &str,
        (is_thinking, text): (bool, String),
        calls: &mut Calls,
        out: &mut Emitter,
    ) {
        let blocks = self.blocks_of(message_id).map_or(&[][..], |it| it);
        let at = match find_target(blocks, is_thinking, &text) {
            Target::Here(at) => at,
            Target::Again => return,
            Target::Nowhere => {
                self.open_message(message_id, calls, out);
                let blocks = self.message.as_mut().map(|it| &mut it.blocks);
                let words = BlockKind::TextBlock(TextBlock::new(is_thinking));
                blocks.map_or(0, |it| {
                    it.push(BlockState::new(None, words));
                    it.len() - 1
                })
            }
        };
        // The text of an ended message has been counted before.
        let is_current = self.is_current(message_id);
        let has_visible_text = !is_thinking && !text.trim().is_empty();
        let parent = self.parent.clone();
        let state = self.blocks_of(message_id).and_then(|it| it.get_mut(at));
        if let Some(BlockState { block: BlockKind::TextBlock(words), .. }) = state {
            let is_news = words.confirm(text, parent.as_ref(), out);
            self.has_visible_text |= has_visible_text && (is_current || is_news);
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

impl TokenCounts {
    /// Converts Claude Code's token counts to a usage. Claude Code counts cache reads and cache
    /// writes apart from the other input tokens.
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

    /// Replaces token counts by later ones, which count the whole message too.
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
