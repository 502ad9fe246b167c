//! Messages that were said while a run was active and wait for their turn.

use crate::{
    Attachment, ClientId, Event, MessageId, Millis, Record, SendMode, Sender, SentForm, Seq,
    SteerState,
};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queue {
    /// In the order in which they will start.
    pub messages: Vec<QueuedMessage>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct QueuedMessage {
    pub id: MessageId,
    /// The record that put it here.
    pub seq: Seq,
    pub client_id: Option<ClientId>,
    pub at: Millis,
    pub text: String,
    pub attachments: Vec<Attachment>,
    /// [`SendMode::Steer`]: it is on its way into the run that is active.
    pub mode: SendMode,
    /// It does not start by itself until the queue is released.
    pub held: bool,
    /// As the `queue_held` said that held it.
    pub held_because: Option<String>,
    /// An agent was to take it into its run and did not.
    pub returned: bool,
    pub from: Option<Sender>,
    pub sent: Option<SentForm>,
}

impl QueuedMessage {
    /// Whether a run that is under way can take it: its text is all there is to it. The rest
    /// would be lost if the run gave it back. What another agent asks gets a run of its own, whose
    /// answer is the answer.
    pub fn is_steerable(&self) -> bool {
        self.attachments.is_empty() && self.sent.is_none() && self.from.is_none()
    }
}

impl Queue {
    pub fn get(&self, id: &MessageId) -> Option<&QueuedMessage> {
        self.messages.iter().find(|it| it.id == *id)
    }

    /// The next to start: what is held is passed over.
    pub fn next(&self) -> Option<&QueuedMessage> {
        self.messages.iter().find(|it| !it.held)
    }

    pub fn is_held(&self) -> bool {
        self.messages.iter().any(|it| it.held)
    }

    /// Takes in one record; true if the queue is different now.
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
