//! Snippets: the part of a text with the most phrases of the query.
//!
//! The work is linear in the text up to the chosen place. It ends early where all phrases of the
//! query occur together; for a query of one word that is the first match.

use std::collections::VecDeque;
use std::ops::Range;

use crate::search::words::{Match, Phrases};

/// Maximum length of a snippet in bytes. `LEAD` is the maximum length before its first match.
const LENGTH: usize = 200;
const LEAD: usize = 40;

/// Returns the snippet of a text in pieces, each with whether it is a match. Without any match, the
/// snippet is the beginning of the text.
pub(crate) fn snippet(text: &str, phrases: &Phrases) -> Vec<(String, bool)> {
    let start = best_start(text, phrases).map_or(0, |at| start_before(text, at));
    let end = floor(text, start + LENGTH);

    let mut pieces = Pieces::default();
    pieces.push(if start > 0 { "…" } else { "" }, false);
    let mut at = start;
    for found in matches_in(text, phrases, start..end) {
        // Phrases may overlap.
        let from = found.start.max(at);
        pieces.push(&text[at..from], false);
        at = found.end.min(end).max(from);
        pieces.push(&text[from..at], true);
    }
    pieces.push(&text[at..end], false);
    pieces.push(if end < text.len() { "…" } else { "" }, false);
    pieces.0
}

/// Returns the last UTF-8 boundary of a text at or before the byte offset `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&it| text.is_char_boundary(it)).unwrap_or(0)
}

#[derive(Default)]
struct Pieces(Vec<(String, bool)>);

impl Pieces {
    /// Appends a text, to the last piece if both are matches or neither is.
    fn push(&mut self, text: &str, is_match: bool) {
        match self.0.last_mut() {
            _ if text.is_empty() => (),
            Some((last, of_kind)) if *of_kind == is_match => last.push_str(text),
            _ => self.0.push((text.to_owned(), is_match)),
        }
    }
}

/// Returns the matches that begin within a byte range of a text, ordered by start.
fn matches_in(text: &str, phrases: &Phrases, range: Range<usize>) -> Vec<Range<usize>> {
    let mut matches = Vec::new();
    // A phrase may end behind the range. The text is cut between words, since a part of a word is another
    // word.
    let behind = floor(text, range.end + LENGTH);
    let behind = text[behind..].find(char::is_whitespace).map_or(text.len(), |it| behind + it);
    phrases.find(&text[..behind], |Match { place, .. }| {
        if range.contains(&place.start) {
            matches.push(place);
        }
        true
    });
    matches.sort_by_key(|it| it.start);
    matches
}

/// Returns the start of the match from which a snippet covers the most phrases, the first of equal
/// ones; `None` if nothing matches.
fn best_start(text: &str, phrases: &Phrases) -> Option<usize> {
    let mut window =
        Window { matches: VecDeque::new(), counts: vec![0; phrases.len()], n_phrases: 0 };
    let (mut first, mut best, mut most) = (None, None, 0);
    phrases.find(text, |found| {
        first.get_or_insert(found.place.start);
        window.push(found);
        if window.n_phrases > most {
            (best, most) = (window.matches.front().map(|it| it.place.start), window.n_phrases);
        }
        most < phrases.len()
    });
    // A match that is longer than a snippet is in no window.
    best.or(first)
}

/// Matches that fit together into one snippet.
struct Window {
    matches: VecDeque<Match>,
    /// Number of matches of each phrase in the window.
    counts: Vec<usize>,
    n_phrases: usize,
}

impl Window {
    /// Adds a match at the end of the window, and drops those at the beginning that are too far
    /// from it.
    fn push(&mut self, found: Match) {
        let end = found.place.end;
        self.count(found.phrase, true);
        self.matches.push_back(found);
        while self.matches.front().is_some_and(|it| end > it.place.start + LENGTH - LEAD) {
            let front = self.matches.pop_front();
            front.into_iter().for_each(|it| self.count(it.phrase, false));
        }
    }

    fn count(&mut self, phrase: usize, is_added: bool) {
        let count = &mut self.counts[phrase];
        let was_there = *count > 0;
        *count = if is_added { *count + 1 } else { *count - 1 };
        match (was_there, *count > 0) {
            (false, true) => self.n_phrases += 1,
            (true, false) => self.n_phrases -= 1,
            _ => (),
        }
    }
}

/// Returns the start of a snippet so that it has some text before the match at `at`; at the start
/// of a word, if one is near.
fn start_before(text: &str, at: usize) -> usize {
    let start = floor(text, at.saturating_sub(LEAD));
    if start == 0 {
        return 0;
    }
    let mut letters = text[start..at].char_indices().skip_while(|it| !it.1.is_whitespace());
    letters.nth(1).map_or(start, |(offset, _)| start + offset)
}
