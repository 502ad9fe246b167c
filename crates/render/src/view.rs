//! How a session is drawn: the names of its elements, and how much of a long body is shown.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use maud::{Markup, html};
use transcript::{Body, Call, ExchangeId, Message, ResponseId, RunMessage, Seq, SessionId};

use crate::escape::in_address;
use crate::exchange::Peers;
use crate::room::{Extent, HEAD, INLINE_MAX, Remainder, Room};
use crate::tool::File;
use crate::tree::Element;
use crate::words::{count, size};
use crate::{ansi, code, long, tool, whole};

/// How much of its end is shown of a text that is cut.
const TAIL: usize = 2_000;

/// How a session is drawn.
#[derive(Debug, Clone)]
pub struct View {
    pub(crate) session: SessionId,
    short: String,
    pub(crate) bodies: Bodies,
    files: Files,
    /// Where an agent works whose session does not say so.
    pub(crate) folder: Option<String>,
    /// What the agent's program writes is kept beside the log.
    has_raw: bool,
    peers: Arc<Peers>,
}

/// Attachments by their blob, as addresses that hold their content: for a file that stands alone.
pub type Files = HashMap<String, String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bodies {
    /// Long ones are cut and fetched when asked for.
    Cut,
    /// All are there, for a file that stands alone.
    Whole,
}

/// Which of a call's texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// What the tool got.
    Arguments,
    /// What the agent wanted it to get, where somebody changed that.
    Proposed,
    Stdout,
    Stderr,
    Result,
    /// What it has read or written.
    File,
    /// All that was asked for, as the JSON of a badge.
    Call,
    /// What the agent wants, to be changed.
    Edit,
    /// What was asked, in the view of the tool.
    Asked,
    /// The same as a person is asked about it.
    Question,
    /// What the result shows, in the view of the tool.
    Told,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RawOf<'a> {
    /// By the record that it begins with.
    Part(Seq),
    Run(&'a ResponseId),
}

impl View {
    pub fn new(session: SessionId, bodies: Bodies) -> Self {
        let short = short(session.as_str());
        let peers = Arc::default();
        Self { session, short, bodies, files: Files::new(), folder: None, has_raw: false, peers }
    }

    /// Where its agent works, unless the session says otherwise.
    pub fn in_folder(self, folder: Option<&str>) -> Self {
        Self { folder: folder.map(str::to_owned), ..self }
    }

    /// With what is attached in it.
    pub(crate) fn with_files(self, files: Files) -> Self {
        Self { files, ..self }
    }

    /// With links to what the agent's program wrote, where that is kept.
    pub fn with_raw(self, has_raw: bool) -> Self {
        Self { has_raw, ..self }
    }

    /// With what other sessions' agents answered in it.
    pub(crate) fn with_peers(self, peers: Peers) -> Self {
        Self { peers: Arc::new(peers), ..self }
    }

    /// The other side of an exchange, where it is here.
    pub(crate) fn peer(&self, exchange: &ExchangeId) -> Option<&(SessionId, Message)> {
        self.peers.get(exchange)
    }

    /// Of another session, drawn in the same place.
    pub(crate) fn beside(&self, session: &SessionId) -> Self {
        let Self { bodies, files, peers, .. } = self;
        let view = Self::new(session.clone(), *bodies).with_files(files.clone());
        Self { peers: Arc::clone(peers), ..view }
    }

    /// In a file, away from the server.
    pub(crate) fn is_alone(&self) -> bool {
        self.bodies == Bodies::Whole
    }

    /// Where an attachment is; none if it did not come along.
    pub(crate) fn file_url(&self, blob: &str) -> Option<String> {
        match self.bodies {
            Bodies::Cut => Some(format!("/api/blobs/{}", in_address(blob))),
            Bodies::Whole => self.files.get(blob).cloned(),
        }
    }

    /// For elements that are there once for each session.
    pub(crate) fn id(&self, name: &str) -> String {
        format!("{}-{name}", self.short)
    }

    pub(crate) fn message_id(&self, message: &Message) -> String {
        format!("{}-{}", self.short, message.first)
    }

    /// Where the whole of a text is; `format=html` gives it as [`crate::whole_body`] draws it.
    pub(crate) fn body_url(&self, call: &Call, kind: BodyKind) -> String {
        let (call, stream) = (in_address(call.id.as_str()), kind.word());
        format!("/api/sessions/{}/calls/{call}/output?stream={stream}", self.session)
    }

    /// Where the words of an answer are, as the agent wrote them.
    pub(crate) fn answer_url(&self, run: &ResponseId) -> String {
        format!("/api/sessions/{}/answers/{}?format=text", self.session, in_address(run.as_str()))
    }

    /// Where to read what the agent's program wrote of it.
    pub(crate) fn raw_url(&self, of: RawOf<'_>) -> Option<String> {
        let of = match of {
            RawOf::Part(first) => format!("part={first}"),
            RawOf::Run(id) => format!("run={}", in_address(id.as_str())),
        };
        self.has_raw.then(|| format!("/api/sessions/{}/raw?{of}&format=text", self.session))
    }

    /// Its name is the stylesheet's to say: it is no word of what it stands in.
    pub(crate) fn raw_link(&self, id: &str, first: Seq) -> Option<Element> {
        let link = Element::new("a", format!("{id}-lines")).class("raw-link");
        let link = link.attr("href", self.raw_url(RawOf::Part(first))?).attr("target", "_blank");
        let link = link.attr("rel", "noopener").attr("title", "Raw output");
        Some(link.attr("aria-label", "Raw output"))
    }

    /// A body as plain text that grows, or its ends and the way to the rest.
    pub(crate) fn body(&self, id: &str, call: &Call, kind: BodyKind, body: &Body) -> Element {
        let element = Element::div(id).attr("data-stream", kind.word()).attr("tabindex", "0");
        if let Some(text) = inline(body) {
            let element = element.class("body");
            return if kind.is_output() && ansi::has_controls(&text) {
                element.pieces(ansi::lines(&text, id))
            } else {
                element.text(&text)
            };
        }
        let element = element.class("body cut");
        match (self.bodies, body.whole()) {
            (Bodies::Whole, Some(text)) => element.html(whole::text(id, kind, &text)),
            _ => element.html(self.ends(call, kind, body)),
        }
    }

    /// What a tool's own view shows, or its beginning and the way to the rest.
    pub(crate) fn drawing(
        &self,
        id: &str,
        class: &str,
        call: &Call,
        kind: BodyKind,
        draw: impl Fn(&mut Room) -> Option<Markup>,
    ) -> Option<Element> {
        let mut room = Room::new(Extent::Fitting);
        let fitting = draw(&mut room)?;
        if room.was_enough() {
            return Some(Element::div(id).class(class).html(fitting));
        }
        let drawn = match self.bodies {
            Bodies::Whole => draw(&mut Room::new(Extent::Whole))?,
            Bodies::Cut => {
                let beginning = draw(&mut Room::new(Extent::Beginning))?;
                let bytes = whole_size(call, kind);
                let all = format!("Show all ({})", size(bytes));
                html! { div.edge { (beginning) } (self.gap(call, kind, &all, bytes, 0)) }
            }
        };
        Some(Element::div(id).class(format!("{class} cut")).html(drawn))
    }

    /// The arguments to decide about: whole, or both ends of each long text with a link to the rest.
    pub(crate) fn decision(&self, id: &str, call: &Call) -> Element {
        let (url, bytes) = (self.body_url(call, BodyKind::Question), call.arguments.bytes());
        let mut room = Room::for_decision(Some(Remainder { url, bytes }));
        let drawn = match tool::proposed(call, &mut room) {
            Some(drawn) => drawn,
            None => html! { div.body { (unreadable(call, &mut room)) } },
        };
        let element = Element::div(id);
        if room.was_enough() {
            return element.class("view").html(drawn);
        }
        element.class("view cut").html(html! {
            div.edge { (drawn) }
            button.quiet.show-less type="button" data-action="show-less" { "Show less" }
        })
    }

    /// A file's content. Its colours cost more than the rest of a page and most blocks stay closed, so
    /// that they are fetched when the block is opened.
    pub(crate) fn file(&self, call: &Call, file: &File, extent: Extent) -> Markup {
        let has_colours = code::language_of_file(&file.path).is_some();
        if extent != Extent::Fitting || !has_colours || self.bodies == Bodies::Whole {
            return tool::in_body(file, extent);
        }
        let source = format!("{}&format=html", self.body_url(call, BodyKind::File));
        html! {
            div.body.file tabindex="0" data-src=(source) { pre { code { (file.content) } } }
        }
    }

    fn ends(&self, call: &Call, kind: BodyKind, body: &Body) -> Markup {
        let (head, tail) = (head(body.head()), tail(body.tail()));
        let (bytes, lines) = (body.bytes(), body.lines());
        let words = format!("Show all {} ({})", count(lines, "line"), size(bytes));
        html! {
            div.edge { (head) }
            (self.gap(call, kind, &words, bytes, lines))
            div.edge { (tail) }
        }
    }

    fn gap(&self, call: &Call, kind: BodyKind, words: &str, bytes: u64, lines: u64) -> Markup {
        let links = long::show_all(&self.body_url(call, kind), words, bytes, lines);
        html! { p.gap { (links) } }
    }
}

/// Arguments that are no JSON object, or too long for one to be kept.
pub(crate) fn unreadable(call: &Call, room: &mut Room) -> Markup {
    let body = &call.arguments;
    match (body.whole(), inline(body)) {
        (_, Some(text)) => room.shown(&text),
        (Some(text), None) if room.extent == Extent::Whole => room.shown(&text),
        (Some(text), None) => room.most_of(&text, &text),
        (None, None) => room.most_of(body.head(), body.tail()),
    }
}

/// A short name for the session, to begin the ids of its elements: others may stand on the same page.
fn short(id: &str) -> String {
    if id.len() <= 8 {
        return id.to_owned();
    }
    let hash = fnv1a(id);
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

/// FNV-1a hash of a text: the same on every machine and in every version.
pub(crate) fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl BodyKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Arguments => "arguments",
            Self::Proposed => "proposed",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Result => "result",
            Self::File => "file",
            Self::Call => "call",
            Self::Edit => "edit",
            Self::Asked => "asked",
            Self::Question => "question",
            Self::Told => "told",
        }
    }

    pub(crate) fn is_output(self) -> bool {
        matches!(self, Self::Stdout | Self::Stderr)
    }
}

/// Of the text that a view is made of.
fn whole_size(call: &Call, kind: BodyKind) -> u64 {
    let result = call.outcome.as_ref().and_then(|it| it.result.as_ref());
    match kind {
        BodyKind::Told => result.map_or(0, Body::bytes),
        _ => call.input().bytes(),
    }
}

/// The text of a body that is short enough to be shown whole.
pub(crate) fn inline(body: &Body) -> Option<String> {
    (body.bytes() <= INLINE_MAX).then(|| body.whole()).flatten()
}

pub(crate) fn call_of(answer: &RunMessage, idx: usize) -> Option<&Call> {
    match &answer.parts.get(idx)?.kind {
        transcript::PartKind::Call(call) => Some(call),
        _ => None,
    }
}

/// Up to the end of a line where there is one.
fn head(text: &str) -> &str {
    let cut = &text[..text.floor_char_boundary(HEAD)];
    cut.rfind('\n').map_or(cut, |at| &cut[..=at])
}

fn tail(text: &str) -> &str {
    let cut = &text[text.ceil_char_boundary(text.len().saturating_sub(TAIL))..];
    cut.find('\n').map_or(cut, |at| &cut[at + 1..])
}

/// One line of at most `max` characters.
pub(crate) fn one_line(text: &str, max: usize) -> Cow<'_, str> {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    match line.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &line[..at]).into(),
        None => line.into(),
    }
}
