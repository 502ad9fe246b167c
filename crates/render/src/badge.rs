//! For the look `badges`: a small button for each call, after the text, with the call's JSON.

use maud::{Markup, html};
use serde_json::{Map, Value, json};
use transcript::{Call, CallState, RunMessage, Seq};

use crate::call;
use crate::icon::icon;
use crate::long::{self, Style};
use crate::message::{badge_id, part_id};
use crate::room::INLINE_MAX;
use crate::tree::Element;
use crate::view::{BodyKind, View, inline, one_line};

/// How much of very long arguments the tooltip shows; all of them are copied.
const SHOWN: usize = 2000;

/// The list without its badges; none where there was no call.
pub(crate) fn list(id: &str, answer: &RunMessage) -> Option<Element> {
    if answer.n_calls() == 0 {
        return None;
    }
    let list = Element::div(id).class("tool-calls-container").attr("role", "group");
    Some(list.attr("aria-label", "Tool calls").html(label()))
}

fn label() -> Markup {
    html! { (icon("wrench")) span { "Tool calls:" } }
}

/// The badge of a part that is a call: copies the call, shows its state, and leads to its block.
pub(crate) fn badge(
    view: &View,
    message: &str,
    idx: usize,
    answer: &RunMessage,
    call: &Call,
) -> Element {
    let id = badge_id(message, idx);
    let tip = format!("{id}-tip");
    let label = label_of(answer, call);
    let is_fallback = call.is_nameless() && call.arguments_done && !parses(call);
    let class =
        if is_fallback { "tool-call-badge tool-call-badge--fallback" } else { "tool-call-badge" };
    let whole = (call.arguments_done && call.input().bytes() > INLINE_MAX)
        .then(|| view.body_url(call, BodyKind::Call));
    let (sign, word) = call::state(call);
    let word = call::retrying(call).unwrap_or_else(|| word.to_owned());
    let is_done = call.state == CallState::Succeeded;
    let sign = if is_done { icon("wrench") } else { sign };
    let button = Element::new("button", format!("{id}-b"))
        .class(class)
        .attr("type", "button")
        .attr("data-action", "copy")
        .attr("data-of", ".tooltip")
        .attr_if("data-src", whole)
        .attr("aria-label", format!("Tool call: {label}"))
        // For readers without the script, which does more.
        .attr("popovertarget", tip.clone())
        .attr("aria-describedby", tip.clone())
        .html(html! { (copied(sign)) span.label { (label) } });
    let state = Element::new("span", format!("{id}-s")).class("state").text(&word);
    let block = call::details_id(&part_id(message, idx));
    let open = Element::new("a", format!("{id}-o"))
        .class("open-call")
        .attr("href", format!("#{block}"))
        .attr("data-action", "open-call")
        .attr("aria-label", format!("Show call: {label}, {word}"))
        .html(icon("chevron"));
    let tooltip = Element::div(tip)
        .class("tooltip")
        .attr("role", "tooltip")
        .attr("popover", "manual")
        .attr("tabindex", "0")
        .text(&payload(call, inline(call.input())));
    let why = call::failure_line(call)
        .map(|it| Element::new("span", format!("{id}-x")).class("why").text(&it));
    Element::new("span", id)
        .class("badge")
        .attr("data-state", call.state.as_str())
        .child(button)
        .child(tooltip)
        .child_if((!is_done).then_some(state))
        .child(open)
        .child_if(why)
}

/// The sign of a badge, in whose place the sign for copying comes while the pointer is there.
fn copied(sign: Markup) -> Markup {
    html! { span.sign { (sign) (icon("copy")) } }
}

/// Stored calls that cannot be read, as one badge with the raw text. A long text has its first line there, and
/// stands below as long texts do: `first` is the record that it begins with.
pub(crate) fn malformed(view: &View, id: &str, first: Seq, raw: &str) -> Element {
    let is_long = long::is_long(raw);
    let label_text = if is_long { one_line(raw, SHOWN) } else { raw.into() };
    let whole = is_long.then(|| long::url(view, first));
    let list = Element::div(id).class("tool-calls-container malformed").attr("role", "group");
    list.attr("aria-label", "Tool calls").html(html! {
        (label())
        span.badge {
            button.tool-call-badge.tool-call-badge--fallback type="button" data-action="copy" data-of=".label"
                data-src=[whole] {
                (copied(icon("warning"))) span.label { (label_text) }
            }
        }
        @if is_long { div.body.cut tabindex="0" { (long::words(view, id, first, raw, Style::Plain)) } }
    })
}

/// The name, with a number where it was there before; the raw text of a call that cannot be read.
fn label_of(answer: &RunMessage, call: &Call) -> String {
    if call.is_nameless() {
        let raw = inline(call.input())
            .filter(|it| call.arguments_done && !it.is_empty() && !parses(call));
        return raw.unwrap_or_else(|| call.label());
    }
    let name = call.name.trim();
    match answer.n_before(call) {
        0 => name.to_owned(),
        n => format!("{name} #{}", n + 1),
    }
}

fn parses(call: &Call) -> bool {
    call.input().is_empty()
        || inline(call.input()).is_some_and(|it| serde_json::from_str::<Value>(&it).is_ok())
}

/// The call as the provider's API has it, indented by two; where nothing of it can be read, its raw text.
pub(crate) fn payload(call: &Call, arguments: Option<String>) -> String {
    let arguments = match arguments {
        _ if !call.arguments_done => json!({}),
        Some(text) if text.is_empty() => json!({}),
        Some(text) => match serde_json::from_str(&text) {
            Ok(value) => value,
            Err(_) if call.is_nameless() => return text,
            Err(_) => Value::String(text),
        },
        None => {
            let head = call.input().head();
            Value::String(format!("{}…", &head[..head.floor_char_boundary(SHOWN)]))
        }
    };
    let mut function = Map::new();
    if !call.is_nameless() {
        function.insert("name".to_owned(), json!(call.name));
    }
    function.insert("arguments".to_owned(), arguments);
    let mut payload = Map::new();
    if let Some(id) = call.provider_call_id.as_ref().filter(|it| !it.is_empty()) {
        payload.insert("id".to_owned(), json!(id));
    }
    payload.insert("type".to_owned(), json!("function"));
    payload.insert("function".to_owned(), Value::Object(function));
    serde_json::to_string_pretty(&payload).unwrap_or_default()
}
