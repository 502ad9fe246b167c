//! How much of what a call was asked, or has told, is drawn.
//!
//! Long texts are cut at the end of a line and long lists after an entry, in the order in which they are
//! drawn. Whether there was room enough depends on the size of the call alone, not on how much of it a
//! transcript has kept: that is always more than fits in a page.

use serde_json::Value;
use transcript::{EXCERPT_PIECE, weight};

/// What is longer is cut on a page. Below what a transcript keeps of any text, so that what is shown
/// depends on the size alone.
pub(crate) const INLINE_MAX: u64 = 16_000;
/// How much is shown of what is cut.
pub(crate) const HEAD: usize = 4_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it, if that is not too much for a page.
    Fitting,
    /// Where it is too much.
    Beginning,
    /// In a file that stands alone, and for those who ask for it.
    Whole,
}

#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) extent: Extent,
    left: usize,
    was_enough: bool,
}

impl Room {
    pub(crate) fn new(extent: Extent) -> Self {
        let left = match extent {
            Extent::Fitting => INLINE_MAX as usize,
            Extent::Beginning => HEAD,
            Extent::Whole => usize::MAX,
        };
        Self { extent, left, was_enough: true }
    }

    pub(crate) fn was_enough(&self) -> bool {
        self.was_enough
    }

    /// The first lines of a text.
    pub(crate) fn text<'a>(&mut self, text: &'a str) -> &'a str {
        let left = self.left;
        if self.take(text.len()) {
            return text;
        }
        let start = &text[..text.floor_char_boundary(left)];
        start.rfind('\n').map_or(start, |at| &start[..=at])
    }

    /// The first entries of a list.
    pub(crate) fn items<'a>(&mut self, items: &'a [Value]) -> &'a [Value] {
        let n_shown = items.iter().take_while(|it| self.take(weight(it))).count();
        &items[..n_shown]
    }

    /// Takes so much of it, if that is left. After what did not fit there is room for nothing.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let has_room = bytes <= self.left;
        self.left = if has_room { self.left - bytes } else { 0 };
        self.was_enough &= has_room;
        has_room
    }

    /// True if something of this size is all there: what is longer the transcript may have cut, so that what
    /// is made of it does not tell everything.
    pub(crate) fn has_all_of(&mut self, bytes: usize) -> bool {
        let is_all = bytes < EXCERPT_PIECE || self.extent == Extent::Whole;
        self.was_enough &= is_all;
        is_all
    }
}
