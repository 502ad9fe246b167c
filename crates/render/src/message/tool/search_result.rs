//! Search results of a tool: matching lines by file, or file names.
//!
//! Tools return a list of matches, a list of names, or the lines that `grep` prints: `path:line:text`, with
//! `path-line-text` for context lines.

use maud::{Markup, html};
use serde_json::Value;

use super::{first_text, result_text_of};
use crate::text::budget::SizeBudget;
use crate::text::quantity::count;

/// Draws the result of a search tool: matching lines by file, or file names. `None` if it has no
/// known shape.
pub(super) fn search_result(value: &Value, budget: &mut SizeBudget) -> Option<Markup> {
    let list = |name: &str| value.get(name)?.as_array();
    if let Some(matches) = list("matches") {
        let total = number(value, &["total"]).unwrap_or(matches.len() as u64);
        let lines = budget.items(matches).iter().flat_map(lines_of);
        return Some(html! { p.meta { (n_matches(total)) } (by_file(&lines.collect::<Vec<_>>())) });
    }
    let text = result_text_of(value).unwrap_or_default();
    if let Some(names) = list("filenames").filter(|_| text.is_empty()) {
        return Some(files(value, names, budget));
    }
    printed(text)?;
    let lines = printed(budget.text(text)).unwrap_or_default();
    let counted = lines.iter().filter(|it| it.is_match).count() as u64;
    let is_all = budget.note_excerpt(text.len()) && budget.is_complete();
    Some(html! {
        @if is_all { p.meta { (n_matches(counted)) } }
        (by_file(&lines))
    })
}

fn n_matches(n: u64) -> String {
    count(n, "match").replace("matchs", "matches")
}

fn number(value: &Value, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| value.get(name)?.as_u64())
}

fn files(value: &Value, names: &[Value], budget: &mut SizeBudget) -> Markup {
    let total = number(value, &["totalFiles", "totalMatches", "numFiles"]);
    let total = total.unwrap_or(names.len() as u64);
    // Lines were requested, and none match.
    let has_no_line = names.is_empty() && first_text(value, &["mode"]) == Some("content");
    html! {
        p.meta { @if has_no_line { (n_matches(0)) } @else { (count(total, "file")) } }
        @if !names.is_empty() {
            div.body.listed tabindex="0" {
                @for name in budget.items(names).iter().filter_map(Value::as_str) { div { (name) } }
            }
        }
    }
}

struct Line<'a> {
    path: &'a str,
    number: u64,
    text: &'a str,
    is_match: bool,
    /// Whether lines of the file are omitted before this line.
    is_apart: bool,
}

/// Returns the line of one match, with its context lines if the search tool returned them.
fn lines_of(hit: &Value) -> Vec<Line<'_>> {
    let (before, after) = (texts(hit, "before"), texts(hit, "after"));
    let path = first_text(hit, &["path"]).unwrap_or_default();
    let text = first_text(hit, &["text"]).unwrap_or_default();
    let first = number(hit, &["line"]).unwrap_or(0).saturating_sub(before.len() as u64);
    let has_context = hit.get("before").or_else(|| hit.get("after")).is_some();
    let lines = before.iter().copied().chain([text]).chain(after);
    let line = |(idx, text)| Line {
        path,
        number: first + idx as u64,
        text,
        is_match: idx == before.len(),
        is_apart: has_context && idx == 0,
    };
    lines.enumerate().map(line).collect()
}

fn texts<'a>(value: &'a Value, name: &str) -> Vec<&'a str> {
    let lines = value.get(name).and_then(Value::as_array);
    lines.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Parses the lines that `grep` prints; `None` if any other line is among them.
fn printed(text: &str) -> Option<Vec<Line<'_>>> {
    let mut paths: Vec<&str> = text.lines().filter_map(|it| Some(split(it, ':')?.0)).collect();
    paths.dedup();
    let mut lines = Vec::new();
    let mut is_apart = false;
    for line in text.lines().filter(|it| !it.is_empty()) {
        if line == "--" {
            is_apart = true;
            continue;
        }
        let is_near =
            |path: &&&str| line.strip_prefix(**path).is_some_and(|it| it.starts_with('-'));
        let around = paths.iter().find(is_near).and_then(|path| {
            let (rest, number, text) = split(&line[path.len()..], '-')?;
            rest.is_empty().then_some((*path, number, text))
        });
        let is_match = around.is_none();
        let (path, number, text) = around.or_else(|| split(line, ':'))?;
        lines.push(Line { path, number, text, is_match, is_apart: std::mem::take(&mut is_apart) });
    }
    (!lines.is_empty()).then_some(lines)
}

/// Splits a line of `grep` at the first number between two marks: path, number, text. If only one
/// file was searched, the path is empty.
fn split(line: &str, mark: char) -> Option<(&str, u64, &str)> {
    let numbered = |at: usize| {
        let (digits, text) = line[at..].split_once(mark)?;
        Some((digits.parse().ok()?, text))
    };
    if let Some((number, text)) = numbered(0) {
        return Some(("", number, text));
    }
    line.match_indices(mark).find_map(|(at, _)| {
        let (number, text) = numbered(at + 1)?;
        Some((&line[..at], number, text))
    })
}

fn by_file(lines: &[Line<'_>]) -> Markup {
    html! {
        @for group in lines.chunk_by(|a, b| a.path == b.path) {
            @if !group[0].path.is_empty() { p.subject { code { (group[0].path) } } }
            div.body.matches tabindex="0" {
                @for (idx, line) in group.iter().enumerate() {
                    @if idx > 0 && line.is_apart { div.meta { "⋯" } }
                    div { span.line { (line.number) } (line.text) }
                }
            }
        }
    }
}
