//! The queue: messages that were sent while a run is open.
//!
//! A message leaves the queue in one commit with the record that says where it went: its `user_message`, a
//! `message_steered`, or a `message_dropped`.

use std::ops::Deref;

use transcript::{
    Event, ExchangeId, MessageId, MessageRole, Queue, QueuedMessage, SendMode, Sender,
};

use crate::lanes::CommandWait;
use crate::{
    Limits, Lookup, MessageState, NewMessage, QueuedChange, Receipt, Refused, ReplyTo, Session,
};

/// Maximum length of the queue for another message of a person.
const MAX_QUEUED: usize = 100;

/// The messages that wait for the open run to end. It computes the events that change it, and
/// changes only when it gets their records.
#[derive(Debug)]
pub(crate) struct MessageQueue(pub(crate) Queue);

impl Deref for MessageQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.0
    }
}

impl MessageQueue {
    /// Returns the maximum length of the queue for this message to be added. Messages of agents
    /// have a limit of their own, so that they leave room for people.
    fn limit_for(&self, message: &NewMessage, limits: &Limits) -> usize {
        if message.from.is_none() {
            return MAX_QUEUED;
        }
        let of_people = self.messages.iter().filter(|it| it.from.is_none()).count();
        of_people + limits.queued_exchanges
    }

    /// Returns the events that take the next message from the queue and say it. `None` if all
    /// messages are held or there are none.
    pub(crate) fn start_next(&self) -> Option<[Event; 2]> {
        let next = self.next().cloned()?;
        let QueuedMessage { id: message_id, client_id, text, attachments, from, sent, .. } = next;
        let role = MessageRole::User;
        Some([
            Event::MessageDequeued { message_id: message_id.clone() },
            Event::UserMessage { message_id, client_id, role, text, attachments, from, sent },
        ])
    }

    /// Returns the events that change a queued message as a person wants. An edited message of
    /// another agent is replaced by one of that person, which gets the id `new_id`.
    fn change(
        &self,
        message: &QueuedMessage,
        change: QueuedChange,
        new_id: impl FnOnce() -> MessageId,
    ) -> Vec<Event> {
        let message_id = message.id.clone();
        match change {
            QueuedChange::Position(position) => Vec::from_iter(self.move_to(message_id, position)),
            QueuedChange::Dropped => vec![dropped_by_user(message)],
            QueuedChange::Text(text) if message.from.is_some() => {
                vec![dropped_by_user(message), self.replacement(message, text, new_id())]
            }
            QueuedChange::Text(text) => {
                let attachments = None;
                vec![Event::MessageEdited { message_id, text, attachments, mode: None }]
            }
        }
    }

    fn move_to(&self, message_id: MessageId, position: u32) -> Option<Event> {
        let last = u32::try_from(self.messages.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let position = position.min(last);
        let is_there = self.messages[position as usize].id == message_id;
        (!is_there).then_some(Event::MessageMoved { message_id, position })
    }

    fn replacement(&self, message: &QueuedMessage, text: String, message_id: MessageId) -> Event {
        let position = self.messages.iter().position(|it| it.id == message.id);
        Event::MessageQueued {
            message_id,
            client_id: None,
            text,
            attachments: message.attachments.clone(),
            position: position.and_then(|it| u32::try_from(it).ok()),
            mode: SendMode::Queue,
            held: message.held,
            from: None,
            sent: None,
        }
    }

    /// Returns the queued message that another agent has sent with this exchange.
    pub(crate) fn message_of(&self, exchange: &ExchangeId) -> Option<&QueuedMessage> {
        let is_it = |from: &Sender| from.exchange_id == *exchange && !from.is_answer;
        self.messages.iter().find(|it| it.from.as_ref().is_some_and(is_it))
    }
}

fn dropped_by_user(message: &QueuedMessage) -> Event {
    let (message_id, reason) = (message.id.clone(), Some("user".to_owned()));
    Event::MessageDropped { message_id, reason }
}

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
        let limit = self.journal.queue.limit_for(&message, &self.settings.limits);
        if self.must_wait() && self.journal.queue.messages.len() >= limit {
            return self.refuse(reply, Refused::QueueFull(limit));
        }
        let message_id = self.ids.message(self.now);
        self.take_message(message_id.clone(), message);
        let state = self.state_of(&message_id);
        self.reply(reply, Receipt { message_id, state });
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
        let Some(message) = message.filter(|it| !self.is_being_steered(it)) else {
            return self.refuse(reply, Refused::NoMessage(message_id.to_string()));
        };
        let (ids, now) = (&mut self.ids, self.now);
        let events = self.journal.queue.change(message, change, || ids.message(now));
        self.push_to_session(events);
        self.reply(reply, ());
    }

    pub(crate) fn clear_queue(&mut self, reply: ReplyTo<()>) {
        let messages = self.journal.queue.messages.iter();
        let dropped = messages.filter(|it| !self.is_being_steered(it)).map(dropped_by_user);
        self.push_to_session(dropped.collect::<Vec<_>>());
        self.reply(reply, ());
    }

    pub(crate) fn release_queue(&mut self, reply: ReplyTo<()>) {
        let released = self.journal.queue.is_held().then_some(Event::QueueReleased {});
        self.push_to_session(released);
        self.reply(reply, ());
    }

    /// Holds the queue after a person has stopped the run, so that the next queued message does not
    /// start the agent again.
    pub(crate) fn hold_queue(&mut self) {
        let reason = Some("stopped".to_owned());
        let held = self.journal.queue.next().map(|_| Event::QueueHeld { reason });
        self.push_to_session(held);
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
