//! How a session is drawn: the ids of its elements, its URLs, and how much of a long body is shown.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use maud::{Markup, html};
use transcript::{Body, Call, ExchangeId, Message, ResponseId, RunMessage, Seq, SessionId};

use crate::html::element::Element;
use crate::html::escape::percent_encoded;
use crate::message::exchange::Peers;
use crate::message::tool::File;
use crate::message::whole_body::{self, BodyKind};
use crate::message::{long_text, tool};
use crate::text::budget::{Detail, FullText, HEAD, INLINE_MAX, SizeBudget};
use crate::text::quantity::{count, size};
use crate::text::{ansi, code};

/// Number of bytes shown of the end of a body that is cut.
const TAIL: usize = 2_000;

/// Settings with which one session is drawn: its element ids, its links, and whether long bodies
/// are cut.
#[derive(Debug, Clone)]
pub struct View {
    pub(crate) session: SessionId,
    short: String,
    pub(crate) bodies: Bodies,
    files: Files,
    /// Default folder of the agent, for a session that names none.
    pub(crate) folder: Option<String>,
    /// Whether the raw output of the agent's program is stored, so that the page links to it.
    has_raw: bool,
    peers: Arc<Peers>,
}

/// Attachments that a standalone file embeds: blob id to `data:` URL.
pub type Files = HashMap<String, String>;

/// Whether long bodies of tool calls and long texts are drawn completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bodies {
    /// Long bodies and texts are cut; the page fetches the rest on request.
    Cut,
    /// All bodies are drawn completely, for a standalone file.
    Whole,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RawOf<'a> {
    /// Raw output for the part that begins with this record.
    Part(Seq),
    Run(&'a ResponseId),
}

impl View {
    /// Returns a view of a session without a default folder, attachments or messages of other
    /// sessions.
    pub fn new(session: SessionId, bodies: Bodies) -> Self {
        let short = short(session.as_str());
        let peers = Arc::default();
        Self { session, short, bodies, files: Files::new(), folder: None, has_raw: false, peers }
    }

    /// Sets the default folder of the agent, for a session that names none.
    pub fn with_folder(self, folder: Option<&str>) -> Self {
        Self { folder: folder.map(str::to_owned), ..self }
    }

    /// Sets the attachments that a standalone file embeds.
    pub(crate) fn with_files(self, files: Files) -> Self {
        Self { files, ..self }
    }

    /// Sets whether to link to the raw output of the agent's program.
    pub fn with_raw(self, has_raw: bool) -> Self {
        Self { has_raw, ..self }
    }

    /// Sets the messages of other sessions that a standalone file embeds.
    pub(crate) fn with_peers(self, peers: Peers) -> Self {
        Self { peers: Arc::new(peers), ..self }
    }

    /// Returns the other session's message of an exchange; `None` if the file does not embed it.
    pub(crate) fn peer(&self, exchange: &ExchangeId) -> Option<&(SessionId, Message)> {
        self.peers.get(exchange)
    }

    /// Returns a view of another session that is drawn in the same page or file.
    pub(crate) fn for_session(&self, session: &SessionId) -> Self {
        let Self { bodies, files, peers, .. } = self;
        let view = Self::new(session.clone(), *bodies).with_files(files.clone());
        Self { peers: Arc::clone(peers), ..view }
    }

    /// Returns whether the view draws a standalone file, which cannot fetch anything from the
    /// server.
    pub(crate) fn is_standalone(&self) -> bool {
        self.bodies == Bodies::Whole
    }

    /// Returns the URL of an attachment; `None` if the standalone file does not embed it.
    pub(crate) fn file_url(&self, blob: &str) -> Option<String> {
        match self.bodies {
            Bodies::Cut => Some(format!("/api/blobs/{}", percent_encoded(blob))),
            Bodies::Whole => self.files.get(blob).cloned(),
        }
    }

    /// Returns the id of an HTML element that exists once per session.
    pub(crate) fn id(&self, name: &str) -> String {
        format!("{}-{name}", self.short)
    }

    pub(crate) fn message_id(&self, message: &Message) -> String {
        format!("{}-{}", self.short, message.first)
    }

    /// Returns the URL of a tool call's complete text; with `format=html` it is drawn by
    /// [`crate::whole_body`].
    pub(crate) fn body_url(&self, call: &Call, kind: BodyKind) -> String {
        let (call, stream) = (percent_encoded(call.id.as_str()), kind.as_str());
        format!("/api/sessions/{}/calls/{call}/output?stream={stream}", self.session)
    }

    /// Returns the URL of the Markdown source of a run's answer.
    pub(crate) fn answer_url(&self, run: &ResponseId) -> String {
        format!(
            "/api/sessions/{}/answers/{}?format=text",
            self.session,
            percent_encoded(run.as_str())
        )
    }

    /// Returns the URL of the raw output of the agent's program for a part or run; `None` if it is
    /// not stored.
    pub(crate) fn raw_url(&self, of: RawOf<'_>) -> Option<String> {
        let of = match of {
            RawOf::Part(first) => format!("part={first}"),
            RawOf::Run(id) => format!("run={}", percent_encoded(id.as_str())),
        };
        self.has_raw.then(|| format!("/api/sessions/{}/raw?{of}&format=text", self.session))
    }

    /// Draws the link to the raw output of a part; `None` if it is not stored. The stylesheet adds
    /// the label, so that it is not part of the text.
    pub(crate) fn raw_link(&self, id: &str, first: Seq) -> Option<Element> {
        let link = Element::new("a", format!("{id}-lines")).class("raw-link");
        let link = link.attr("href", self.raw_url(RawOf::Part(first))?).attr("target", "_blank");
        let link = link.attr("rel", "noopener").attr("title", "Raw output");
        Some(link.attr("aria-label", "Raw output"))
    }

    /// Draws a body of a tool call as text that can grow, or its two ends with a link to the rest.
    pub(crate) fn body(&self, id: &str, call: &Call, kind: BodyKind, body: &Body) -> Element {
        let element = Element::div(id).attr("data-stream", kind.as_str()).attr("tabindex", "0");
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
            (Bodies::Whole, Some(text)) => element.html(whole_body::text(id, kind, &text)),
            _ => element.html(self.ends(call, kind, body)),
        }
    }

    /// Draws the view of a tool call's arguments or result with `draw`: complete, or its beginning
    /// with a link to the rest. `None` if `draw` returns `None`.
    pub(crate) fn drawing(
        &self,
        id: &str,
        class: &str,
        call: &Call,
        kind: BodyKind,
        draw: impl Fn(&mut SizeBudget) -> Option<Markup>,
    ) -> Option<Element> {
        let mut budget = SizeBudget::new(Detail::Fitting);
        let fitting = draw(&mut budget)?;
        if budget.is_complete() {
            return Some(Element::div(id).class(class).html(fitting));
        }
        let drawn = match self.bodies {
            Bodies::Whole => draw(&mut SizeBudget::new(Detail::Whole))?,
            Bodies::Cut => {
                let beginning = draw(&mut SizeBudget::new(Detail::Beginning))?;
                let bytes = whole_size(call, kind);
                let all = format!("Show all ({})", size(bytes));
                html! { div.edge { (beginning) } (self.gap(call, kind, &all, bytes, 0)) }
            }
        };
        Some(Element::div(id).class(format!("{class} cut")).html(drawn))
    }

    /// Draws the arguments of a tool call on an approval card: complete, or both ends of each long
    /// text with a link to the rest.
    pub(crate) fn approval_arguments(&self, id: &str, call: &Call) -> Element {
        let (url, bytes) = (self.body_url(call, BodyKind::Approval), call.arguments.bytes());
        let mut budget = SizeBudget::for_approval(Some(FullText { url, bytes }));
        let drawn = match tool::approval_view(call, &mut budget) {
            Some(drawn) => drawn,
            None => html! { div.body { (unreadable(call, &mut budget)) } },
        };
        let element = Element::div(id);
        if budget.is_complete() {
            return element.class("view").html(drawn);
        }
        element.class("view cut").html(html! {
            div.edge { (drawn) }
            button.quiet.show-less type="button" data-action="show-less" { "Show less" }
        })
    }

    /// Draws the content of a file that a tool call read or wrote. Highlighting costs more than the
    /// rest of a page and most blocks stay closed, so the page fetches it when a block is opened.
    pub(crate) fn file(&self, call: &Call, file: &File, detail: Detail) -> Markup {
        let has_colours = code::language_of_file(&file.path).is_some();
        if detail != Detail::Fitting || !has_colours || self.bodies == Bodies::Whole {
            return tool::in_body(file, detail);
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
        let links = long_text::show_all(&self.body_url(call, kind), words, bytes, lines);
        html! { p.gap { (links) } }
    }
}

/// Draws arguments of a tool call that are not a JSON object, or are too long to be kept as one.
pub(crate) fn unreadable(call: &Call, budget: &mut SizeBudget) -> Markup {
    let body = &call.arguments;
    match (body.whole(), inline(body)) {
        (_, Some(text)) => budget.shown(&text),
        (Some(text), None) if budget.detail == Detail::Whole => budget.shown(&text),
        (Some(text), None) => budget.most_of(&text, &text),
        (None, None) => budget.most_of(body.head(), body.tail()),
    }
}

/// Returns a short, stable prefix for the element ids of a session, because one page can show
/// several sessions.
fn short(id: &str) -> String {
    if id.len() <= 8 {
        return id.to_owned();
    }
    let hash = fnv1a(id);
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

/// Returns the FNV-1a hash of a text, which is the same on every machine and in every version.
pub(crate) fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the size in bytes of the arguments or result from which a tool's view is drawn.
fn whole_size(call: &Call, kind: BodyKind) -> u64 {
    let result = call.outcome.as_ref().and_then(|it| it.result.as_ref());
    match kind {
        BodyKind::ResultView => result.map_or(0, Body::bytes),
        _ => call.input().bytes(),
    }
}

/// Returns the text of a body that is short enough to be shown completely; `None` for a longer
/// body.
pub(crate) fn inline(body: &Body) -> Option<String> {
    (body.bytes() <= INLINE_MAX).then(|| body.whole()).flatten()
}

pub(crate) fn call_of(answer: &RunMessage, idx: usize) -> Option<&Call> {
    match &answer.parts.get(idx)?.kind {
        transcript::PartKind::Call(call) => Some(call),
        _ => None,
    }
}

/// Returns the beginning of a long body, cut at the end of a line if there is one.
fn head(text: &str) -> &str {
    let cut = &text[..text.floor_char_boundary(HEAD)];
    cut.rfind('\n').map_or(cut, |at| &cut[..=at])
}

fn tail(text: &str) -> &str {
    let cut = &text[text.ceil_char_boundary(text.len().saturating_sub(TAIL))..];
    cut.find('\n').map_or(cut, |at| &cut[at + 1..])
}

/// Returns the first line of a text that is not blank, cut after `max` characters.
pub(crate) fn one_line(text: &str, max: usize) -> Cow<'_, str> {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    match line.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &line[..at]).into(),
        None => line.into(),
    }
}
