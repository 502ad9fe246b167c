//! One part of an answer as one element.

use maud::{Markup, PreEscaped, html};
use transcript::{Level, Part, PartKind, Seq, SteerState, Steered, Text, TextRole, Thinking};

use crate::icon::icon;
use crate::long::{self, Style};
use crate::tree::Element;
use crate::view::View;
use crate::words::{between, count};
use crate::{badge, call, exchange, markdown};

/// The source of stored calls that cannot be read, as imports name it.
const STORED_CALLS: &str = "toolCalls";

/// Undecided text that is longer is shown at once, where reveal is `smart`.
const SHORT_CHARS: usize = 240;
/// ... and text that has been undecided for longer.
const SHORT_MS: u64 = 1200;
/// How much of a live thought its line shows.
const LAST_WORDS: usize = 120;

/// A message of more characters, or of more lines, is folded until the reader wants to see all of it.
const FOLDED_CHARS: usize = 1500;
const FOLDED_LINES: usize = 20;

/// The element, with everything in it but the parts underneath a call.
pub(crate) fn part(view: &View, id: &str, part: &Part) -> Element {
    match &part.kind {
        PartKind::Text(text) if long::is_long(&text.text) => {
            let (shell, style) =
                (text_shell(view, id, part, text), Style::Markdown { open: text.open });
            long::fill(shell, view, id, part.first, &text.text, style)
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

/// A part that grows: its element while empty, and what is to stand in it. A long one is drawn in part, and so
/// grows as other parts do.
pub(crate) struct Growing<'a> {
    pub(crate) shell: Element,
    pub(crate) text: &'a str,
    pub(crate) open: bool,
    pub(crate) is_markdown: bool,
}

pub(crate) fn growing<'a>(view: &View, id: &str, part: &'a Part) -> Option<Growing<'a>> {
    match &part.kind {
        PartKind::Text(Text { text, .. }) | PartKind::Thinking(Thinking { text, .. })
            if long::is_long(text) =>
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

/// Where the text of a thought stands.
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

/// Text that may be held back says since when, so that nobody waits again who has waited.
fn text_shell(view: &View, id: &str, part: &Part, text: &Text) -> Element {
    let begun = (text.role == TextRole::Undecided).then(|| part.started_at.0.to_string());
    let shell = Element::div(id).class(text_classes(part, text)).attr_if("data-begun", begun);
    let is_long = is_long(text) && matches!(text.role, TextRole::Commentary { .. });
    shell.child_if(view.raw_link(id, part.first)).child_if(is_long.then(|| all_of(id)))
}

/// Opens a text that the stylesheet cuts after two lines.
fn all_of(id: &str) -> Element {
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
    long::class(&classes, &text.text)
}

fn thought(view: &View, id: &str, part: &Part, thinking: &Thinking, shown: &str) -> Element {
    let Thinking { text, open, finished_at, discarded, .. } = thinking;
    let summary = Element::new("summary", format!("{id}-s"));
    let summary = if *open {
        summary
            .class("live")
            .child(Element::new("span", format!("{id}-w")).text("Thinking…"))
            .child(Element::new("span", format!("{id}-l")).class("last").text(last_words(text)))
    } else {
        // What came at once was thought in an unknown time.
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
    let element = Element::div(id).class(long::class("thought", shown));
    match long::is_long(shown) {
        true => long::fill(element, view, id, first, shown, Style::Plain),
        false => element.text(shown),
    }
}

fn last_words(text: &str) -> &str {
    let line = text.trim_end().rsplit('\n').next().unwrap_or_default();
    let start = line.char_indices().rev().take(LAST_WORDS).last().map_or(0, |(at, _)| at);
    let last = &line[start..];
    // Not from the middle of a word.
    last.split_once(' ').filter(|_| start > 0).map_or(last, |(_, rest)| rest)
}

/// What happened beside text, thoughts and calls; also outside any run.
pub(crate) fn aside(view: &View, id: &str, first: Seq, kind: &PartKind) -> Element {
    let words = |text: &str| long::words(view, id, first, text, Style::Plain);
    match kind {
        PartKind::Notice { level: Level::Info, text } => {
            Element::div(id).class(long::class("notice info", text)).html(words(text))
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
                div class=(long::class("body", raw)) tabindex="0" { (words(raw)) }
            })
        }
        PartKind::Steered(steered) => {
            let class = match steered.state {
                SteerState::HandedOver | SteerState::Seen => "steered",
                SteerState::Returned => "steered returned",
            };
            let element = Element::div(id).class(class);
            let bubble = bubble(view, id, first, &steered.text, Style::Plain);
            element.attr("data-message-id", steered.id.as_str()).html(html! {
                (bubble) p.meta { (said_meanwhile(steered)) }
            })
        }
        PartKind::Exchange(it) => exchange::block(view, id, first, it),
        PartKind::Text(_) | PartKind::Thinking(_) | PartKind::Call(_) => Element::div(id),
    }
}

fn said_meanwhile(steered: &Steered) -> &'static str {
    match steered.state {
        SteerState::HandedOver => "said while it worked",
        SteerState::Seen => "said while it worked; the agent has seen it",
        SteerState::Returned => {
            "said while it worked; the agent has not seen it, so it waits its turn"
        }
    }
}

fn cut_if_long(text: &str) -> Option<&'static str> {
    long::is_long(text).then_some("cut")
}

/// The text of a message. A text that would fill the screen is folded; the reader unfolds them without script.
pub(crate) fn bubble(view: &View, id: &str, first: Seq, text: &str, style: Style) -> Markup {
    let (class, dir) = match style {
        Style::Plain => ("bubble", Some("auto")),
        Style::Markdown { .. } => ("bubble text", None),
    };
    html! {
        div class=(long::class(class, text)) dir=[dir] { (long::words(view, id, first, text, style)) }
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
