//! Long texts: what people and agents say is shown in part on a page, and whole in a file that stands alone.
//!
//! Whether a text is cut depends on its size alone, and what is shown of it on the text alone. While a text
//! grows, its beginning stays and its end moves in steps: most patches only add to it.

use std::borrow::Cow;

use maud::{Markup, PreEscaped, html};
use transcript::{Content, Message, PartKind, Seq, SessionId};

use crate::markdown;
use crate::message::part_id;
use crate::tree::Element;
use crate::view::{Bodies, View};
use crate::words::{count, size};

/// Bytes up to which a text is shown whole on a page.
pub(crate) const LONG_TEXT: usize = 64 * 1024;
/// Bytes up to which a text is drawn when somebody wants to see all of it. What is longer opens as plain text.
const SHOW_ALL_MAX: u64 = 512 * 1024;
/// The same in lines, each of which may be an element.
const SHOW_ALL_LINES: u64 = 20_000;
/// Bytes that are shown of the beginning.
const HEAD: usize = 8 * 1024;
/// Bytes that are shown of the end, at least.
const TAIL: usize = 4 * 1024;
/// The end begins at a multiple of this.
const TAIL_STEP: usize = 16 * 1024;
/// How far the beginning of the end may move to the beginning of a line.
const LINE: usize = 512;

/// How a text is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Markdown { open: bool },
}

impl Style {
    pub(crate) const CLOSED: Self = Self::Markdown { open: false };

    /// The same of a text that nothing is added to.
    fn closed(self) -> Self {
        if self == Self::Plain { self } else { Self::CLOSED }
    }

    fn draw(self, id: &str, text: &str) -> Markup {
        match self {
            Self::Plain => html! { (text) },
            Self::Markdown { open: true } => PreEscaped(markdown::html(&markdown::open(text, id))),
            Self::Markdown { open: false } => {
                PreEscaped(markdown::html(&markdown::closed(text, id)))
            }
        }
    }
}

pub(crate) fn is_long(text: &str) -> bool {
    text.len() > LONG_TEXT
}

/// Roughly how much of a text is shown, in bytes.
pub(crate) fn weight(text: &str) -> usize {
    if is_long(text) { HEAD + TAIL + TAIL_STEP } else { text.len() }
}

/// The ends of a text that is long, for what has no address of its own.
pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    if !is_long(text) {
        return text.into();
    }
    let (head, tail) = (head(text), tail(text));
    let left_out = size((text.len() - head.len() - tail.len()) as u64);
    format!("{head}\n… {left_out} left out …\n{tail}").into()
}

/// The address of a whole text.
pub(crate) fn url(view: &View, first: Seq) -> String {
    format!("/api/sessions/{}/texts?first={first}", view.session)
}

/// The class of an element that shows a text, with a mark if the text is cut.
pub(crate) fn class(class: &str, text: &str) -> String {
    if is_long(text) { format!("{class} cut") } else { class.to_owned() }
}

/// The content of an element that shows a text. `first` is the record that the text begins with.
pub(crate) fn words(view: &View, id: &str, first: Seq, text: &str, style: Style) -> Markup {
    match (is_long(text), view.bodies) {
        (false, _) => style.draw(id, text),
        (true, Bodies::Whole) => whole(id, text, style),
        (true, Bodies::Cut) => {
            let parts = ends(view, id, first, text, style);
            html! { @for part in &parts { (PreEscaped(part.to_html())) } }
        }
    }
}

/// Puts a long text into an element, so that patches can address what is shown of it.
pub(crate) fn fill(
    element: Element,
    view: &View,
    id: &str,
    first: Seq,
    text: &str,
    style: Style,
) -> Element {
    match view.bodies {
        Bodies::Whole => element.html(whole(id, text, style)),
        Bodies::Cut => element.children(ends(view, id, first, text, style)),
    }
}

fn ends(view: &View, id: &str, first: Seq, text: &str, style: Style) -> [Element; 3] {
    let drawn = style.closed().draw(&format!("{id}-h"), head(text));
    let url = url(view, first);
    let words = format!("Show all {}", size(text.len() as u64));
    let gap = Element::new("p", format!("{id}-g")).class("gap");
    [
        Element::div(format!("{id}-h")).class(edge(style)).html(drawn),
        gap.html(show_all(&url, &words, text.len() as u64, 0)),
        Element::div(format!("{id}-e")).class("edge").text(tail(text)),
    ]
}

fn whole(id: &str, text: &str, style: Style) -> Markup {
    html! { div class=(edge(style)) { (style.draw(id, text)) } }
}

fn edge(style: Style) -> &'static str {
    if style == Style::Plain { "edge" } else { "edge drawn" }
}

/// The ways to all of a text: drawn in its place, or on its own where that would be too much for a page.
pub(crate) fn show_all(url: &str, words: &str, bytes: u64, lines: u64) -> Markup {
    if is_drawable(bytes, lines) {
        return html! {
            a.show-all href=(url) data-action="show-all" { (words) }
            button.quiet.show-less type="button" data-action="show-less" { "Show less" }
        };
    }
    let extent = match lines {
        0 => size(bytes),
        lines => format!("{} ({})", count(lines, "line"), size(bytes)),
    };
    html! {
        (extent) ": "
        a.show-all href=(url) target="_blank" rel="noopener" { "Open as text" }
        " · "
        a href={ (url) "&download=true" } download { "Download" }
    }
}

/// True if a page can show all of it.
pub(crate) fn is_drawable(bytes: u64, lines: u64) -> bool {
    bytes <= SHOW_ALL_MAX && lines <= SHOW_ALL_LINES
}

/// Up to the end of a line where there is one.
fn head(text: &str) -> &str {
    let cut = &text[..text.floor_char_boundary(HEAD)];
    cut.rfind('\n').map_or(cut, |at| &cut[..=at])
}

/// From the beginning of a line where one is near.
fn tail(text: &str) -> &str {
    let start = text.len().saturating_sub(TAIL) / TAIL_STEP * TAIL_STEP;
    let start = text.ceil_char_boundary(start);
    let near = &text[start..text.floor_char_boundary(start + LINE)];
    near.find('\n').map_or(&text[start..], |at| &text[start + at + 1..])
}

/// The text that begins with a record of a message: its own, or that of one of its parts.
pub fn text_at(message: &Message, first: Seq) -> Option<&str> {
    found(message, first).map(|(_, text, _)| text)
}

/// The same as HTML that the page puts beside what it has shown until then, and an exported file in its place.
pub fn html_at(session: &SessionId, message: &Message, first: Seq) -> Option<String> {
    let (part, text, style) = found(message, first)?;
    let id = View::new(session.clone(), Bodies::Whole).message_id(message);
    let id = part.map_or(id.clone(), |(idx, place)| part_id(&id, idx) + place);
    if !is_drawable(text.len() as u64, 0) {
        let url = format!("/api/sessions/{session}/texts?first={first}");
        let links = show_all(&url, "", text.len() as u64, 0);
        return Some(html! { p.gap { (links) } }.into_string());
    }
    Some(whole(&id, text, style).into_string())
}

/// The part with the place of its text in it, the text, and how it is drawn.
type Found<'a> = (Option<(usize, &'static str)>, &'a str, Style);

fn found(message: &Message, first: Seq) -> Option<Found<'_>> {
    match &message.content {
        Content::User(said) if message.first == first => {
            let is_answer = said.from.as_ref().is_some_and(|it| it.is_answer);
            let style = if is_answer { Style::CLOSED } else { Style::Plain };
            Some((None, &said.text, style))
        }
        Content::Aside(kind) if message.first == first => {
            words_of(kind).map(|(place, text, style)| (Some((0, place)), text, style))
        }
        Content::Run(answer) => {
            let mut parts = answer.parts.iter().enumerate().filter(|(_, it)| it.first == first);
            parts.find_map(|(idx, it)| {
                words_of(&it.kind).map(|(place, text, style)| (Some((idx, place)), text, style))
            })
        }
        Content::User(_) | Content::Aside(_) => None,
    }
}

/// Where a part has its text, the text, and how it is drawn.
fn words_of(kind: &PartKind) -> Option<(&'static str, &str, Style)> {
    match kind {
        PartKind::Text(it) => Some(("", &it.text, Style::Markdown { open: it.open })),
        PartKind::Thinking(it) => Some(("-t", &it.text, Style::Plain)),
        PartKind::Steered(it) => Some(("", &it.text, Style::Plain)),
        PartKind::Exchange(it) => Some(("-q", &it.text, Style::Plain)),
        PartKind::Notice { text, .. } => Some(("", text, Style::Plain)),
        PartKind::Unrecognized { raw, .. } => Some(("", raw, Style::Plain)),
        PartKind::Call(_) => None,
    }
}
