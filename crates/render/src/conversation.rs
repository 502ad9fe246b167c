//! The conversation: the messages of a window, those that were rewound behind a link.

use transcript::Message;

use crate::message::message;
use crate::tree::Element;
use crate::view::View;
use crate::words::count;

/// The messages of a window. What is added to a session goes to the list `messages`, which only a window
/// that reaches the session's end has: elsewhere it has no place.
pub(crate) fn messages(view: &View, messages: &[Message], reach: Reach) -> Element {
    let (id, class) = match reach {
        Reach::End => ("messages", "messages"),
        Reach::Part => ("window", "messages partial"),
    };
    let groups = messages.chunk_by(|a, b| a.superseded && b.superseded);
    Element::div(view.id(id)).class(class).children(groups.map(|it| group(view, it)))
}

/// How far a window reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To the session's end.
    End,
    /// There are later messages.
    Part,
}

/// One child of the list: a message, or those that an edit or another try has replaced.
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
