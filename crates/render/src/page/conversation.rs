//! The messages of a window; replaced ones are collapsed.

use transcript::Message;

use crate::html::element::Element;
use crate::message::message;
use crate::text::quantity::count;
use crate::view::View;

/// Draws a window of a session's messages. Patches append to the element `messages`, which only a
/// window that reaches the end of the session has.
pub(crate) fn messages(view: &View, messages: &[Message], reach: Reach) -> Element {
    let (id, class) = match reach {
        Reach::End => ("messages", "messages"),
        Reach::Part => ("window", "messages partial"),
    };
    let groups = messages.chunk_by(|a, b| a.superseded && b.superseded);
    Element::div(view.id(id)).class(class).children(groups.map(|it| group(view, it)))
}

/// Position of the end of a window of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The window ends at the end of the session.
    End,
    /// The window ends before the end of the session: later messages exist.
    Part,
}

/// Draws one child of the message list: a message, or the messages that an edit or a retry
/// replaced.
fn group(view: &View, messages: &[Message]) -> Element {
    let first = &messages[0];
    if !first.superseded {
        return message(view, first);
    }
    let id = format!("{}-r", view.message_id(first));
    let words = format!("{} (replaced)", count(messages.len() as u64, "earlier message"));
    let summary = Element::new("summary", format!("{id}-s")).text(&words);
    Element::new("details", id)
        .class("rewound")
        .child(summary)
        .children(messages.iter().map(|it| message(view, it)))
}
