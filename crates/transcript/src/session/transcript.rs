//! The reducer: folds a session's log into the messages that a reader sees.
//!
//! Live, reload, export, import and the history for a model all go through [`Transcript::apply`],
//! so they cannot disagree. It never fails, it takes each record once, and it may be given the
//! records of some messages only: a page of a long session is rebuilt from those alone.

use std::collections::HashMap;
use std::ops::Range;

use super::queue::Queue;
use crate::run::standalone_part;
use crate::{
    BODY_EDGE, Content, Event, Message, Record, ResponseId, RunMessage, Seq, Summary, UserMessage,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    pub summary: Summary,
    pub messages: Vec<Message>,
    pub queue: Queue,
    /// The last record taken in.
    pub head: Seq,
    by_id: HashMap<String, usize>,
    body_edge: usize,
    /// There are messages before these, which are not here.
    is_cut: bool,
}

/// What one record did: what a live view has to draw again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing that is shown.
    None,
    /// The session's own fields: title, agent, state.
    Session,
    Queue,
    Added {
        message: usize,
    },
    /// Those parts may look different; also the message's own fields (state, usage, ...).
    Updated {
        message: usize,
        parts: Range<usize>,
    },
    /// That message and all after it were superseded.
    Rewound {
        from: usize,
    },
}

impl Default for Transcript {
    fn default() -> Self {
        Self::keeping(BODY_EDGE)
    }
}

impl Transcript {
    /// A transcript that keeps bodies whole, for formats and exports.
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

    pub fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut transcript = Self::default();
        transcript.extend(records);
        transcript
    }

    pub fn extend<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) {
        for record in records {
            self.apply(record);
        }
    }

    pub fn message(&self, id: &str) -> Option<&Message> {
        self.messages.get(*self.by_id.get(id)?)
    }

    /// Where a message stands in [`Transcript::messages`].
    pub fn index_of(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Forgets the first messages. From now on a run that is not known here is one of those that came before
    /// them, unless it begins; none of its records makes a message.
    pub fn drop_earlier(&mut self, n: usize) {
        self.is_cut = true;
        self.messages.drain(..n);
        self.by_id.retain(|_, idx| {
            let is_kept = *idx >= n;
            *idx = idx.saturating_sub(n);
            is_kept
        });
    }

    /// Marks messages as superseded, where the record that did it is not among those taken in.
    pub fn supersede<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) {
        for id in ids {
            if let Some(&idx) = self.by_id.get(id) {
                self.messages[idx].superseded = true;
            }
        }
    }

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
                let said = UserMessage {
                    id: message_id.clone(),
                    client_id: client_id.clone(),
                    role: *role,
                    text: text.clone(),
                    attachments: attachments.clone(),
                    from: from.clone(),
                    sent: sent.clone(),
                };
                self.add(record, Content::User(said))
            }
            Event::HistoryRewound { before_message_id, .. } => {
                self.rewind(before_message_id, record)
            }
            event if event.is_session_event() => Change::None,
            event => match (&record.response_id, standalone_part(event, record.at)) {
                (Some(id), _) => self.update_answer(id, record),
                (None, Some(kind)) => self.add(record, Content::Aside(kind)),
                (None, None) => Change::None,
            },
        }
    }

    fn update_answer(&mut self, id: &ResponseId, record: &Record) -> Change {
        let known = self.by_id.get(id.as_str()).copied();
        let message = match known {
            Some(idx) => idx,
            None if self.is_cut && !matches!(record.event, Event::RunStart { .. }) => {
                return Change::None;
            }
            // Normally `run_start`; a broken log may begin anywhere.
            None => {
                let answer = RunMessage::new(id.clone(), record.at, self.body_edge);
                self.add(record, Content::Run(Box::new(answer)));
                self.messages.len() - 1
            }
        };
        let Some(Message { changed, content: Content::Run(answer), .. }) =
            self.messages.get_mut(message)
        else {
            return Change::None;
        };
        *changed = record.seq;
        let parts = answer.apply(record);
        match known {
            Some(_) => Change::Updated { message, parts },
            None => Change::Added { message },
        }
    }

    /// A second message under a known id is the same message.
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
            // All that is here came after it.
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
