//! The blocks of a message of the model that have arrived so far.

use std::hash::{DefaultHasher, Hash, Hasher};

use transcript::CallId;

use crate::emitter::{Emitter, Part};

#[derive(Debug)]
pub(super) struct BlockState {
    /// Index that the model service gave the block. `None` for a block that arrived only in
    /// finished form.
    pub(super) index: Option<u64>,
    /// Whether the model service has ended the block.
    pub(super) is_stopped: bool,
    pub(super) block: BlockKind,
}

#[derive(Debug)]
pub(super) enum BlockKind {
    TextBlock(TextBlock),
    /// A tool call, by the id that the model service gave it.
    Call(String),
}

/// Match of a finished block among the blocks of its message that have arrived.
#[derive(Debug)]
pub(super) enum Target {
    Here(usize),
    /// The finished block has arrived before.
    Again,
    Nowhere,
}

impl BlockState {
    pub(super) fn new(index: Option<u64>, block: BlockKind) -> Self {
        Self { index, is_stopped: false, block }
    }

    fn words(&self, is_thinking: bool) -> Option<&TextBlock> {
        match &self.block {
            BlockKind::TextBlock(words) => Some(words).filter(|it| it.is_thinking == is_thinking),
            BlockKind::Call(_) => None,
        }
    }
}

pub(super) fn has_call(blocks: &[BlockState], id: &str) -> bool {
    blocks.iter().any(|it| matches!(&it.block, BlockKind::Call(listed) if listed == id))
}

/// Finds the block that a finished text belongs to: an unconfirmed block with the same text, or
/// else the unconfirmed block that began last.
pub(super) fn find_target(blocks: &[BlockState], is_thinking: bool, text: &str) -> Target {
    let words = || {
        let blocks = blocks.iter().enumerate();
        blocks.filter_map(|(at, it)| Some((at, it.words(is_thinking)?)))
    };
    let waits = |(_, it): &(usize, &TextBlock)| !it.is_confirmed;
    let is_same = |(_, it): &(usize, &TextBlock)| it.says(text);
    if let Some((at, _)) = words().filter(waits).find(is_same) {
        return Target::Here(at);
    }
    if words().any(|it| is_same(&it)) {
        return Target::Again;
    }
    words().rfind(waits).map_or(Target::Nowhere, |(at, _)| Target::Here(at))
}

/// A text or a thinking block of a model message.
#[derive(Debug)]
pub(super) struct TextBlock {
    pub(super) is_thinking: bool,
    /// White space that arrived before the first visible text of the block.
    blanks: String,
    part: Option<Part>,
    /// Hash of the block's final text. `None` until the block is closed.
    digest: Option<u64>,
    /// Whether the finished form of the block has arrived.
    is_confirmed: bool,
    /// Whether the block's part was closed as discarded.
    is_discarded: bool,
}

impl TextBlock {
    pub(super) fn new(is_thinking: bool) -> Self {
        Self {
            is_thinking,
            blanks: String::new(),
            part: None,
            digest: None,
            is_confirmed: false,
            is_discarded: false,
        }
    }

    /// Returns whether the block's part has begun and is not closed.
    pub(super) fn is_open(&self) -> bool {
        self.part.is_some() && self.digest.is_none()
    }

    pub(super) fn is_shown(&self) -> bool {
        self.part.is_some()
    }

    fn says(&self, text: &str) -> bool {
        let so_far = self.part.as_ref().map_or(&self.blanks, |it| &it.text);
        self.digest.map_or(so_far == text, |it| it == digest(text))
    }

    pub(super) fn grow(&mut self, delta: &str, parent: Option<&CallId>, out: &mut Emitter) {
        if self.digest.is_some() || delta.is_empty() {
            return;
        }
        if let Some(part) = &mut self.part {
            return part.grow(delta, out);
        }
        self.blanks.push_str(delta);
        if !self.blanks.trim().is_empty() {
            let part = self.part.insert(out.start_part(self.is_thinking, parent));
            part.grow(std::mem::take(&mut self.blanks), out);
        }
    }

    /// Takes the text of the finished block. Returns false if the block was already shown and
    /// closed.
    pub(super) fn confirm(
        &mut self,
        text: String,
        parent: Option<&CallId>,
        out: &mut Emitter,
    ) -> bool {
        self.is_confirmed = true;
        // The log keeps the discarded part, so the text is shown in a new one.
        if std::mem::take(&mut self.is_discarded) {
            self.part = None;
        }
        // A part that was closed with another text stays as it was shown.
        let is_news = self.digest.is_none() || self.part.is_none();
        if is_news {
            self.close(text, false, parent, out);
        }
        is_news
    }

    /// Closes the block's part with the text so far, unless it is closed. `discarded`: the model
    /// writes the text again.
    pub(super) fn close_as_it_is(
        &mut self,
        discarded: bool,
        parent: Option<&CallId>,
        out: &mut Emitter,
    ) {
        if self.digest.is_none() {
            let text = self.part.as_mut().map_or(&mut self.blanks, |it| &mut it.text);
            let text = std::mem::take(text);
            self.close(text, discarded, parent, out);
        }
    }

    fn close(&mut self, text: String, discarded: bool, parent: Option<&CallId>, out: &mut Emitter) {
        self.digest = Some(digest(&text));
        self.is_discarded = discarded;
        self.blanks = String::new();
        if self.part.is_none() && text.trim().is_empty() {
            return;
        }
        let part = self.part.get_or_insert_with(|| out.start_part(self.is_thinking, parent));
        part.text = text;
        part.end(None, discarded, out);
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
