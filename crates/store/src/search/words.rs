//! Tokenizer for snippets: splits text into words as FTS5 does, and locates the words of a query.
//!
//! FTS5 decides which items match, but its `highlight()` is quadratic in the number of matches. So
//! match positions are found here, in one pass, with the rules of the tokenizer `unicode61
//! remove_diacritics 2`. Where the two tokenizers disagree, a hit is shown without highlights.

use std::ops::Range;

/// Maximum length of a word in bytes. FTS5 truncates longer words.
const WORD_BYTES: usize = 32_768;
/// Maximum number of words of a phrase that are compared.
const PHRASE_WORDS: usize = 64;

/// Base letters, each with its lowercase forms with diacritics.
const FOLDED: [(char, &str); 25] = [
    ('a', "àáâãäåāăąǎǟǻȁȃȧḁạảấầẩẫậắằẳẵặ"),
    ('b', "ḃḅḇ"),
    ('c', "çćĉċčḉ"),
    ('d', "ďḋḍḏḑḓ"),
    ('e', "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ"),
    ('f', "ḟ"),
    ('g', "ĝğġģǧǵḡ"),
    ('h', "ĥȟḣḥḧḩḫẖ"),
    ('i', "ìíîïĩīĭįǐȉȋḭḯỉị"),
    ('j', "ĵǰ"),
    ('k', "ķǩḱḳḵ"),
    ('l', "ĺļľḷḹḻḽ"),
    ('m', "ḿṁṃ"),
    ('n', "ñńņňǹṅṇṉṋ"),
    ('o', "òóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ"),
    ('p', "ṕṗ"),
    ('r', "ŕŗřȑȓṙṛṝṟ"),
    ('s', "śŝşšſșṡṣṥṧṩẛ"),
    ('t', "ţťțṫṭṯṱẗ"),
    ('u', "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự"),
    ('v', "ṽṿ"),
    ('w', "ŵẁẃẅẇẉẘ"),
    ('x', "ẋẍ"),
    ('y', "ýÿŷȳẏẙỳỵỷỹ"),
    ('z', "źżžẑẓẕ"),
];

/// Iterates over the words of a text. Each word is folded into the same buffer.
struct Words<'a> {
    text: &'a str,
    at: usize,
    folded: String,
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0, folded: String::new() }
    }

    /// Returns the byte range of the next word and leaves the folded word in `folded`. `None` at
    /// the end of the text.
    fn next(&mut self) -> Option<Range<usize>> {
        let rest = &self.text[self.at..];
        let start = self.at + rest.find(is_letter)?;
        self.folded.clear();
        let mut end = self.text.len();
        for (offset, letter) in self.text[start..].char_indices() {
            if !is_letter(letter) && !is_accent(letter) {
                end = start + offset;
                break;
            }
            if self.folded.len() < WORD_BYTES && !is_accent(letter) {
                self.folded.push(fold(letter));
            }
        }
        self.at = end;
        Some(start..end)
    }
}

/// Returns the words of a text, folded.
pub(crate) fn words_of(text: &str) -> impl Iterator<Item = String> {
    let mut words = Words::of(text);
    std::iter::from_fn(move || words.next().map(|_| words.folded.clone()))
}

fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric()
}

/// Returns whether a character is a combining diacritic.
fn is_accent(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{331}')
}

pub(crate) fn fold(letter: char) -> char {
    if letter.is_ascii() {
        return letter.to_ascii_lowercase();
    }
    let mut lower = letter.to_lowercase();
    // Only the dotted capital I becomes two characters; the second is a diacritic.
    let lower = lower.next().unwrap_or(letter);
    match lower {
        'µ' => 'μ',
        'ς' => 'σ',
        '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => {
            FOLDED.iter().find(|it| it.1.contains(lower)).map_or(lower, |it| it.0)
        }
        _ => lower,
    }
}

/// The phrases of a query. Each whitespace-separated word is a phrase of one or more tokenizer
/// words.
pub(crate) struct Phrases(Vec<Phrase>);

struct Phrase {
    words: Vec<String>,
    /// Whether the last word of the phrase matches as a prefix.
    is_prefix: bool,
}

/// An occurrence of a phrase in a text.
pub(crate) struct Match {
    pub(crate) phrase: usize,
    pub(crate) place: Range<usize>,
}

impl Phrases {
    /// Creates the phrases of the words of a query. The last one matches as a prefix.
    pub(crate) fn of<'q>(query: impl IntoIterator<Item = &'q str>) -> Self {
        let phrase = |text: &str| {
            let mut words = Words::of(text);
            let mut phrase = Phrase { words: Vec::new(), is_prefix: false };
            while phrase.words.len() < PHRASE_WORDS && words.next().is_some() {
                phrase.words.push(words.folded.clone());
            }
            phrase
        };
        let mut phrases: Vec<Phrase> = query.into_iter().map(phrase).collect();
        if let Some(last) = phrases.last_mut() {
            last.is_prefix = true;
        }
        phrases.retain(|it| !it.words.is_empty());
        Self(phrases)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the words of all phrases, each with whether it matches as a prefix.
    pub(crate) fn words(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().flat_map(|phrase| {
            let last = phrase.words.len() - 1;
            let is_prefix = move |idx| phrase.is_prefix && idx == last;
            phrase.words.iter().enumerate().map(move |(idx, it)| (it.as_str(), is_prefix(idx)))
        })
    }

    /// Returns whether every phrase occurs in a text.
    pub(crate) fn all_occur(&self, text: &str) -> bool {
        let mut missing: Vec<bool> = vec![true; self.len()];
        self.find(text, |found| {
            missing[found.phrase] = false;
            missing.contains(&true)
        });
        !missing.contains(&true)
    }

    /// Calls `found` with each match in a text, in the order of their ends, until it returns false.
    pub(crate) fn find(&self, text: &str, mut found: impl FnMut(Match) -> bool) {
        let mut words = Words::of(text);
        // Shift-and matching: bit n of a phrase's state is set if its first n + 1 words were just read.
        let mut states = vec![0u64; self.0.len()];
        let mut starts = [0; PHRASE_WORDS];
        for n in 0.. {
            let Some(place) = words.next() else { return };
            starts[n % PHRASE_WORDS] = place.start;
            for (phrase, (state, wanted)) in states.iter_mut().zip(&self.0).enumerate() {
                *state = wanted.step(*state, &words.folded);
                let n_words = wanted.words.len();
                if *state & 1 << (n_words - 1) == 0 {
                    continue;
                }
                let start = starts[(n + 1 - n_words) % PHRASE_WORDS];
                if !found(Match { phrase, place: start..place.end }) {
                    return;
                }
            }
        }
    }
}

impl Phrase {
    /// Returns the matching state of the phrase after one more word: bit n is set if its first n +
    /// 1 words were just read.
    fn step(&self, state: u64, word: &str) -> u64 {
        let reached = state << 1 | 1;
        let last = self.words.len() - 1;
        let mut next = 0;
        for (idx, wanted) in self.words.iter().enumerate() {
            let may_go_on = self.is_prefix && idx == last;
            let is_it = if may_go_on { word.starts_with(wanted) } else { word == wanted };
            next |= u64::from(is_it) << idx;
        }
        reached & next
    }
}
