//! Views of a call's result, by tool, if it was not streamed as output.

use maud::{Markup, html};
use serde_json::Value;
use transcript::Call;

use super::arguments::reported_changes;
use super::search_result::search_result;
use super::{File, Kind, first_text, result, result_text, result_text_of, subject};
use crate::text::ansi;
use crate::text::budget::{Detail, SizeBudget};
use crate::text::quantity::size;

/// Draws the result of a tool call, with `file` for a file that was read; ids inside begin with
/// `id`. `None` if there is nothing to show that the block does not already show.
pub(crate) fn result_view(
    id: &str,
    call: &Call,
    budget: &mut SizeBudget,
    file: impl Fn(&File, Detail) -> Markup,
) -> Option<Markup> {
    let value = result(call)?;
    if !call.stdout.is_empty() || reported_changes(value).is_some() {
        return None;
    }
    let kind = Kind::of(&call.name);
    let own = match kind {
        Kind::Search => search_result(value, budget),
        Kind::List => value.get("entries").and_then(Value::as_array).map(|it| listed(it, budget)),
        Kind::Shell => Some(output(id, value, budget)?),
        _ => None,
    };
    if own.is_some() {
        return own;
    }
    let text = budget.text(result_text(call)?);
    Some(match subject(call).filter(|_| kind == Kind::Read) {
        Some(path) => file(&File { path, content: text.to_owned() }, budget.detail),
        None => html! { div.body tabindex="0" { (text) } },
    })
}

/// Draws the output of a command whose tool reports it only at the end.
fn output(id: &str, value: &Value, budget: &mut SizeBudget) -> Option<Markup> {
    let stdout = result_text_of(value).filter(|it| !it.is_empty());
    let stderr = first_text(value, &["stderr"]).filter(|it| !it.is_empty());
    stdout.or(stderr)?;
    let mut body = |stream: &str, text: &str| {
        let (id, text) = (format!("{id}-{stream}"), budget.text(text));
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

/// Draws the entries of a folder that a tool has listed.
fn listed(entries: &[Value], budget: &mut SizeBudget) -> Markup {
    html! {
        div.body.listed tabindex="0" {
            @if entries.is_empty() { "Nothing is in it" }
            @for entry in budget.items(entries) {
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
