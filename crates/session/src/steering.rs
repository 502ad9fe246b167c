//! Steering: messages that go into the open run, and come back to the queue if the run does not take them.

use backends::RunInput;
use serde_json::json;
use transcript::{
    Event, MessageId, PartKind, QueuedMessage, ResponseId, RunMessage, SendMode, SteerState,
    Steered,
};

use crate::run::Run;
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

    /// Hands the agent of a resumed run the messages that were being steered into that run before.
    pub(crate) fn steer_pending(&mut self) {
        for message_id in self.pending_steers() {
            self.steer(&message_id);
        }
    }

    /// Returns a message to the queue because the agent did not take it into its run, or gave it
    /// back.
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

    /// Returns all steered messages that the model has not seen to the queue, because the agent of
    /// the run is ended.
    pub(crate) fn take_back_all(&mut self) {
        let Some(run) = self.phase.run() else { return };
        let handed_over: Vec<MessageId> = unseen_in(&run.message).map(|it| it.id.clone()).collect();
        for message_id in handed_over.into_iter().chain(self.pending_steers()) {
            self.take_back(&message_id);
        }
    }

    /// Logs that the ending run has not taken the messages that were still being steered into it.
    /// They stay queued.
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

    /// Returns the steered messages that the model of an interrupted run has not seen to the queue.
    pub(crate) fn return_unseen(&mut self, message: &RunMessage) {
        self.return_steers_of(Some(&message.id));
        for (position, steered) in (0..).zip(unseen_in(message)) {
            let is_stopped = message.cancel_requested.is_some();
            self.queue_again(&message.id, steered, position, is_stopped);
        }
    }

    /// Queues a steered message again at this position, before messages that were sent after it.
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

    /// Returns whether a program may have the queued message without having confirmed it yet.
    pub(crate) fn is_being_steered(&self, message: &QueuedMessage) -> bool {
        let is_program = self.program().is_some();
        message.mode == SendMode::Steer && is_program && self.has_run()
    }

    fn pending_steers(&self) -> Vec<MessageId> {
        let steers = self.journal.queue.messages.iter().filter(|it| it.mode == SendMode::Steer);
        steers.map(|it| it.id.clone()).collect()
    }
}

impl Run {
    pub(crate) fn has_steered(&self, message_id: &MessageId) -> bool {
        steered_in(&self.message).any(|it| it.id == *message_id)
    }
}

fn steered_in(message: &RunMessage) -> impl Iterator<Item = &Steered> {
    message.parts.iter().filter_map(|part| match &part.kind {
        PartKind::Steered(steered) => Some(steered),
        _ => None,
    })
}

/// Returns the steered messages that the agent has got and that, as far as it reports, its model
/// has not seen.
fn unseen_in(message: &RunMessage) -> impl Iterator<Item = &Steered> {
    steered_in(message).filter(|it| it.state == SteerState::HandedOver)
}

fn returned(message_id: &MessageId, text: String) -> Event {
    Event::MessageSteered { message_id: message_id.clone(), text, state: SteerState::Returned }
}
