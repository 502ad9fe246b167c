//! Lines that match a pattern, with context lines.

use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum number of characters of a line in the search results. A longer line is cut to the part
/// around its match.
const MAX_LINE_CHARS: usize = 200;
/// Number of characters that are kept before the match when a line of the search results is cut.
const LEAD_CHARS: usize = 50;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Case {
    #[default]
    Smart,
    Sensitive,
    Insensitive,
}

pub(super) struct Lines {
    pattern: Regex,
    context: usize,
}

pub(super) struct Found<'a> {
    /// Number of the matching line in its file, from 1.
    number: usize,
    text: String,
    before: &'a [&'a str],
    after: &'a [&'a str],
}

impl Lines {
    /// Compiles the regular expression of a search. The cost of a search is linear in the size of
    /// the text for every expression.
    pub(super) fn new(query: &str, case: Case, context: usize) -> Result<Self, String> {
        let ignores_case = match case {
            Case::Smart => !has_capital(query),
            Case::Sensitive => false,
            Case::Insensitive => true,
        };
        let pattern = RegexBuilder::new(query).case_insensitive(ignores_case).build();
        Ok(Self { pattern: pattern.map_err(|error| error.to_string())?, context })
    }

    /// Calls `take` for each line of the text that matches the pattern, until `take` returns false.
    pub(super) fn find(&self, text: &str, mut take: impl FnMut(Found<'_>) -> bool) {
        let lines: Vec<&str> = text.lines().collect();
        for (idx, line) in lines.iter().enumerate() {
            let Some(hit) = self.pattern.find(line) else { continue };
            let after = (idx + 1 + self.context).min(lines.len());
            let found = Found {
                number: idx + 1,
                text: cut(line, hit.start()),
                before: &lines[idx.saturating_sub(self.context)..idx],
                after: &lines[idx + 1..after],
            };
            if !take(found) {
                return;
            }
        }
    }
}

impl Found<'_> {
    pub(super) fn describe(&self, path: &str) -> Value {
        let mut found = json!({"path": path, "line": self.number, "text": self.text});
        for (name, lines) in [("before", self.before), ("after", self.after)] {
            if !lines.is_empty() {
                found[name] = lines.iter().map(|it| cut(it, 0)).collect();
            }
        }
        found
    }
}

/// Returns whether the search query has a capital letter, not counting escapes such as `\S`.
fn has_capital(query: &str) -> bool {
    let mut letters = query.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter.is_uppercase() {
            return true;
        }
    }
    false
}

/// Cuts a long line of the search results around the match that starts at byte `at`.
fn cut(line: &str, at: usize) -> String {
    let n_chars = line.chars().count();
    if n_chars <= MAX_LINE_CHARS {
        return line.to_owned();
    }
    let before = line[..at].chars().count();
    let from = before.saturating_sub(LEAD_CHARS).min(n_chars - MAX_LINE_CHARS);
    let part: String = line.chars().skip(from).take(MAX_LINE_CHARS).collect();
    let (start, end) = (from > 0, from + MAX_LINE_CHARS < n_chars);
    let dots = |is_cut: bool| if is_cut { "…" } else { "" };
    format!("{}{part}{}", dots(start), dots(end))
}
