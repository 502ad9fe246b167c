//! Snippets: the part of a text that shows the most of what was looked for.
//!
//! Made here and not by FTS5, whose own function takes time by the square of the matches: minutes
//! for a common word in a long output. This one looks at each match twice.

use std::collections::HashMap;
use std::ops::Range;

/// Around matches, in a text where they are marked; the text itself has no such characters.
pub(crate) const MATCH_START: char = '\u{2}';
pub(crate) const MATCH_END: char = '\u{3}';

/// Of a snippet, in bytes: all of it at most, and before the first match.
const LENGTH: usize = 200;
const LEAD: usize = 40;

/// Pieces of the text, and which of them are matches.
pub(crate) fn snippet(marked: &str) -> Vec<(String, bool)> {
    let (text, matches) = unmark(marked);
    let Some(first) = matches.get(best_start(&text, &matches)) else {
        return Vec::new();
    };
    let start = start_before(&text, first.start);
    let end = floor(&text, start + LENGTH);

    let mut pieces = Pieces::default();
    pieces.push(if start > 0 { "…" } else { "" }, false);
    let mut at = start;
    for found in matches.iter().filter(|it| it.start >= start && it.start < end) {
        pieces.push(&text[at..found.start], false);
        at = found.end.min(end);
        pieces.push(&text[found.start..at], true);
    }
    pieces.push(&text[at..end], false);
    pieces.push(if end < text.len() { "…" } else { "" }, false);
    pieces.0
}

/// The last place at or before `at` where a character begins.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&it| text.is_char_boundary(it)).unwrap_or(0)
}

#[derive(Default)]
struct Pieces(Vec<(String, bool)>);

impl Pieces {
    /// Neighbours of one kind become one piece.
    fn push(&mut self, text: &str, is_match: bool) {
        match self.0.last_mut() {
            _ if text.is_empty() => (),
            Some((last, of_kind)) if *of_kind == is_match => last.push_str(text),
            _ => self.0.push((text.to_owned(), is_match)),
        }
    }
}

/// The text as it is, and where in it the matches are.
fn unmark(marked: &str) -> (String, Vec<Range<usize>>) {
    let mut text = String::with_capacity(marked.len());
    let mut matches = Vec::new();
    let mut is_match = false;
    for piece in marked.split([MATCH_START, MATCH_END]) {
        let start = text.len();
        text.push_str(piece);
        if is_match {
            matches.push(start..text.len());
        }
        is_match = !is_match;
    }
    (text, matches)
}

/// The match from which on a snippet has the most different words; the first of equal ones.
fn best_start(text: &str, matches: &[Range<usize>]) -> usize {
    let words: Vec<String> = matches.iter().map(|it| text[it.clone()].to_lowercase()).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let (mut best, mut most, mut end) = (0, 0, 0);
    for start in 0..matches.len() {
        while end < matches.len() && matches[end].end <= matches[start].start + LENGTH - LEAD {
            *counts.entry(&words[end]).or_default() += 1;
            end += 1;
        }
        if counts.len() > most {
            (best, most) = (start, counts.len());
        }
        // One that alone is longer than a snippet was never counted.
        end = end.max(start + 1);
        if let Some(count) = counts.get_mut(words[start].as_str()) {
            *count -= 1;
            if *count == 0 {
                counts.remove(words[start].as_str());
            }
        }
    }
    best
}

/// Where to begin so that something is seen before the match; at a word's start, if one is near.
fn start_before(text: &str, at: usize) -> usize {
    let start = floor(text, at.saturating_sub(LEAD));
    if start == 0 {
        return 0;
    }
    text[start..at].find(char::is_whitespace).map_or(start, |space| start + space + 1)
}
