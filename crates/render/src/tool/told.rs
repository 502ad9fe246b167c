//! What a call's result shows, in the view of its tool, where it did not come as output.

use maud::{Markup, html};
use serde_json::Value;
use transcript::Call;

use super::asked::told_changes;
use super::found::found;
use super::{File, Kind, first_text, result, result_text, result_text_of, subject};
use crate::ansi;
use crate::room::{Extent, Room};
use crate::words::size;

/// With `file` for one that was read; the ids of what is in it begin with `id`.
pub(crate) fn told(
    id: &str,
    call: &Call,
    room: &mut Room,
    file: impl Fn(&File, Extent) -> Markup,
) -> Option<Markup> {
    let value = result(call)?;
    if !call.stdout.is_empty() || told_changes(value).is_some() {
        return None;
    }
    let kind = Kind::of(&call.name);
    let own = match kind {
        Kind::Search => found(value, room),
        Kind::List => value.get("entries").and_then(Value::as_array).map(|it| listed(it, room)),
        Kind::Shell => Some(output(id, value, room)?),
        _ => None,
    };
    if own.is_some() {
        return own;
    }
    let text = room.text(result_text(call)?);
    Some(match subject(call).filter(|_| kind == Kind::Read) {
        Some(path) => file(&File { path, content: text.to_owned() }, room.extent),
        None => html! { div.body tabindex="0" { (text) } },
    })
}

/// What a command has printed, where it is told only when it has ended.
fn output(id: &str, value: &Value, room: &mut Room) -> Option<Markup> {
    let stdout = result_text_of(value).filter(|it| !it.is_empty());
    let stderr = first_text(value, &["stderr"]).filter(|it| !it.is_empty());
    stdout.or(stderr)?;
    let mut body = |stream: &str, text: &str| {
        let (id, text) = (format!("{id}-{stream}"), room.text(text));
        html! { div.body data-stream=(stream) tabindex="0" { (ansi::html(text, &id)) } }
    };
    Some(html! {
        @if let Some(text) = stdout { (body("stdout", text)) }
        @if let Some(text) = stderr { (body("stderr", text)) }
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
