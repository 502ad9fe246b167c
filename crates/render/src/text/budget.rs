//! How much of a call's arguments or result is drawn.
//!
//! Long texts are cut at the end of a line and long lists after an entry, in drawing order. Whether
//! everything fits depends only on the size of the call, not on how much a transcript keeps, which is always
//! more than a page shows.
//!
//! An approval card shows both ends of each text and the size of the hidden part, so that neither line breaks
//! nor a long line can move something out of sight.

use maud::{Markup, html};
use serde_json::Value;
use transcript::{EXCERPT_PIECE, weight};

use crate::text::invisible::marked;
use crate::text::quantity::{count, size};

/// Number of bytes above which a page cuts a body of a tool call. It is less than a transcript
/// keeps of any text, so that the excerpt depends only on the size.
pub(crate) const INLINE_MAX: u64 = 16_000;
/// Number of bytes shown of the beginning of a body that is cut.
pub(crate) const HEAD: usize = 4_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Everything is drawn if it fits a page, else the beginning that fits.
    Fitting,
    /// Only a beginning is drawn, because not everything fits a page.
    Beginning,
    /// Both ends of each text are drawn, for an approval card.
    Ends,
    /// Everything is drawn, in a standalone file or on request.
    Whole,
}

#[derive(Debug)]
pub(crate) struct SizeBudget {
    pub(crate) detail: Detail,
    left: usize,
    is_complete: bool,
    /// Whether invisible characters are written out, because an approval card shows the text.
    is_for_approval: bool,
    rest: Option<FullText>,
}

/// URL and size of a tool call's complete text, for a link next to an excerpt.
#[derive(Debug)]
pub(crate) struct FullText {
    pub(crate) url: String,
    pub(crate) bytes: u64,
}

/// Lines and bytes up to which an approval card shows a text completely.
const WHOLE: (usize, usize) = (20, 2_000);
/// Lines and bytes that an approval card shows of the beginning of a longer text; `LAST` is for its
/// end.
const FIRST: (usize, usize) = (12, 1_200);
const LAST: (usize, usize) = (6, 600);
/// Number of entries up to which an approval card shows a list completely; `FIRST_ITEMS` and
/// `LAST_ITEMS` are shown of a longer one.
const WHOLE_ITEMS: usize = 40;
const FIRST_ITEMS: usize = 24;
const LAST_ITEMS: usize = 12;

impl SizeBudget {
    pub(crate) fn new(detail: Detail) -> Self {
        let left = match detail {
            Detail::Fitting => INLINE_MAX as usize,
            Detail::Beginning => HEAD,
            Detail::Ends | Detail::Whole => usize::MAX,
        };
        Self { detail, left, is_complete: true, is_for_approval: false, rest: None }
    }

    /// Creates the budget of an approval card. `rest` links to hidden text; without it everything
    /// is shown.
    pub(crate) fn for_approval(rest: Option<FullText>) -> Self {
        let detail = if rest.is_some() { Detail::Ends } else { Detail::Whole };
        Self { rest, is_for_approval: true, ..Self::new(detail) }
    }

    pub(crate) fn is_for_approval(&self) -> bool {
        self.is_for_approval
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the first lines of a text that fit the budget, and uses up their bytes.
    pub(crate) fn text<'a>(&mut self, text: &'a str) -> &'a str {
        let left = self.left;
        if self.take(text.len()) {
            return text;
        }
        let start = &text[..text.floor_char_boundary(left)];
        start.rfind('\n').map_or(start, |at| &start[..=at])
    }

    /// Returns whether an approval card shows a text completely.
    pub(crate) fn fits(&self, text: &str) -> bool {
        ends(text).is_none()
    }

    /// Draws a text as far as it fits the budget, with invisible characters written out.
    pub(crate) fn shown(&mut self, text: &str) -> Markup {
        if self.detail != Detail::Ends {
            return marked(self.text(text));
        }
        let Some((head, hidden, tail)) = ends(text) else { return marked(text) };
        // The transcript may have kept only this much of a longer text.
        if text.len() >= EXCERPT_PIECE {
            return self.most_of(head, tail);
        }
        let words = match hidden.matches('\n').count() as u64 {
            0 | 1 => size(hidden.len() as u64),
            lines => count(lines, "line"),
        };
        html! { (marked(head)) (self.hidden(&words)) (marked(tail)) }
    }

    /// Draws both ends of a text that may be incomplete, with the complete size in between.
    pub(crate) fn most_of(&mut self, head: &str, tail: &str) -> Markup {
        let bytes = self.rest.as_ref().map_or(0, |it| it.bytes);
        let words = format!("most of {}", size(bytes));
        html! { (marked(first(head))) (self.hidden(&words)) (marked(last(tail))) }
    }

    /// Draws the items of a list; for an approval card only the first and last ones, with the
    /// number of hidden items.
    pub(crate) fn ends_of<T>(
        &mut self,
        items: &[T],
        one: &str,
        mut draw: impl FnMut(&mut Self, &T) -> Markup,
        gap: impl Fn(Markup) -> Markup,
    ) -> Markup {
        let (first, hidden, last) = match self.detail {
            Detail::Ends if items.len() > WHOLE_ITEMS => {
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
        self.is_complete = false;
        html! {
            span.gap {
                (what) " hidden"
                @if let Some(rest) = &self.rest {
                    " · " a.show-all href=(rest.url) data-action="show-all" { "Show all" }
                }
            }
        }
    }

    /// Returns the first entries of a list that fit the budget, and uses up their bytes.
    pub(crate) fn items<'a>(&mut self, items: &'a [Value]) -> &'a [Value] {
        let n_shown = items.iter().take_while(|it| self.take(weight(it))).count();
        &items[..n_shown]
    }

    /// Uses up bytes of the budget and returns whether they fit. After a failure nothing fits.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let has_room = bytes <= self.left;
        self.left = if has_room { self.left - bytes } else { 0 };
        self.is_complete &= has_room;
        has_room
    }

    /// Returns whether a value of this size is complete. The transcript may have cut a larger
    /// value, which makes the drawing incomplete.
    pub(crate) fn note_excerpt(&mut self, bytes: usize) -> bool {
        let is_all = bytes < EXCERPT_PIECE || self.detail == Detail::Whole;
        self.is_complete &= is_all;
        is_all
    }
}

/// Splits a long text into beginning, hidden middle and end for an approval card; `None` if it is
/// shown completely.
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ends_and_middle_make_the_text(text in "(\\PC{0,80}\n?){0,120}") {
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
