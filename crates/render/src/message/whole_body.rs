//! Complete texts of a call, for which a page shows only an excerpt or no highlighting.

use maud::{Markup, html};
use serde::Deserialize;
use transcript::{Body, Call, Message, SessionId};

use crate::message::approval_card::edited;
use crate::message::call::body_id;
use crate::message::part_id;
use crate::message::tool::{self, File};
use crate::message::{badge, long_text};
use crate::text::budget::{Detail, SizeBudget};
use crate::text::{ansi, code, json};
use crate::view::{Bodies, View, call_of, unreadable};

/// Text of a tool call that can be fetched alone. The serialised names are part of the HTTP API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Stream"))]
#[serde(rename_all = "lowercase")]
pub enum BodyKind {
    /// Arguments that the tool received.
    Arguments,
    /// Arguments that the agent proposed, even if a person edited them.
    Proposed,
    /// Standard output that the tool wrote.
    #[default]
    Stdout,
    /// Standard error that the tool wrote.
    Stderr,
    /// Result of the tool call.
    Result,
    /// Content of the file that the tool call read or wrote.
    File,
    /// The tool call with its arguments, as JSON.
    Call,
    /// Proposed arguments of the tool call; as HTML, in an editor.
    Edit,
    /// Arguments of the tool call, as the tool's view shows them.
    #[serde(rename = "asked")]
    ArgumentsView,
    /// Arguments of the tool call, as the approval card shows them, with the content that would be
    /// overwritten.
    #[serde(rename = "question")]
    Approval,
    /// Result of the tool call, as the tool's view shows it.
    #[serde(rename = "told")]
    ResultView,
}

impl BodyKind {
    /// Returns the name of the body kind in URLs and attributes.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Arguments => "arguments",
            Self::Proposed => "proposed",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Result => "result",
            Self::File => "file",
            Self::Call => "call",
            Self::Edit => "edit",
            Self::ArgumentsView => "asked",
            Self::Approval => "question",
            Self::ResultView => "told",
        }
    }

    pub(crate) fn is_output(self) -> bool {
        matches!(self, Self::Stdout | Self::Stderr)
    }
}

/// Returns a text of a tool call unchanged; empty if there is none.
pub fn whole_text(call: &Call, kind: BodyKind) -> String {
    let result = call.outcome.as_ref().and_then(|it| it.result.as_ref());
    let body = match kind {
        BodyKind::Arguments => Some(call.input()),
        BodyKind::Proposed | BodyKind::Edit => Some(&call.arguments),
        BodyKind::Stdout => Some(&call.stdout),
        BodyKind::Stderr => Some(&call.stderr),
        BodyKind::Result => result,
        BodyKind::File => return tool::file(call).map(|it| it.content).unwrap_or_default(),
        BodyKind::Call => return badge::payload(call, call.input().whole()),
        BodyKind::ArgumentsView | BodyKind::Approval => return tool::text(call),
        BodyKind::ResultView => return tool::result_text(call).unwrap_or_default().to_owned(),
    };
    body.and_then(Body::whole).unwrap_or_default()
}

/// Draws a text of a tool call completely, to be shown in place of the excerpt; only links if it is
/// too large for a page.
pub fn whole_body(session: &SessionId, message: &Message, call: &Call, kind: BodyKind) -> String {
    let id = View::new(session.clone(), Bodies::Whole).message_id(message);
    let answer = message.run();
    let idx = answer.and_then(|it| {
        (0..it.parts.len()).find(|&idx| call_of(it, idx).is_some_and(|it| it.id == call.id))
    });
    let id = body_id(&part_id(&id, idx.unwrap_or_default()), kind);
    let all = whole_text(call, kind);
    let (bytes, lines) = (all.len() as u64, all.lines().count() as u64);
    if kind != BodyKind::Edit && !long_text::is_drawable(bytes, lines) {
        let url = View::new(session.clone(), Bodies::Cut).body_url(call, kind);
        return html! { p.gap { (long_text::show_all(&url, "", bytes, lines)) } }.into_string();
    }
    let budget = &mut SizeBudget::new(Detail::Whole);
    let drawn = match kind {
        BodyKind::Edit => Some(edited(call)),
        BodyKind::ArgumentsView => tool::arguments_view(call, budget, tool::in_body),
        BodyKind::Approval => {
            let budget = &mut SizeBudget::for_approval(None);
            tool::approval_view(call, budget).or_else(|| Some(unreadable(call, budget)))
        }
        BodyKind::ResultView => tool::result_view(&id, call, budget, tool::in_body),
        BodyKind::File => tool::file(call).map(|it| file(&it)),
        _ => Some(text(&id, kind, &all)),
    };
    drawn.map(Markup::into_string).unwrap_or_default()
}

pub(crate) fn file(file: &File) -> Markup {
    code::file(&file.path, &file.content)
}

/// Draws the content of an element with a complete text of a tool call; ids inside begin with `id`.
pub(crate) fn text(id: &str, kind: BodyKind, text: &str) -> Markup {
    html! {
        div.edge {
            @if !kind.is_output() { (json::pretty(text)) }
            @else if ansi::has_controls(text) { (ansi::html(text, id)) }
            @else { (text) }
        }
    }
}
