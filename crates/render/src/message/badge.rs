//! Badges: a small button for each call, after the text, with the call's JSON. Shown if tool calls are
//! displayed as `badges`.

use maud::{Markup, html};
use serde_json::{Map, Value, json};
use transcript::{Call, CallState, RunMessage, Seq};

use crate::html::element::Element;
use crate::html::icon::icon;
use crate::message::call;
use crate::message::long_text::{self, TextStyle};
use crate::message::whole_body::BodyKind;
use crate::message::{badge_id, part_id};
use crate::text::budget::INLINE_MAX;
use crate::view::{View, inline, one_line};

/// Maximum length of long arguments in the tooltip of a badge; the copy button copies all of them.
const SHOWN: usize = 2000;

/// Draws the list of badges of an assistant message, without the badges; `None` if it has no tool
/// calls.
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

/// Draws the badge of a tool call: a button that copies the call, its state, and a link to its
/// block.
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
        // Works without script; with script it does more.
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

/// Draws the icon of a badge, which a copy icon replaces on hover.
fn copied(sign: Markup) -> Markup {
    html! { span.sign { (sign) (icon("copy")) } }
}

/// Draws imported tool calls that cannot be parsed, as one badge with the raw text. A long text
/// shows its first line in the badge and is cut below it; `first` is the text's first record.
pub(crate) fn malformed(view: &View, id: &str, first: Seq, raw: &str) -> Element {
    let is_long = long_text::is_long(raw);
    let label_text = if is_long { one_line(raw, SHOWN) } else { raw.into() };
    let whole = is_long.then(|| long_text::url(view, first));
    let list = Element::div(id).class("tool-calls-container malformed").attr("role", "group");
    list.attr("aria-label", "Tool calls").html(html! {
        (label())
        span.badge {
            button.tool-call-badge.tool-call-badge--fallback type="button" data-action="copy" data-of=".label"
                data-src=[whole] {
                (copied(icon("warning"))) span.label { (label_text) }
            }
        }
        @if is_long { div.body.cut tabindex="0" { (long_text::content(view, id, first, raw, TextStyle::Plain)) } }
    })
}

/// Returns the label of a tool call's badge: the tool's name, numbered if it occurred before, or
/// the raw text of a nameless call that cannot be parsed.
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

/// Returns a tool call as indented JSON, in the form of the OpenAI API; the raw text of a nameless
/// call that cannot be parsed.
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
