//! Diffs of texts, line by line, with changed words marked.
//!
//! A diff is computed from two texts, or parsed from a patch that a tool reported.

mod numbered;
mod patch;
#[cfg(test)]
mod tests;

use std::ops::Range;

use maud::{Markup, html};
use similar::{Algorithm, ChangeTag, DiffOp, DiffTag, TextDiff};

pub use numbered::numbered;
pub use patch::{patch, verbatim};

use crate::text::budget::{Detail, SizeBudget};

/// Number of context lines that a diff shows around a change.
const CONTEXT: usize = 3;
/// Maximum number of rows that a diff shows; the counts of changed lines stay complete.
const MAX_ROWS: usize = 20_000;
/// Maximum product of differing lines before and after, up to which two texts are compared line by
/// line.
const MAX_COMPARED: usize = 4 << 20;
/// Maximum number of bytes of a replacement that is compared word by word.
const MAX_WORDS: usize = 16 << 10;

/// Line-by-line diff of two texts.
pub struct Diff {
    rows: Vec<Row>,
    n_left_out: usize,
    /// Number of added lines in the complete diff.
    pub added: usize,
    /// Number of removed lines in the complete diff.
    pub removed: usize,
}

impl Diff {
    /// Draws the first rows of the diff that fit the budget; on an approval card the first and last
    /// rows.
    pub(crate) fn html(&self, budget: &mut SizeBudget) -> Markup {
        let n_shown = self.rows.iter().take_while(|it| budget.take(it.weight())).count();
        let shown = &self.rows[..n_shown];
        let gap = |words| html! { tr.diff-gap { td colspan="4" { (words) } } };
        let has_numbers = self.rows.iter().any(|it| it.numbers != (None, None));
        html! {
            @if self.rows.is_empty() {
                p.diff-empty { "No change" @if budget.detail == Detail::Beginning { " in its first lines" } }
            }
            @else {
                table.diff.unnumbered[!has_numbers] tabindex="0" { tbody { (budget.ends_of(shown, "line", |budget, row| row.html(budget), gap)) } }
                @if self.n_left_out > 0 { p.diff-cut { (self.n_left_out) " more lines" } }
            }
        }
    }
}

/// Computes the line-by-line diff of two texts. Lines are numbered from `first_line`, if known.
pub fn texts(before: &str, after: &str, first_line: Option<usize>) -> Diff {
    let diff = match shared_ends(before, after) {
        Some((head, tail)) => return replaced(before, after, head, tail, first_line),
        None => TextDiff::configure().algorithm(Algorithm::Myers).diff_lines(before, after),
    };
    // An excerpt of a file often has no newline at its end; only a change of that is shown.
    let newline_changed = before.ends_with('\n') != after.ends_with('\n');
    let mut rows = Rows { marks_newline: newline_changed, ..Rows::default() };
    for (n, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        let starts_later = group.first().is_some_and(|it| it.old_range().start > 0);
        if n > 0 || starts_later {
            rows.push(Row::gap());
        }
        for op in group {
            push_op(&mut rows, &diff, op, first_line);
        }
    }
    rows.finish()
}

fn push_op(rows: &mut Rows, diff: &TextDiff<'_, '_, str>, op: &DiffOp, first: Option<usize>) {
    let number = |index: Option<usize>| Some(first? + index?);
    let is_short =
        op.old_range().len() + op.new_range().len() < 400 && n_bytes(diff, op) <= MAX_WORDS;
    if op.tag() == DiffTag::Replace && is_short {
        // The other variant of this call reads the clock.
        for change in diff.iter_inline_changes_deadline(op, None) {
            let words =
                change.values().iter().map(|(is_changed, it)| (*is_changed, (*it).to_owned()));
            let mut row = Row::of(change.tag(), words.collect());
            row.numbers = (number(change.old_index()), number(change.new_index()));
            row.lacks_newline = change.missing_newline();
            rows.push(row);
        }
    } else {
        for change in diff.iter_changes(op) {
            let mut row = Row::of(change.tag(), vec![(false, change.value().to_owned())]);
            row.numbers = (number(change.old_index()), number(change.new_index()));
            row.lacks_newline = change.missing_newline();
            rows.push(row);
        }
    }
}

fn n_bytes(diff: &TextDiff<'_, '_, str>, op: &DiffOp) -> usize {
    let old = op.old_range().filter_map(|it| diff.old_slice(it));
    let new = op.new_range().filter_map(|it| diff.new_slice(it));
    old.chain(new).map(str::len).sum()
}

/// Returns the number of equal lines at both ends of two texts; `None` if the middle is small
/// enough to compare.
fn shared_ends(before: &str, after: &str) -> Option<(usize, usize)> {
    let (old, new): (Vec<_>, Vec<_>) = (lines(before), lines(after));
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let pairs = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = pairs.take_while(|(a, b)| a == b).count();
    let n_compared = (old_rest.len() - tail).saturating_mul(new_rest.len() - tail);
    (n_compared > MAX_COMPARED).then_some((head, tail))
}

/// Creates the diff of two texts that shows everything between their equal ends as one change.
fn replaced(before: &str, after: &str, head: usize, tail: usize, first: Option<usize>) -> Diff {
    let (old, new) = (lines(before), lines(after));
    let mut rows = Rows::default();
    if head > 0 {
        rows.push(Row::gap());
    }
    let mut push = |tag: ChangeTag, lines: &[&str], range: Range<usize>| {
        for at in range {
            let mut row = Row::of(tag, vec![(false, lines[at].to_owned())]);
            let number = first.map(|it| it + at);
            row.numbers = if tag == ChangeTag::Delete { (number, None) } else { (None, number) };
            rows.push(row);
        }
    };
    push(ChangeTag::Delete, &old, head..old.len() - tail);
    push(ChangeTag::Insert, &new, head..new.len() - tail);
    rows.finish()
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Same,
    Added,
    Removed,
    /// A row for omitted lines.
    Gap,
    /// A row for a header line of a patch.
    Heading,
}

struct Row {
    kind: Kind,
    numbers: (Option<usize>, Option<usize>),
    /// Fragments of the line, each with whether it changed.
    words: Vec<(bool, String)>,
    lacks_newline: bool,
}

impl Row {
    fn new(kind: Kind, text: &str) -> Self {
        let words = vec![(false, text.to_owned())];
        Self { kind, numbers: (None, None), words, lacks_newline: false }
    }

    fn of(tag: ChangeTag, words: Vec<(bool, String)>) -> Self {
        let kind = match tag {
            ChangeTag::Equal => Kind::Same,
            ChangeTag::Delete => Kind::Removed,
            ChangeTag::Insert => Kind::Added,
        };
        Self { kind, numbers: (None, None), words, lacks_newline: false }
    }

    fn gap() -> Self {
        Self::new(Kind::Gap, "")
    }

    fn weight(&self) -> usize {
        1 + self.words.iter().map(|(_, it)| it.len()).sum::<usize>()
    }

    fn html(&self, budget: &mut SizeBudget) -> Markup {
        let (class, mark) = match self.kind {
            Kind::Same => ("diff-same", " "),
            Kind::Added => ("diff-added", "+"),
            Kind::Removed => ("diff-removed", "-"),
            Kind::Gap => return html! { tr.diff-gap { td colspan="4" { "⋯" } } },
            Kind::Heading => {
                let text: String = self.words.iter().map(|(_, it)| it.as_str()).collect();
                return html! { tr.diff-heading { td colspan="4" { (cell_text(&text, budget)) } } };
            }
        };
        html! {
            tr class=(class) {
                // Numbers are shown by the stylesheet, so that they are not copied with the lines.
                td.diff-number data-line=[self.numbers.0] {}
                td.diff-number data-line=[self.numbers.1] {}
                td.diff-mark { (mark) }
                td.diff-text {
                    @for (is_changed, text) in &self.words {
                        @let text = without_break(text, budget);
                        @if *is_changed && !text.is_empty() { mark { (cell_text(text, budget)) } }
                        @else { (cell_text(text, budget)) }
                    }
                    @if self.lacks_newline { span.diff-note title="No newline at the end" { "⏎" } }
                }
            }
        }
    }
}

/// Removes the line break at the end of a diff line, but on an approval card keeps a carriage
/// return, which could hide something.
fn without_break<'a>(text: &'a str, budget: &SizeBudget) -> &'a str {
    match budget.is_for_approval() {
        true => text.strip_suffix('\n').unwrap_or(text),
        false => text.trim_end_matches(['\n', '\r']),
    }
}

fn cell_text(text: &str, budget: &mut SizeBudget) -> Markup {
    if budget.is_for_approval() {
        budget.shown(text)
    } else {
        html! { (text) }
    }
}

/// Rows of a diff that are shown, and the counts of all its rows.
#[derive(Default)]
struct Rows {
    shown: Vec<Row>,
    /// Whether rows of lines that lack a newline at the end are marked.
    marks_newline: bool,
    n_left_out: usize,
    added: usize,
    removed: usize,
}

impl Rows {
    fn push(&mut self, mut row: Row) {
        row.lacks_newline &= self.marks_newline;
        self.added += usize::from(row.kind == Kind::Added);
        self.removed += usize::from(row.kind == Kind::Removed);
        if self.shown.len() < MAX_ROWS {
            self.shown.push(row);
        } else {
            self.n_left_out += 1;
        }
    }

    fn finish(self) -> Diff {
        let Self { shown: rows, n_left_out, added, removed, .. } = self;
        Diff { rows, n_left_out, added, removed }
    }
}
