//! The queue: messages that wait for the current run to end.

use crate::{
    Attachment, ClientId, Event, MessageId, Millis, Record, SendMode, Sender, SentForm, Seq,
    SteerState,
};

/// The messages of a session that wait for the current run to end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queue {
    /// The queued messages in the order in which they start.
    pub messages: Vec<QueuedMessage>,
}

/// A message in the queue of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedMessage {
    /// Id of the queued message.
    pub id: MessageId,
    /// Sequence number of the record that queued the message.
    pub seq: Seq,
    /// The client's idempotency key for the message; `None` if it sent none.
    pub client_id: Option<ClientId>,
    /// Time at which the message was queued.
    pub at: Millis,
    /// Text of the message.
    pub text: String,
    /// Files that are attached to the message.
    pub attachments: Vec<Attachment>,
    /// How the message reaches the agent: in a run of its own, or, with [`SendMode::Steer`], in the
    /// active run, which has not taken it yet.
    pub mode: SendMode,
    /// Whether the message is held: it starts only after the queue is released.
    pub held: bool,
    /// Reason that the `queue_held` record gives for holding the message; `None` if it gives none
    /// or the message is not held by such a record.
    pub held_because: Option<String>,
    /// Whether the message was to be steered into the active run, which did not take it. Reset when
    /// it is to be steered again.
    pub returned: bool,
    /// The agent that sent the message; `None` for a person.
    pub from: Option<Sender>,
    /// Parts and metadata of the message as its client sent them, if the other fields lose
    /// information.
    pub sent: Option<SentForm>,
}

impl QueuedMessage {
    /// Returns whether the active run can take the message. Only a text from a person can be
    /// steered: a run that returns a message keeps only its text, and the message of another agent
    /// needs a run of its own, whose result is the reply.
    pub fn is_steerable(&self) -> bool {
        self.attachments.is_empty() && self.sent.is_none() && self.from.is_none()
    }
}

impl Queue {
    /// Returns the queued message with this id; `None` if the queue does not contain it.
    pub fn get(&self, id: &MessageId) -> Option<&QueuedMessage> {
        self.messages.iter().find(|it| it.id == *id)
    }

    /// Returns the message that starts next: the first one that is not held. `None` if there is
    /// none.
    pub fn next(&self) -> Option<&QueuedMessage> {
        self.messages.iter().find(|it| !it.held)
    }

    /// Returns whether any message in the queue is held.
    pub fn is_held(&self) -> bool {
        self.messages.iter().any(|it| it.held)
    }

    /// Applies one record of the session's log. Returns whether the queue changed.
    pub fn apply(&mut self, record: &Record) -> bool {
        match &record.event {
            Event::MessageQueued {
                message_id,
                client_id,
                text,
                attachments,
                position,
                mode,
                held,
                from,
                sent,
            } => {
                self.remove(message_id);
                let queued = QueuedMessage {
                    id: message_id.clone(),
                    seq: record.seq,
                    client_id: client_id.clone(),
                    at: record.at,
                    text: text.clone(),
                    attachments: attachments.clone(),
                    mode: *mode,
                    held: *held,
                    held_because: None,
                    returned: false,
                    from: from.clone(),
                    sent: sent.clone(),
                };
                self.insert(position.unwrap_or(u32::MAX), queued);
                true
            }
            Event::MessageEdited { message_id, text, attachments, mode } => {
                let Some(message) = self.get_mut(message_id) else { return false };
                if let Some(sent) = message.sent.as_mut().filter(|_| message.text != *text) {
                    sent.replace_text(text);
                }
                message.text.clone_from(text);
                if let Some(attachments) = attachments {
                    message.attachments.clone_from(attachments);
                }
                message.mode = mode.unwrap_or(message.mode);
                message.returned &= message.mode == SendMode::Queue;
                true
            }
            Event::MessageMoved { message_id, position } => {
                let Some(message) = self.remove(message_id) else { return false };
                self.insert(*position, message);
                true
            }
            Event::MessageDequeued { message_id }
            | Event::MessageDropped { message_id, .. }
            | Event::MessageSteered { message_id, state: SteerState::HandedOver, .. } => {
                self.remove(message_id).is_some()
            }
            Event::MessageSteered { message_id, state: SteerState::Returned, .. } => {
                let Some(message) = self.get_mut(message_id) else { return false };
                (message.mode, message.returned) = (SendMode::Queue, true);
                true
            }
            Event::QueueHeld { reason } => self.set_held(true, reason.as_ref()),
            Event::QueueReleased {} => self.set_held(false, None),
            _ => false,
        }
    }

    fn get_mut(&mut self, id: &MessageId) -> Option<&mut QueuedMessage> {
        self.messages.iter_mut().find(|it| it.id == *id)
    }

    fn insert(&mut self, position: u32, message: QueuedMessage) {
        self.messages.insert((position as usize).min(self.messages.len()), message);
    }

    fn remove(&mut self, id: &MessageId) -> Option<QueuedMessage> {
        let idx = self.messages.iter().position(|it| it.id == *id)?;
        Some(self.messages.remove(idx))
    }

    fn set_held(&mut self, held: bool, because: Option<&String>) -> bool {
        let mut is_changed = false;
        for message in self.messages.iter_mut().filter(|it| it.held != held) {
            (message.held, message.held_because) = (held, because.cloned());
            is_changed = true;
        }
        is_changed
    }
}
