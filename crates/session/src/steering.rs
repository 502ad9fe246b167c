//! Steering: messages that go into the open run, and come back to the queue if the run does not take them.

use backends::RunInput;
use serde_json::json;
use transcript::{Event, MessageId, QueuedMessage, SendMode, Steered};

use crate::{Receipt, Refused, ReplyTo, Session};

impl Session {
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

    /// Hands a queued message to the agent during the open run. If the agent cannot take it now,
    /// the log records that and the message stays queued.
    pub(crate) fn steer(&mut self, message_id: &MessageId) {
        let Some(message) = self.journal.queue.get(message_id) else { return };
        let is_heard = self.agent.is_some() && !self.phase.is_starting();
        // Programs take a message once.
        if message.is_steerable() && is_heard && !self.has_steered(message_id) {
            let message = json!({ "role": "user", "content": message.text });
            self.tell(RunInput::Steer { message_id: message_id.clone(), message });
        } else {
            self.return_steered(message_id);
        }
    }

    /// Hands the agent of a resumed run the messages that were being steered into that run before.
    pub(crate) fn steer_pending(&mut self) {
        let messages = self.journal.queue.messages.iter();
        let waiting = messages.filter(|it| it.mode == SendMode::Steer).map(|it| it.id.clone());
        for message_id in waiting.collect::<Vec<_>>() {
            self.steer(&message_id);
        }
    }

    /// Returns a message to the queue because the agent did not take it into its run, or gave it
    /// back.
    pub(crate) fn return_steered(&mut self, message_id: &MessageId) {
        let Some(run) = self.phase.run() else { return };
        let held = self.phase.is_stopping();
        let events = run.message.return_steered(message_id, &self.journal.queue, held);
        self.push_all(events);
    }

    /// Returns all steered messages that the model has not read to the queue, because the agent of
    /// the run is ended.
    pub(crate) fn return_all_steered(&mut self) {
        let Some(run) = self.phase.run() else { return };
        let queue = &self.journal.queue;
        let unread = run.message.return_unread(queue, self.phase.is_stopping());
        let waiting = run.message.return_waiting(queue);
        self.push_all(unread.into_iter().chain(waiting));
    }

    /// Returns whether a program may have the queued message without having confirmed it yet.
    pub(crate) fn is_being_steered(&self, message: &QueuedMessage) -> bool {
        let is_program = self.program().is_some();
        message.mode == SendMode::Steer && is_program && self.has_run()
    }

    /// Returns whether the agent of the open run has got the message.
    pub(crate) fn has_steered(&self, message_id: &MessageId) -> bool {
        let is_it = |it: &Steered| it.id == *message_id;
        self.phase.run().is_some_and(|it| it.message.steered().any(is_it))
    }
}
