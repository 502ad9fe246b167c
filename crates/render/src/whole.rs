//! The whole of a call's text, where a page shows only its ends, or shows it without its colours.

use maud::{Markup, html};
use transcript::{Body, Call, Message, SessionId};

use crate::call::body_id;
use crate::card::edited;
use crate::message::part_id;
use crate::room::{Extent, Room};
use crate::tool::{self, File};
use crate::view::{Bodies, BodyKind, View, call_of, unreadable};
use crate::{ansi, badge, code, json, long};

/// A text as it is; empty where there is none.
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
        BodyKind::Asked | BodyKind::Question => return tool::text(call),
        BodyKind::Told => return tool::result_text(call).unwrap_or_default().to_owned(),
    };
    body.and_then(Body::whole).unwrap_or_default()
}

/// The same as HTML that the page puts beside what it has shown until then, and an exported file in its
/// place; the way to the text where it is too much for a page.
pub fn whole_body(session: &SessionId, message: &Message, call: &Call, kind: BodyKind) -> String {
    let id = View::new(session.clone(), Bodies::Whole).message_id(message);
    let answer = message.run();
    let idx = answer.and_then(|it| {
        (0..it.parts.len()).find(|&idx| call_of(it, idx).is_some_and(|it| it.id == call.id))
    });
    let id = body_id(&part_id(&id, idx.unwrap_or_default()), kind);
    let all = whole_text(call, kind);
    let (bytes, lines) = (all.len() as u64, all.lines().count() as u64);
    if kind != BodyKind::Edit && !long::is_drawable(bytes, lines) {
        let url = View::new(session.clone(), Bodies::Cut).body_url(call, kind);
        return html! { p.gap { (long::show_all(&url, "", bytes, lines)) } }.into_string();
    }
    let room = &mut Room::new(Extent::Whole);
    let drawn = match kind {
        BodyKind::Edit => Some(edited(call)),
        BodyKind::Asked => tool::asked(call, room, tool::in_body),
        BodyKind::Question => {
            let room = &mut Room::for_decision(None);
            tool::proposed(call, room).or_else(|| Some(unreadable(call, room)))
        }
        BodyKind::Told => tool::told(&id, call, room, tool::in_body),
        BodyKind::File => tool::file(call).map(|it| file(&it)),
        _ => Some(text(&id, kind, &all)),
    };
    drawn.map(Markup::into_string).unwrap_or_default()
}

pub(crate) fn file(file: &File) -> Markup {
    code::file(&file.path, &file.content)
}

/// To stand in an element; the ids of what is in it begin with `id`.
pub(crate) fn text(id: &str, kind: BodyKind, text: &str) -> Markup {
    html! {
        div.edge {
            @if !kind.is_output() { (json::pretty(text)) }
            @else if ansi::has_controls(text) { (ansi::html(text, id)) }
            @else { (text) }
        }
    }
}
