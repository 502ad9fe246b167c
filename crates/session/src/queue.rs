//! The queue: messages that were sent while a run is open.
//!
//! A message leaves the queue in one commit with the record that says where it went: its `user_message`, a
//! `message_steered`, or a `message_dropped`.

use transcript::{Event, MessageId, MessageRole, QueuedMessage, SendMode};

use crate::lanes::CommandWait;
use crate::{Lookup, MessageState, NewMessage, QueuedChange, Receipt, Refused, ReplyTo, Session};

/// Maximum length of the queue for another message of a person.
const MAX_QUEUED: usize = 100;

impl Session {
    /// Accepts a message. A message whose idempotency key was used before is not accepted again.
    pub(crate) fn send(&mut self, message: NewMessage, reply: ReplyTo<Receipt>) {
        match message.client_id.clone() {
            None => self.accept_message(message, reply),
            Some(key) => {
                self.find(Lookup::MessageOfClient(key), CommandWait::Send { message, reply });
            }
        }
    }

    /// Accepts a message, unless `known` is the id of a message with the same idempotency key.
    pub(crate) fn send_once(
        &mut self,
        message: NewMessage,
        known: Option<MessageId>,
        reply: ReplyTo<Receipt>,
    ) {
        match known {
            None => self.accept_message(message, reply),
            Some(message_id) => {
                let state = self.state_of(&message_id);
                self.reply(reply, Receipt { message_id, state });
            }
        }
    }

    pub(crate) fn accept_message(&mut self, message: NewMessage, reply: ReplyTo<Receipt>) {
        let limit = if message.from.is_some() { self.limit_with_agents() } else { MAX_QUEUED };
        if self.must_wait() && self.journal.queue.messages.len() >= limit {
            return self.refuse(reply, Refused::QueueFull(limit));
        }
        let message_id = self.ids.message(self.now);
        self.take_message(message_id.clone(), message);
        let state = self.state_of(&message_id);
        self.reply(reply, Receipt { message_id, state });
    }

    /// Returns the maximum length of the queue for another message of an agent: all queued messages
    /// of people, and the permitted number of messages of agents.
    fn limit_with_agents(&self) -> usize {
        let messages = &self.journal.queue.messages;
        let of_people = messages.iter().filter(|it| it.from.is_none()).count();
        of_people + self.settings.limits.queued_exchanges
    }

    /// Returns whether a new message has to be queued. Held messages do not count, because somebody
    /// who sends a message after a stop wants an answer to it.
    fn must_wait(&self) -> bool {
        self.has_run() || self.journal.queue.next().is_some()
    }

    /// Queues a message, or starts its run if no run is open and no queued message comes first.
    pub(crate) fn take_message(&mut self, message_id: MessageId, message: NewMessage) {
        let NewMessage { text, client_id, attachments, mode, from, client_tools, sent } = message;
        if !client_tools.is_empty() {
            let message_id = message_id.clone();
            self.push(None, Event::ClientTools { message_id, tools: client_tools });
        }
        if !self.must_wait() {
            let role = MessageRole::User;
            let event =
                Event::UserMessage { message_id, client_id, role, text, attachments, from, sent };
            self.push(None, event);
            return self.answer_message();
        }
        let queued = Event::MessageQueued {
            message_id: message_id.clone(),
            client_id,
            text,
            attachments,
            position: None,
            mode,
            held: false,
            from,
            sent,
        };
        self.push(None, queued);
        if mode == SendMode::Steer {
            self.steer(&message_id);
        }
    }

    pub(crate) fn change_queued(
        &mut self,
        message_id: &MessageId,
        change: QueuedChange,
        reply: ReplyTo<()>,
    ) {
        let message = self.journal.queue.get(message_id);
        let Some(message) = message.filter(|it| !self.is_being_steered(it)).cloned() else {
            return self.refuse(reply, Refused::NoMessage(message_id.to_string()));
        };
        let message_id = message.id.clone();
        match change {
            QueuedChange::Position(position) => self.move_message(message_id, position),
            QueuedChange::Dropped => self.drop_message(&message),
            QueuedChange::Text(text) if message.from.is_some() => {
                self.replace_queued(&message, text);
            }
            QueuedChange::Text(text) => {
                let attachments = None;
                self.push(None, Event::MessageEdited { message_id, text, attachments, mode: None });
            }
        }
        self.reply(reply, ());
    }

    fn move_message(&mut self, message_id: MessageId, position: u32) {
        let messages = &self.journal.queue.messages;
        let last = u32::try_from(messages.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let position = position.min(last);
        if messages[position as usize].id != message_id {
            self.push(None, Event::MessageMoved { message_id, position });
        }
    }

    pub(crate) fn clear_queue(&mut self, reply: ReplyTo<()>) {
        for message in self.journal.queue.messages.clone() {
            if !self.is_being_steered(&message) {
                self.drop_message(&message);
            }
        }
        self.reply(reply, ());
    }

    pub(crate) fn release_queue(&mut self, reply: ReplyTo<()>) {
        if self.journal.queue.is_held() {
            self.push(None, Event::QueueReleased {});
        }
        self.reply(reply, ());
    }

    /// Holds the queue after a person has stopped the run, so that the next queued message does not
    /// start the agent again.
    pub(crate) fn hold_queue(&mut self) {
        if self.journal.queue.next().is_some() {
            self.push(None, Event::QueueHeld { reason: Some("stopped".to_owned()) });
        }
    }

    fn drop_message(&mut self, message: &QueuedMessage) {
        let (message_id, reason) = (message.id.clone(), Some("user".to_owned()));
        self.push(None, Event::MessageDropped { message_id, reason });
    }

    /// Replaces a queued message of another agent by an edited one, which counts as a message of
    /// the person who edited it.
    fn replace_queued(&mut self, message: &QueuedMessage, text: String) {
        let position = self.journal.queue.messages.iter().position(|it| it.id == message.id);
        self.drop_message(message);
        let queued = Event::MessageQueued {
            message_id: self.ids.message(self.now),
            client_id: None,
            text,
            attachments: message.attachments.clone(),
            position: position.and_then(|it| u32::try_from(it).ok()),
            mode: SendMode::Queue,
            held: message.held,
            from: None,
            sent: None,
        };
        self.push(None, queued);
    }

    /// Returns the state of a message that was accepted or steered.
    pub(crate) fn state_of(&self, message_id: &MessageId) -> MessageState {
        match self.journal.queue.get(message_id).map(|it| it.mode) {
            Some(SendMode::Queue) => MessageState::Queued,
            Some(SendMode::Steer) => MessageState::Steering,
            None if self.has_steered(message_id) => MessageState::HandedOver,
            None => MessageState::Started,
        }
    }
}
