//! The whole of a call's text, where a page shows only its ends, or shows it without its colours.

use maud::{Markup, html};
use transcript::{Body, Call, Message, SessionId};

use crate::tool::{self, File};
use crate::view::{Bodies, BodyKind, View};
use crate::{ansi, badge, code};

/// A text as it is; empty where there is none.
pub fn whole_text(call: &Call, kind: BodyKind) -> String {
    let body = match kind {
        BodyKind::Arguments => Some(call.input()),
        BodyKind::Proposed => Some(&call.arguments),
        BodyKind::Stdout => Some(&call.stdout),
        BodyKind::Stderr => Some(&call.stderr),
        BodyKind::Result => call.outcome.as_ref().and_then(|it| it.result.as_ref()),
        BodyKind::File => return tool::file(call).map(|it| it.content).unwrap_or_default(),
        BodyKind::Call => return badge::payload(call, call.input().whole()),
    };
    body.and_then(Body::whole).unwrap_or_default()
}

/// The same as HTML that the page puts beside what it has shown until then.
pub fn whole_body(session: &SessionId, message: &Message, call: &Call, kind: BodyKind) -> String {
    if kind == BodyKind::File {
        return tool::file(call).map(|it| file(&it).into_string()).unwrap_or_default();
    }
    let message = View::new(session.clone(), Bodies::Whole).message_id(message);
    let id = format!("{message}-whole-{}-{}", call.number, kind.word());
    text(&id, kind, &whole_text(call, kind)).into_string()
}

pub(crate) fn file(file: &File) -> Markup {
    code::file(&file.path, &file.content)
}

/// To stand in an element; the ids of what is in it begin with `id`.
pub(crate) fn text(id: &str, kind: BodyKind, text: &str) -> Markup {
    html! {
        div.edge { @if kind.is_output() { (ansi::html(text, id)) } @else { (text) } }
    }
}
