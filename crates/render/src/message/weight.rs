//! Estimated size of a message on a page, so that a page shows fewer large messages.

use transcript::{Body, Content, Message, PartKind};

use crate::message::call::LINE_MAX;
use crate::message::long_text;
use crate::message::shown_parts::MAX_SHOWN;
use crate::text::budget::{HEAD, INLINE_MAX};

/// Estimated number of bytes of HTML markup around a part.
const AROUND: usize = 1000;

/// Estimates the size of a drawn message in bytes of HTML.
pub fn weight(message: &Message) -> usize {
    match &message.content {
        Content::User(said) => AROUND + long_text::weight(&said.text),
        Content::Aside(kind) => of_part(kind),
        Content::Run(answer) => {
            let parts = answer.parts.iter().rev().take(MAX_SHOWN);
            AROUND + parts.map(|it| of_part(&it.kind)).sum::<usize>()
        }
    }
}

fn of_part(kind: &PartKind) -> usize {
    AROUND
        + match kind {
            PartKind::Text(it) => long_text::weight(&it.text),
            PartKind::Thinking(it) => long_text::weight(&it.text),
            PartKind::Steered(it) => long_text::weight(&it.text),
            PartKind::Exchange(it) => {
                let (result, error) = it.outcome.as_ref().map_or((None, None), |it| {
                    (it.result.as_ref().map(ToString::to_string), it.error.as_ref())
                });
                long_text::weight(&it.text)
                    + result.map_or(0, |it| long_text::weight(&it))
                    + error.map_or(0, |it| long_text::weight(&it.message))
            }
            PartKind::Notice { text, .. } => long_text::weight(text),
            PartKind::Unrecognized { raw, .. } => long_text::weight(raw),
            PartKind::Call(call) => {
                let result = call.outcome.as_ref().and_then(|it| it.result.as_ref());
                // Arguments and result appear twice: in the tool's view and as JSON.
                let bodies = [Some(call.input()), Some(call.input()), result, result];
                let bodies = bodies.into_iter().chain([Some(&call.stdout), Some(&call.stderr)]);
                let error = call.outcome.as_ref().and_then(|it| it.error.as_ref());
                bodies.flatten().map(of_body).sum::<usize>()
                    + error.map_or(0, |it| long_text::weight(&it.message))
                    // One-line summaries: arguments in head and body; outcome there and in the badge.
                    + 2 * line(&call.summary)
                    + call.outcome.as_ref().map_or(0, |it| 3 * line(&it.summary))
            }
        }
}

/// Returns the size of a one-line summary in bytes, as drawn.
fn line(text: &str) -> usize {
    text.len().min(LINE_MAX)
}

fn of_body(body: &Body) -> usize {
    let is_cut = body.bytes() > INLINE_MAX;
    if is_cut { 2 * HEAD } else { body.bytes() as usize }
}
