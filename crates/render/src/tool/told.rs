//! What a call's result shows, in the view of its tool, where it did not come as output.

use maud::{Markup, html};
use serde_json::Value;
use transcript::Call;

use super::{File, Kind, first_text, result, result_text, subject};
use crate::ansi;
use crate::room::{Extent, Room};
use crate::words::{count, size};

/// With `file` for one that was read; the ids of what is in it begin with `id`.
pub(crate) fn told(
    id: &str,
    call: &Call,
    room: &mut Room,
    file: impl Fn(&File, Extent) -> Markup,
) -> Option<Markup> {
    let value = result(call)?;
    if !call.stdout.is_empty() || value.get("structuredPatch").is_some() {
        return None;
    }
    let list = |name: &str| value.get(name)?.as_array();
    match Kind::of(&call.name) {
        Kind::Search if let Some(matches) = list("matches") => return Some(found(matches, room)),
        Kind::List if let Some(entries) = list("entries") => return Some(listed(entries, room)),
        _ => (),
    }
    let text = room.text(result_text(call)?);
    Some(match (Kind::of(&call.name), subject(call)) {
        (Kind::Read, Some(path)) => file(&File { path, content: text.to_owned() }, room.extent),
        (Kind::Shell, _) => html! { div.body tabindex="0" { (ansi::html(text, id)) } },
        _ => html! { div.body tabindex="0" { (text) } },
    })
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    first_text(value, &[name]).unwrap_or_default()
}

/// What is in a folder.
fn listed(entries: &[Value], room: &mut Room) -> Markup {
    html! {
        div.body.listed tabindex="0" {
            @if entries.is_empty() { "Nothing is in it" }
            @for entry in room.items(entries) {
                @let bytes = entry.get("size").and_then(Value::as_u64);
                div {
                    span { (word(entry, "name")) @if word(entry, "kind") == "folder" { "/" } }
                    @if let Some(bytes) = bytes { span.meta { (size(bytes)) } }
                    @else if word(entry, "kind") == "link" { span.meta { "link" } }
                }
            }
        }
    }
}

/// Matches of a search, grouped by file.
fn found(matches: &[Value], room: &mut Room) -> Markup {
    let shown = room.items(matches);
    html! {
        p.meta { (count(matches.len() as u64, "match").replace("matchs", "matches")) }
        @for group in shown.chunk_by(|a, b| word(a, "path") == word(b, "path")) {
            p.subject { code { (word(&group[0], "path")) } }
            div.body.matches tabindex="0" {
                @for (idx, hit) in group.iter().enumerate() {
                    @if idx > 0 && has_context(hit) { div.meta { "⋯" } }
                    @for line in lines_of(hit) { (line) }
                }
            }
        }
    }
}

/// The line of a match between those around it, where the tool gave them.
fn lines_of(hit: &Value) -> Vec<Markup> {
    let number = hit.get("line").and_then(Value::as_u64).unwrap_or(0);
    let around = |name: &str| -> Vec<&str> {
        let lines = hit.get(name).and_then(Value::as_array);
        lines.into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let (before, after) = (around("before"), around("after"));
    let first = number.saturating_sub(before.len() as u64);
    let text = word(hit, "text");
    let lines = before.iter().chain([&text]).chain(&after);
    let line = |(number, text): (u64, &&str)| html! { div { span.line { (number) } (text) } };
    (first..).zip(lines).map(line).collect()
}

fn has_context(hit: &Value) -> bool {
    hit.get("before").or_else(|| hit.get("after")).is_some()
}
