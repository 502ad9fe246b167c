//! One part of an answer as one element.

use maud::{Markup, PreEscaped, html};
use transcript::{Level, Part, PartKind, Seq, SteerState, Steered, Text, TextRole, Thinking};

use crate::html::element::Element;
use crate::html::icon::icon;
use crate::message::long_text::{self, TextStyle};
use crate::message::{badge, call, exchange};
use crate::text::markdown;
use crate::text::quantity::{between, count};
use crate::view::View;

/// Source that imports give to stored tool calls that cannot be read.
const STORED_CALLS: &str = "toolCalls";

/// Number of characters above which undecided text is shown immediately if `reveal` is `smart`.
const SHORT_CHARS: usize = 240;
/// Milliseconds after which undecided text is shown if `reveal` is `smart`.
const SHORT_MS: u64 = 1200;
/// Maximum number of characters of current thinking that the summary of its block shows.
const MAX_LAST_LINE: usize = 120;

/// Number of characters above which a message is folded; `FOLDED_LINES` is the same limit in lines.
const FOLDED_CHARS: usize = 1500;
const FOLDED_LINES: usize = 20;

/// Draws a part of an assistant message, without the nested parts of a tool call.
pub(crate) fn part(view: &View, id: &str, part: &Part) -> Element {
    match &part.kind {
        PartKind::Text(text) if long_text::is_long(&text.text) => {
            let (shell, style) =
                (text_shell(view, id, part, text), TextStyle::Markdown { open: text.open });
            long_text::fill(shell, view, id, part.first, &text.text, style)
        }
        PartKind::Text(text) => {
            let blocks = match text.open {
                true => markdown::open(&text.text, id),
                false => markdown::closed(&text.text, id),
            };
            let markup = PreEscaped(markdown::html(&blocks));
            text_shell(view, id, part, text).html(markup)
        }
        PartKind::Thinking(thinking) => thought(view, id, part, thinking, &thinking.text),
        PartKind::Call(it) => call::block(view, id, it, part.first),
        PartKind::Exchange(_) => aside(view, id, part.first, &part.kind),
        kind => aside(view, id, part.first, kind).child_if(view.raw_link(id, part.first)),
    }
}

/// A text or thinking part that can grow: its element without the content, and the content. A long
/// text is cut, and is patched like other parts.
pub(crate) struct Growing<'a> {
    pub(crate) shell: Element,
    pub(crate) text: &'a str,
    pub(crate) open: bool,
    pub(crate) is_markdown: bool,
}

pub(crate) fn growing<'a>(view: &View, id: &str, part: &'a Part) -> Option<Growing<'a>> {
    match &part.kind {
        PartKind::Text(Text { text, .. }) | PartKind::Thinking(Thinking { text, .. })
            if long_text::is_long(text) =>
        {
            None
        }
        PartKind::Text(it) => {
            let shell = text_shell(view, id, part, it);
            Some(Growing { shell, text: &it.text, open: it.open, is_markdown: true })
        }
        PartKind::Thinking(it) => {
            let shell = thought(view, id, part, it, "");
            Some(Growing { shell, text: &it.text, open: it.open, is_markdown: false })
        }
        _ => None,
    }
}

/// Returns the id of the element with the text of a thinking part.
pub(crate) fn thought_id(part: &str) -> String {
    format!("{part}-t")
}

pub(crate) fn text(part: &Part) -> Option<&Text> {
    match &part.kind {
        PartKind::Text(text) => Some(text),
        _ => None,
    }
}

pub(crate) fn is_long(text: &Text) -> bool {
    text.text.chars().nth(SHORT_CHARS).is_some()
}

/// Creates the element of a text part, without the text. Undecided text carries its start time, so
/// that a reload does not restart the delay.
fn text_shell(view: &View, id: &str, part: &Part, text: &Text) -> Element {
    let begun = (text.role == TextRole::Undecided).then(|| part.started_at.0.to_string());
    let shell = Element::div(id).class(text_classes(part, text)).attr_if("data-begun", begun);
    let is_long = is_long(text) && matches!(text.role, TextRole::Commentary { .. });
    shell.child_if(view.raw_link(id, part.first)).child_if(is_long.then(|| show_all_toggle(id)))
}

/// Draws the toggle for commentary that the stylesheet cuts after two lines.
fn show_all_toggle(id: &str) -> Element {
    let words = |name: &str, class: &str, words: &str| {
        Element::new("span", format!("{id}-{name}")).class(class).text(words)
    };
    let summary = Element::new("summary", format!("{id}-as"))
        .child(words("am", "more", "Show all"))
        .child(words("al", "less", "Show less"));
    Element::new("details", format!("{id}-a")).class("all-text").child(summary)
}

fn text_classes(part: &Part, text: &Text) -> String {
    let is_long = is_long(text);
    let mut classes = match text.role {
        TextRole::Undecided => "text undecided",
        TextRole::Commentary { .. } => "text commentary",
        TextRole::Final => "text final",
        TextRole::Discarded => "text discarded",
    }
    .to_owned();
    let waited = text.decided_at.map_or(0, |at| at.since(part.started_at));
    match text.role {
        TextRole::Undecided if is_long => classes.push_str(" long"),
        TextRole::Commentary { .. } if is_long => classes.push_str(" shown long"),
        TextRole::Commentary { .. } if waited > SHORT_MS => classes.push_str(" shown"),
        _ => (),
    }
    if text.leaked {
        classes.push_str(" leaked");
    }
    long_text::class(&classes, &text.text)
}

fn thought(view: &View, id: &str, part: &Part, thinking: &Thinking, shown: &str) -> Element {
    let Thinking { text, open, finished_at, discarded, .. } = thinking;
    let summary = Element::new("summary", format!("{id}-s"));
    let summary = if *open {
        summary
            .class("live")
            .child(Element::new("span", format!("{id}-w")).text("Thinking…"))
            .child(
                Element::new("span", format!("{id}-l")).class("last").text(last_line_excerpt(text)),
            )
    } else {
        // Thinking that arrived in one piece has no known duration.
        let ended_at = finished_at.filter(|at| *at > part.started_at);
        let took = ended_at.map(|at| between(part.started_at, at));
        let words = took.map_or("Thought".to_owned(), |took| format!("Thought for {took}"));
        summary.child(Element::new("span", format!("{id}-w")).text(&words))
    };
    Element::new("details", id)
        .class(if *discarded { "thinking discarded" } else { "thinking" })
        .child(summary)
        .child(thought_words(view, &thought_id(id), part.first, shown))
        .child_if(view.raw_link(id, part.first))
}

fn thought_words(view: &View, id: &str, first: Seq, shown: &str) -> Element {
    let element = Element::div(id).class(long_text::class("thought", shown));
    match long_text::is_long(shown) {
        true => long_text::fill(element, view, id, first, shown, TextStyle::Plain),
        false => element.text(shown),
    }
}

fn last_line_excerpt(text: &str) -> &str {
    let line = text.trim_end().rsplit('\n').next().unwrap_or_default();
    let start = line.char_indices().rev().take(MAX_LAST_LINE).last().map_or(0, |(at, _)| at);
    let last = &line[start..];
    // Start at a whole word.
    last.split_once(' ').filter(|_| start > 0).map_or(last, |(_, rest)| rest)
}

/// Draws a part other than text, thinking and tool calls, such as a notice. Such parts also occur
/// outside a run.
pub(crate) fn aside(view: &View, id: &str, first: Seq, kind: &PartKind) -> Element {
    let words = |text: &str| long_text::content(view, id, first, text, TextStyle::Plain);
    match kind {
        PartKind::Notice { level: Level::Info, text } => {
            Element::div(id).class(long_text::class("notice info", text)).html(words(text))
        }
        PartKind::Notice { level: Level::Error, text } => {
            let markup =
                html! { (icon("alert")) span class=[cut_if_long(text)] { (words(text)) } };
            Element::div(id).class("notice error").attr("role", "alert").html(markup)
        }
        PartKind::Unrecognized { source, raw, lines: 1 } if source == STORED_CALLS => {
            badge::malformed(view, id, first, raw)
        }
        PartKind::Unrecognized { source, raw, lines } => {
            Element::new("details", id).class("unrecognized").html(html! {
                summary {
                    @if *lines > 1 { (count(*lines, "line")) " not understood, from " (source) ": the first" }
                    @else { "Not understood, from " (source) }
                }
                div class=(long_text::class("body", raw)) tabindex="0" { (words(raw)) }
            })
        }
        PartKind::Steered(steered) => {
            let class = match steered.state {
                SteerState::HandedOver | SteerState::Seen => "steered",
                SteerState::Returned => "steered returned",
            };
            let element = Element::div(id).class(class);
            let bubble = bubble(view, id, first, &steered.text, TextStyle::Plain);
            element.attr("data-message-id", steered.id.as_str()).html(html! {
                (bubble) p.meta { (steer_note(steered)) }
            })
        }
        PartKind::Exchange(it) => exchange::block(view, id, first, it),
        PartKind::Text(_) | PartKind::Thinking(_) | PartKind::Call(_) => Element::div(id),
    }
}

fn steer_note(steered: &Steered) -> &'static str {
    match steered.state {
        SteerState::HandedOver => "said while it worked",
        SteerState::Seen => "said while it worked; the agent has seen it",
        SteerState::Returned => {
            "said while it worked; the agent has not seen it, so it waits its turn"
        }
    }
}

fn cut_if_long(text: &str) -> Option<&'static str> {
    long_text::is_long(text).then_some("cut")
}

/// Draws the text of a message. A text that would fill the screen is folded; unfolding works
/// without script.
pub(crate) fn bubble(view: &View, id: &str, first: Seq, text: &str, style: TextStyle) -> Markup {
    let (class, dir) = match style {
        TextStyle::Plain => ("bubble", Some("auto")),
        TextStyle::Markdown { .. } => ("bubble text", None),
    };
    html! {
        div class=(long_text::class(class, text)) dir=[dir] { (long_text::content(view, id, first, text, style)) }
        @if fills_screen(text) {
            details.all-lines {
                summary { span.more { "Show more" } span.less { "Show less" } }
            }
        }
    }
}

fn fills_screen(text: &str) -> bool {
    text.chars().nth(FOLDED_CHARS).is_some() || text.lines().nth(FOLDED_LINES).is_some()
}
