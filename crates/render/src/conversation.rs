//! The conversation: the messages of a window, those that were rewound behind a link.

use std::ops::Range;

use transcript::{Message, Transcript};

use crate::message::message;
use crate::tree::Element;
use crate::view::View;
use crate::words::count;

/// One child of the list of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Group {
    One(usize),
    /// Messages that an edit or another try has replaced.
    Rewound(Range<usize>),
}

pub(crate) fn groups(transcript: &Transcript) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut start = 0;
    for run in transcript.messages.chunk_by(|a, b| a.superseded && b.superseded) {
        let is_rewound = run.first().is_some_and(|it| it.superseded);
        let range = start..start + run.len();
        start = range.end;
        groups.push(if is_rewound { Group::Rewound(range) } else { Group::One(range.start) });
    }
    groups
}

impl Group {
    fn first<'a>(&self, transcript: &'a Transcript) -> &'a Message {
        let (Self::One(idx) | Self::Rewound(Range { start: idx, .. })) = self;
        &transcript.messages[*idx]
    }

    pub(crate) fn id(&self, view: &View, transcript: &Transcript) -> String {
        let id = view.message_id(self.first(transcript));
        match self {
            Self::One(_) => id,
            Self::Rewound(_) => format!("{id}-r"),
        }
    }

    pub(crate) fn draw(&self, view: &View, transcript: &Transcript) -> Element {
        let Self::Rewound(range) = self else { return message(view, self.first(transcript)) };
        let id = self.id(view, transcript);
        let words = format!("{} replaced by what follows", count(range.len() as u64, "message"));
        let summary = Element::new("summary", format!("{id}-s")).text(&words);
        let messages = transcript.messages[range.clone()].iter();
        Element::new("details", id)
            .class("rewound")
            .child(summary)
            .children(messages.map(|it| message(view, it)))
    }
}

/// All messages of the window.
pub(crate) fn messages(view: &View, transcript: &Transcript) -> Element {
    let groups = groups(transcript);
    Element::div(view.id("messages"))
        .class("messages")
        .children(groups.iter().map(|it| it.draw(view, transcript)))
}
