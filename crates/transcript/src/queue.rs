//! Messages that were said while a run was active and wait for their turn.

use crate::{Attachment, ClientId, Event, MessageId, Millis, Record, SendMode, Sender, SteerState};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queue {
    /// In the order in which they will start.
    pub messages: Vec<Queued>,
    /// Nothing starts by itself until the queue is released; why, where it was said.
    pub held: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Queued {
    pub id: MessageId,
    pub client_id: Option<ClientId>,
    pub at: Millis,
    pub text: String,
    pub attachments: Vec<Attachment>,
    pub mode: SendMode,
    pub from: Option<Sender>,
}

impl Queue {
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
                from,
            } => {
                self.remove(message_id);
                let at = position.map_or(self.messages.len(), |it| it as usize);
                let queued = Queued {
                    id: message_id.clone(),
                    client_id: client_id.clone(),
                    at: record.at,
                    text: text.clone(),
                    attachments: attachments.clone(),
                    mode: *mode,
                    from: from.clone(),
                };
                self.messages.insert(at.min(self.messages.len()), queued);
                true
            }
            Event::MessageEdited { message_id, text, attachments } => {
                let Some(message) = self.messages.iter_mut().find(|it| it.id == *message_id) else {
                    return false;
                };
                message.text.clone_from(text);
                if let Some(attachments) = attachments {
                    message.attachments.clone_from(attachments);
                }
                true
            }
            Event::MessageMoved { message_id, position } => {
                let Some(message) = self.remove(message_id) else { return false };
                self.messages.insert((*position as usize).min(self.messages.len()), message);
                true
            }
            Event::MessageDequeued { message_id }
            | Event::MessageDropped { message_id, .. }
            | Event::MessageSteered { message_id, state: SteerState::HandedOver, .. } => {
                self.remove(message_id).is_some()
            }
            Event::QueueHeld { reason } => {
                self.held = Some(reason.clone().unwrap_or_default());
                true
            }
            Event::QueueReleased {} => self.held.take().is_some(),
            _ => false,
        }
    }

    fn remove(&mut self, id: &MessageId) -> Option<Queued> {
        let idx = self.messages.iter().position(|it| it.id == *id)?;
        Some(self.messages.remove(idx))
    }
}
