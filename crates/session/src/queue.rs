//! The queue: messages that were sent while a run is open, and messages that are steered into it.
//!
//! A message leaves the queue in one commit with the record that says where it went: its `user_message`, a
//! `message_steered`, or a `message_dropped`.

use backends::RunInput;
use serde_json::json;
use transcript::{
    Event, MessageId, MessageRole, QueuedMessage, ResponseId, RunMessage, SendMode, SteerState,
    Steered,
};

use crate::lanes::CommandWait;
use crate::run::{steered_in, unseen_in};
use crate::{Lookup, MessageState, NewMessage, QueuedChange, Receipt, Refused, ReplyTo, Session};

/// Messages of people that may be queued.
const MAX_QUEUED: usize = 100;

impl Session {
    /// Accepts a message, once for each idempotency key.
    pub(crate) fn send(&mut self, message: NewMessage, reply: ReplyTo<Receipt>) {
        match message.client_id.clone() {
            None => self.accept_message(message, reply),
            Some(key) => {
                self.find(Lookup::MessageOfClient(key), CommandWait::Send { message, reply });
            }
        }
    }

    /// Accepts a message, unless it is known under its idempotency key.
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

    /// Returns how many messages may be queued in all if one more of an agent is to be among them.
    fn limit_with_agents(&self) -> usize {
        let messages = &self.journal.queue.messages;
        let of_people = messages.iter().filter(|it| it.from.is_none()).count();
        of_people + self.settings.limits.queued_exchanges
    }

    /// Held messages are no reason to wait: somebody who sends a message after a stop wants an answer to it.
    fn must_wait(&self) -> bool {
        self.has_run() || self.journal.queue.next().is_some()
    }

    /// Queues a message, or starts its run if nothing comes before it.
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

    /// Holds the queue: a person who stops the agent does not want the next message to start it again.
    pub(crate) fn hold_queue(&mut self) {
        if self.journal.queue.next().is_some() {
            self.push(None, Event::QueueHeld { reason: Some("stopped".to_owned()) });
        }
    }

    pub(crate) fn steer_queued(&mut self, message_id: MessageId, reply: ReplyTo<Receipt>) {
        let Some(message) = self.journal.queue.get(&message_id).cloned() else {
            return self.refuse(reply, Refused::NoMessage(message_id.to_string()));
        };
        if !self.has_run() {
            return self.refuse(reply, Refused::NothingRuns);
        }
        if message.mode != SendMode::Steer {
            let edited = Event::MessageEdited {
                message_id: message_id.clone(),
                text: message.text,
                attachments: None,
                mode: Some(SendMode::Steer),
            };
            self.push(None, edited);
            self.steer(&message_id);
        }
        let state = self.state_of(&message_id);
        self.reply(reply, Receipt { message_id, state });
    }

    /// Gives a queued message to the agent. If that is impossible the log says so, and the message stays queued.
    fn steer(&mut self, message_id: &MessageId) {
        let Some(message) = self.journal.queue.get(message_id) else { return };
        let Some(run) = self.phase.run() else { return };
        let is_heard = self.agent.is_some() && !self.phase.is_starting();
        // Programs take a message once.
        let is_new = !run.has_steered(message_id);
        if message.is_steerable() && is_heard && is_new {
            let message = json!({ "role": "user", "content": message.text });
            self.tell(RunInput::Steer { message_id: message_id.clone(), message });
        } else {
            self.take_back(message_id);
        }
    }

    /// Gives a resumed run the messages that were being steered into it.
    pub(crate) fn steer_pending(&mut self) {
        for message_id in self.pending_steers() {
            self.steer(&message_id);
        }
    }

    /// The agent could not take the message into its run, or took it and gave it back.
    pub(crate) fn take_back(&mut self, message_id: &MessageId) {
        let Some(run) = self.phase.run() else { return };
        if let Some(queued) = self.journal.queue.get(message_id) {
            let text = queued.text.clone();
            return self.push_here(returned(message_id, text));
        }
        let Some(steered) = unseen_in(&run.message).find(|it| it.id == *message_id).cloned() else {
            return;
        };
        // After those that came back before it.
        let is_back = |it: &&Steered| {
            it.state == SteerState::Returned && self.journal.queue.get(&it.id).is_some()
        };
        let position = steered_in(&run.message).filter(is_back).count();
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        let (id, is_stopped) = (run.id.clone(), run.is_stopped());
        self.queue_again(&id, &steered, position, is_stopped);
    }

    /// Takes back all messages because the agent is gone and the run goes to a new one.
    pub(crate) fn take_back_all(&mut self) {
        let Some(run) = self.phase.run() else { return };
        let handed_over: Vec<MessageId> = unseen_in(&run.message).map(|it| it.id.clone()).collect();
        for message_id in handed_over.into_iter().chain(self.pending_steers()) {
            self.take_back(&message_id);
        }
    }

    /// Takes back the messages that the ending run has not taken.
    pub(crate) fn return_pending_steers(&mut self) {
        let run = self.phase.run().map(|it| it.id.clone());
        self.return_steers_of(run.as_ref());
    }

    fn return_steers_of(&mut self, run: Option<&ResponseId>) {
        for message_id in self.pending_steers() {
            let text = self.journal.queue.get(&message_id).map(|it| it.text.clone());
            self.push(run, returned(&message_id, text.unwrap_or_default()));
        }
    }

    /// Takes back the messages that the agent of a broken-off run had and nobody has seen.
    pub(crate) fn return_unseen(&mut self, message: &RunMessage) {
        self.return_steers_of(Some(&message.id));
        for (position, steered) in (0..).zip(unseen_in(message)) {
            let is_stopped = message.cancel_requested.is_some();
            self.queue_again(&message.id, steered, position, is_stopped);
        }
    }

    /// Queues a message again, before those that were sent after it.
    fn queue_again(&mut self, run: &ResponseId, steered: &Steered, position: u32, held: bool) {
        self.push(Some(run), returned(&steered.id, steered.text.clone()));
        let queued = Event::MessageQueued {
            message_id: steered.id.clone(),
            client_id: None,
            text: steered.text.clone(),
            attachments: Vec::new(),
            position: Some(position),
            mode: SendMode::Queue,
            held,
            from: None,
            sent: None,
        };
        self.push(None, queued);
    }

    fn drop_message(&mut self, message: &QueuedMessage) {
        let (message_id, reason) = (message.id.clone(), Some("user".to_owned()));
        self.push(None, Event::MessageDropped { message_id, reason });
    }

    /// Replaces another agent's message, because edited words are those of the person who edited them.
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

    /// Whether a program was given the message and has not confirmed it yet.
    fn is_being_steered(&self, message: &QueuedMessage) -> bool {
        let is_program = self.program().is_some();
        message.mode == SendMode::Steer && is_program && self.has_run()
    }

    fn pending_steers(&self) -> Vec<MessageId> {
        let steers = self.journal.queue.messages.iter().filter(|it| it.mode == SendMode::Steer);
        steers.map(|it| it.id.clone()).collect()
    }

    fn state_of(&self, message_id: &MessageId) -> MessageState {
        match self.journal.queue.get(message_id).map(|it| it.mode) {
            Some(SendMode::Queue) => MessageState::Queued,
            Some(SendMode::Steer) => MessageState::Steering,
            None if self.phase.run().is_some_and(|it| it.has_steered(message_id)) => {
                MessageState::HandedOver
            }
            None => MessageState::Started,
        }
    }
}

fn returned(message_id: &MessageId, text: String) -> Event {
    Event::MessageSteered { message_id: message_id.clone(), text, state: SteerState::Returned }
}
