//! Roughly how much of a page a message takes, so that a page of heavy messages shows fewer of them.

use transcript::{Body, Content, Message, PartKind};

use crate::call::LINE_MAX;
use crate::long;
use crate::parts::MAX_SHOWN;
use crate::room::{HEAD, INLINE_MAX};

/// Bytes around what a part says.
const AROUND: usize = 1000;

/// Returns an estimate in bytes, from sizes alone.
pub fn weight(message: &Message) -> usize {
    match &message.content {
        Content::User(said) => AROUND + long::weight(&said.text),
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
            PartKind::Text(it) => long::weight(&it.text),
            PartKind::Thinking(it) => long::weight(&it.text),
            PartKind::Steered(it) => long::weight(&it.text),
            PartKind::Exchange(it) => {
                let (result, error) = it.outcome.as_ref().map_or((None, None), |it| {
                    (it.result.as_ref().map(ToString::to_string), it.error.as_ref())
                });
                long::weight(&it.text)
                    + result.map_or(0, |it| long::weight(&it))
                    + error.map_or(0, |it| long::weight(&it.message))
            }
            PartKind::Notice { text, .. } => long::weight(text),
            PartKind::Unrecognized { raw, .. } => long::weight(raw),
            PartKind::Call(call) => {
                let result = call.outcome.as_ref().and_then(|it| it.result.as_ref());
                // The arguments and the result are there as the tool's view and as they are.
                let bodies = [Some(call.input()), Some(call.input()), result, result];
                let bodies = bodies.into_iter().chain([Some(&call.stdout), Some(&call.stderr)]);
                let error = call.outcome.as_ref().and_then(|it| it.error.as_ref());
                bodies.flatten().map(of_body).sum::<usize>()
                    + error.map_or(0, |it| long::weight(&it.message))
                    // Lines: the arguments in the head and in the body, the outcome there and in the badge.
                    + 2 * line(&call.summary)
                    + call.outcome.as_ref().map_or(0, |it| 3 * line(&it.summary))
            }
        }
}

/// A line of which no more than its beginning is shown.
fn line(text: &str) -> usize {
    text.len().min(LINE_MAX)
}

fn of_body(body: &Body) -> usize {
    let is_cut = body.bytes() > INLINE_MAX;
    if is_cut { 2 * HEAD } else { body.bytes() as usize }
}
