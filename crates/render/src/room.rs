//! How much of what a call was asked, or has told, is drawn.
//!
//! Long texts are cut at the end of a line and long lists after an entry, in the order in which they are
//! drawn. Whether there was room enough depends on the size of the call alone, not on how much of it a
//! transcript has kept: that is always more than fits in a page.
//!
//! A person who decides about a call sees both ends of each text and how much is between them, so that
//! neither line breaks nor a long line can push something out of sight.

use maud::{Markup, html};
use serde_json::Value;
use transcript::{EXCERPT_PIECE, weight};

use crate::visible::marked;
use crate::words::{count, size};

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
    /// Both ends of each text, for a person who decides about it.
    Ends,
    /// In a file that stands alone, and for those who ask for it.
    Whole,
}

#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) extent: Extent,
    left: usize,
    was_enough: bool,
    /// It is for a person who decides: everything invisible is written out.
    is_decision: bool,
    rest: Option<Remainder>,
}

/// Where all of a call can be fetched from, and how long it is.
#[derive(Debug)]
pub(crate) struct Remainder {
    pub(crate) url: String,
    pub(crate) bytes: u64,
}

/// A text with no more lines and no more bytes is shown whole.
const WHOLE: (usize, usize) = (20, 2_000);
/// How many lines and bytes are shown of the beginning of a longer one, and of its end.
const FIRST: (usize, usize) = (12, 1_200);
const LAST: (usize, usize) = (6, 600);
/// The same for lists.
const WHOLE_ITEMS: usize = 40;
const FIRST_ITEMS: usize = 24;
const LAST_ITEMS: usize = 12;

impl Room {
    pub(crate) fn new(extent: Extent) -> Self {
        let left = match extent {
            Extent::Fitting => INLINE_MAX as usize,
            Extent::Beginning => HEAD,
            Extent::Ends | Extent::Whole => usize::MAX,
        };
        Self { extent, left, was_enough: true, is_decision: false, rest: None }
    }

    /// For what a person decides about. `rest` is where to find what is hidden; without it all is shown.
    pub(crate) fn for_decision(rest: Option<Remainder>) -> Self {
        let extent = if rest.is_some() { Extent::Ends } else { Extent::Whole };
        Self { rest, is_decision: true, ..Self::new(extent) }
    }

    pub(crate) fn is_decision(&self) -> bool {
        self.is_decision
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

    /// True if a text would be shown whole where somebody decides.
    pub(crate) fn fits(&self, text: &str) -> bool {
        ends(text).is_none()
    }

    /// A text with what cannot be seen written out, as far as there is room.
    pub(crate) fn shown(&mut self, text: &str) -> Markup {
        if self.extent != Extent::Ends {
            return marked(self.text(text));
        }
        let Some((head, hidden, tail)) = ends(text) else { return marked(text) };
        // The transcript may have kept no more of a longer text.
        if text.len() >= EXCERPT_PIECE {
            return self.most_of(head, tail);
        }
        let words = match hidden.matches('\n').count() as u64 {
            0 | 1 => size(hidden.len() as u64),
            lines => count(lines, "line"),
        };
        html! { (marked(head)) (self.hidden(&words)) (marked(tail)) }
    }

    /// The ends of a text of which no more may be known, and how long all of it is.
    pub(crate) fn most_of(&mut self, head: &str, tail: &str) -> Markup {
        let bytes = self.rest.as_ref().map_or(0, |it| it.bytes);
        let words = format!("most of {}", size(bytes));
        html! { (marked(first(head))) (self.hidden(&words)) (marked(last(tail))) }
    }

    /// The first and the last of these as `draw` draws them, with how many are between them.
    pub(crate) fn ends_of<T>(
        &mut self,
        items: &[T],
        one: &str,
        mut draw: impl FnMut(&mut Self, &T) -> Markup,
        gap: impl Fn(Markup) -> Markup,
    ) -> Markup {
        let (first, hidden, last) = match self.extent {
            Extent::Ends if items.len() > WHOLE_ITEMS => {
                let (first, rest) = items.split_at(FIRST_ITEMS);
                let (hidden, last) = rest.split_at(rest.len() - LAST_ITEMS);
                (first, hidden.len() as u64, last)
            }
            _ => (items, 0, &[][..]),
        };
        html! {
            @for item in first { (draw(self, item)) }
            @if hidden > 0 { (gap(self.hidden(&count(hidden, one)))) }
            @for item in last { (draw(self, item)) }
        }
    }

    fn hidden(&mut self, what: &str) -> Markup {
        self.was_enough = false;
        html! {
            span.gap {
                (what) " hidden"
                @if let Some(rest) = &self.rest {
                    " · " a.show-all href=(rest.url) data-action="show-all" { "Show all" }
                }
            }
        }
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

    /// Returns whether a value of this size is whole. The transcript may have cut a longer one, so that what is drawn
    /// is only an excerpt, which is noted.
    pub(crate) fn note_excerpt(&mut self, bytes: usize) -> bool {
        let is_all = bytes < EXCERPT_PIECE || self.extent == Extent::Whole;
        self.was_enough &= is_all;
        is_all
    }
}

/// The beginning of a long text, what is between, and its end. None for one that is shown whole.
fn ends(text: &str) -> Option<(&str, &str, &str)> {
    let n_lines = text.split('\n').count();
    if n_lines <= WHOLE.0 && text.len() <= WHOLE.1 {
        return None;
    }
    let head = first(text);
    let rest = &text[head.len()..];
    let tail = last(rest);
    Some((head, &rest[..rest.len() - tail.len()], tail))
}

fn first(text: &str) -> &str {
    let (n_lines, max) = FIRST;
    let end = text.match_indices('\n').nth(n_lines - 1).map_or(text.len(), |(at, _)| at + 1);
    &text[..text.floor_char_boundary(end.min(max))]
}

fn last(text: &str) -> &str {
    let (n_lines, max) = LAST;
    let body = text.strip_suffix('\n').unwrap_or(text);
    let start = body.rmatch_indices('\n').nth(n_lines - 1).map_or(0, |(at, _)| at + 1);
    &text[text.ceil_char_boundary(start.max(text.len().saturating_sub(max)))..]
}

#[cfg(test)]
mod tests {
    //! Nothing gets lost between the ends of a text.

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ends_and_what_is_between_are_the_text(text in "(\\PC{0,80}\n?){0,120}") {
            let Some((head, hidden, tail)) = ends(&text) else {
                prop_assert!(text.len() <= WHOLE.1 && text.lines().count() <= WHOLE.0);
                return Ok(());
            };
            prop_assert_eq!(format!("{head}{hidden}{tail}"), &*text);
            prop_assert!(!head.is_empty() && !hidden.is_empty() && !tail.is_empty());
            prop_assert!(head.len() <= FIRST.1 && tail.len() <= LAST.1);
            prop_assert!(head.lines().count() <= FIRST.0 && tail.lines().count() <= LAST.0);
        }
    }
}
