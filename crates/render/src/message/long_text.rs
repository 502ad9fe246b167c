//! Long texts: cut on a page, complete in a standalone file.
//!
//! Whether a text is cut depends only on its size, and the shown excerpt only on the text. While a text
//! grows, its beginning stays and the start of its end moves in steps, so that most patches only append.

use std::borrow::Cow;

use maud::{Markup, PreEscaped, html};
use transcript::{Content, Message, PartKind, Seq, SessionId};

use crate::html::element::Element;
use crate::message::part_id;
use crate::text::markdown;
use crate::text::quantity::{count, size};
use crate::view::{Bodies, View};

/// Maximum number of bytes of a text that a page shows without cutting it.
pub(crate) const LONG_TEXT: usize = 64 * 1024;
/// Maximum number of bytes of a text that a page draws completely on request. A longer text opens
/// as plain text.
const SHOW_ALL_MAX: u64 = 512 * 1024;
/// Maximum number of lines of a text that a page draws completely on request, because each line may
/// be an element.
const SHOW_ALL_LINES: u64 = 20_000;
/// Number of bytes shown of the beginning of a long text.
const HEAD: usize = 8 * 1024;
/// Minimum number of bytes shown of the end of a long text.
const TAIL: usize = 4 * 1024;
/// Number of bytes of which the start of a long text's shown end is a multiple.
const TAIL_STEP: usize = 16 * 1024;
/// Maximum number of bytes by which the shown end of a long text is moved to the start of a line.
const LINE: usize = 512;

/// Style in which a text is drawn: plain, or as Markdown that may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextStyle {
    Plain,
    Markdown { open: bool },
}

impl TextStyle {
    pub(crate) const CLOSED: Self = Self::Markdown { open: false };

    /// Returns this style for a text that is complete.
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

/// Estimates how many bytes of a text a page shows.
pub(crate) fn weight(text: &str) -> usize {
    if is_long(text) { HEAD + TAIL + TAIL_STEP } else { text.len() }
}

/// Returns both ends of a long text that has no URL to fetch it from; a shorter text unchanged.
pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    if !is_long(text) {
        return text.into();
    }
    let (head, tail) = (head(text), tail(text));
    let left_out = size((text.len() - head.len() - tail.len()) as u64);
    format!("{head}\n… {left_out} left out …\n{tail}").into()
}

/// Returns the URL of the complete text that begins with record `first`.
pub(crate) fn url(view: &View, first: Seq) -> String {
    format!("/api/sessions/{}/texts?first={first}", view.session)
}

/// Returns the classes of an element with a text, with `cut` added if the text is long.
pub(crate) fn class(class: &str, text: &str) -> String {
    if is_long(text) { format!("{class} cut") } else { class.to_owned() }
}

/// Draws the content of an element with a text, which a page cuts if it is long. `first` is the
/// text's first record.
pub(crate) fn content(view: &View, id: &str, first: Seq, text: &str, style: TextStyle) -> Markup {
    match (is_long(text), view.bodies) {
        (false, _) => style.draw(id, text),
        (true, Bodies::Whole) => whole(id, text, style),
        (true, Bodies::Cut) => {
            let parts = ends(view, id, first, text, style);
            html! { @for part in &parts { (PreEscaped(part.to_html())) } }
        }
    }
}

/// Fills an element with a long text. On a page, its excerpts are elements that patches can
/// address.
pub(crate) fn fill(
    element: Element,
    view: &View,
    id: &str,
    first: Seq,
    text: &str,
    style: TextStyle,
) -> Element {
    match view.bodies {
        Bodies::Whole => element.html(whole(id, text, style)),
        Bodies::Cut => element.children(ends(view, id, first, text, style)),
    }
}

fn ends(view: &View, id: &str, first: Seq, text: &str, style: TextStyle) -> [Element; 3] {
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

fn whole(id: &str, text: &str, style: TextStyle) -> Markup {
    html! { div class=(edge(style)) { (style.draw(id, text)) } }
}

fn edge(style: TextStyle) -> &'static str {
    if style == TextStyle::Plain { "edge" } else { "edge drawn" }
}

/// Draws the link that shows a complete text in place, or links that open and download it if it is
/// too large for a page.
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

/// Returns whether a page can draw a complete text of this size.
pub(crate) fn is_drawable(bytes: u64, lines: u64) -> bool {
    bytes <= SHOW_ALL_MAX && lines <= SHOW_ALL_LINES
}

/// Returns the beginning of a long text, cut at the end of a line if there is one.
fn head(text: &str) -> &str {
    let cut = &text[..text.floor_char_boundary(HEAD)];
    cut.rfind('\n').map_or(cut, |at| &cut[..=at])
}

/// Returns the end of a long text, from the start of a line if one is near.
fn tail(text: &str) -> &str {
    let start = text.len().saturating_sub(TAIL) / TAIL_STEP * TAIL_STEP;
    let start = text.ceil_char_boundary(start);
    let near = &text[start..text.floor_char_boundary(start + LINE)];
    near.find('\n').map_or(&text[start..], |at| &text[start + at + 1..])
}

/// Returns the text of a message, or of one of its parts, that begins with record `first`.
pub fn text_at(message: &Message, first: Seq) -> Option<&str> {
    found(message, first).map(|(_, text, _)| text)
}

/// Draws the complete text of a message or part that begins with record `first`, to be shown in
/// place of its excerpt. Draws only links if it is too large for a page.
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

/// Text found by its first record: part index and id suffix (`None` for a person's message), text
/// and style.
type Found<'a> = (Option<(usize, &'static str)>, &'a str, TextStyle);

fn found(message: &Message, first: Seq) -> Option<Found<'_>> {
    match &message.content {
        Content::User(said) if message.first == first => {
            let is_answer = said.from.as_ref().is_some_and(|it| it.is_answer);
            let style = if is_answer { TextStyle::CLOSED } else { TextStyle::Plain };
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

/// Returns the id suffix, text and style of a part; `None` for a tool call.
fn words_of(kind: &PartKind) -> Option<(&'static str, &str, TextStyle)> {
    match kind {
        PartKind::Text(it) => Some(("", &it.text, TextStyle::Markdown { open: it.open })),
        PartKind::Thinking(it) => Some(("-t", &it.text, TextStyle::Plain)),
        PartKind::Steered(it) => Some(("", &it.text, TextStyle::Plain)),
        PartKind::Exchange(it) => Some(("-q", &it.text, TextStyle::Plain)),
        PartKind::Notice { text, .. } => Some(("", text, TextStyle::Plain)),
        PartKind::Unrecognized { raw, .. } => Some(("", raw, TextStyle::Plain)),
        PartKind::Call(_) => None,
    }
}
