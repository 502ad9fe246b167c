//! The reducer: folds a session's log into the messages that a reader sees.
//!
//! Live view, reload, export, import and the history for a model all use [`Transcript::apply`], so they
//! cannot disagree. It never fails and applies each record once. It also works on the records of some
//! messages only: a page of a long session is rebuilt from those alone.

use std::collections::HashMap;
use std::ops::Range;

use super::queue::Queue;
use crate::run::standalone_part;
use crate::{
    BODY_EDGE, Content, Event, Message, Record, ResponseId, RunMessage, Seq, Summary, UserMessage,
};

/// A session's messages, queue and summary, built from its log.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// State of the session without its messages.
    pub summary: Summary,
    /// The messages of the session in the order in which they started.
    pub messages: Vec<Message>,
    /// Queue of the session: the messages that wait for their run.
    pub queue: Queue,
    /// Sequence number of the last applied record; zero before the first.
    pub head: Seq,
    by_id: HashMap<String, usize>,
    body_edge: usize,
    /// Whether the transcript lacks earlier messages of the session.
    is_cut: bool,
}

/// The effect of one record on a transcript: the parts of a live view that are out of date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The record changed nothing visible.
    None,
    /// The session's own fields changed, such as title, agent or state.
    Session,
    /// The queue changed.
    Queue,
    /// A message was added to the transcript.
    Added {
        /// Index of the new message in [`Transcript::messages`].
        message: usize,
    },
    /// A message changed: some of its parts, or its own fields such as state or usage.
    Updated {
        /// Index of the changed message in [`Transcript::messages`].
        message: usize,
        /// Indexes of the message's parts that may have changed; empty if only its own fields
        /// changed.
        parts: Range<usize>,
    },
    /// The history was rewound: messages were superseded.
    Rewound {
        /// Index of the first superseded message; all later ones are superseded too.
        from: usize,
    },
}

impl Default for Transcript {
    fn default() -> Self {
        Self::keeping(BODY_EDGE)
    }
}

impl Transcript {
    /// Creates an empty transcript that keeps arguments, output and results whole, for formats and
    /// exports.
    pub fn whole() -> Self {
        Self::keeping(usize::MAX)
    }

    fn keeping(body_edge: usize) -> Self {
        Self {
            summary: Summary::default(),
            messages: Vec::new(),
            queue: Queue::default(),
            head: Seq(0),
            by_id: HashMap::new(),
            body_edge,
            is_cut: false,
        }
    }

    /// Builds the transcript of the given records.
    pub fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut transcript = Self::default();
        transcript.extend(records);
        transcript
    }

    /// Applies records to the transcript in order.
    pub fn extend<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) {
        for record in records {
            self.apply(record);
        }
    }

    /// Returns the message with this id, see [`Message::id`].
    pub fn message(&self, id: &str) -> Option<&Message> {
        self.messages.get(*self.by_id.get(id)?)
    }

    /// Returns the index in [`Transcript::messages`] of the message with this id, see
    /// [`Message::id`].
    pub fn index_of(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Drops the first `n` messages of the transcript. From now on, records of an unknown run are
    /// ignored unless they start it, because they belong to a dropped message.
    pub fn drop_earlier(&mut self, n: usize) {
        self.is_cut = true;
        self.messages.drain(..n);
        self.by_id.retain(|_, idx| {
            let is_kept = *idx >= n;
            *idx = idx.saturating_sub(n);
            is_kept
        });
    }

    /// Marks the messages with these ids as superseded, for a transcript that lacks the
    /// `history_rewound` record.
    pub fn supersede<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) {
        for id in ids {
            if let Some(&idx) = self.by_id.get(id) {
                self.messages[idx].superseded = true;
            }
        }
    }

    /// Applies one record and returns its effect. A record that was applied before has no effect.
    pub fn apply(&mut self, record: &Record) -> Change {
        if record.seq <= self.head {
            return Change::None;
        }
        self.head = record.seq;
        let session_changed = self.summary.apply(record);
        let queue_changed = self.queue.apply(record);
        match self.apply_event(record) {
            Change::None if queue_changed => Change::Queue,
            Change::None if session_changed => Change::Session,
            change => change,
        }
    }

    fn apply_event(&mut self, record: &Record) -> Change {
        match &record.event {
            Event::UserMessage { message_id, client_id, role, text, attachments, from, sent } => {
                let message = UserMessage {
                    id: message_id.clone(),
                    client_id: client_id.clone(),
                    role: *role,
                    text: text.clone(),
                    attachments: attachments.clone(),
                    from: from.clone(),
                    sent: sent.clone(),
                };
                self.add(record, Content::User(message))
            }
            Event::HistoryRewound { before_message_id, .. } => {
                self.rewind(before_message_id, record)
            }
            event if event.is_session_event() => Change::None,
            event => match (&record.response_id, standalone_part(event, record.at)) {
                (Some(id), _) => self.update_run(id, record),
                (None, Some(kind)) => self.add(record, Content::Aside(kind)),
                (None, None) => Change::None,
            },
        }
    }

    fn update_run(&mut self, id: &ResponseId, record: &Record) -> Change {
        let known = self.by_id.get(id.as_str()).copied();
        let message = match known {
            Some(idx) => idx,
            None if self.is_cut && !matches!(record.event, Event::RunStart { .. }) => {
                return Change::None;
            }
            // Normally `run_start`; in a broken log a run may start with any record.
            None => {
                let run = RunMessage::new(id.clone(), record.at, self.body_edge);
                self.add(record, Content::Run(Box::new(run)));
                self.messages.len() - 1
            }
        };
        let Some(Message { changed, content: Content::Run(run), .. }) =
            self.messages.get_mut(message)
        else {
            return Change::None;
        };
        *changed = record.seq;
        let parts = run.apply(record);
        match known {
            Some(_) => Change::Updated { message, parts },
            None => Change::Added { message },
        }
    }

    /// Adds a message to the transcript; ignores it if a message with its id exists.
    fn add(&mut self, record: &Record, content: Content) -> Change {
        let message = Message {
            first: record.seq,
            changed: record.seq,
            created_at: record.at,
            superseded: false,
            content,
        };
        let id = message.id();
        if self.by_id.contains_key(&id) {
            return Change::None;
        }
        self.by_id.insert(id, self.messages.len());
        self.messages.push(message);
        Change::Added { message: self.messages.len() - 1 }
    }

    fn rewind(&mut self, before: &str, record: &Record) -> Change {
        let from = match self.by_id.get(before) {
            Some(&from) => from,
            // The message was dropped, so all that remain came after it.
            None if self.is_cut => 0,
            None => return Change::None,
        };
        for message in &mut self.messages[from..] {
            message.superseded = true;
            message.changed = record.seq;
        }
        Change::Rewound { from }
    }
}
