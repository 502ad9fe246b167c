//! Messages that wait for their turn: sent while a run is active, changed, held, taken back, or handed
//! to the run that is under way.
//!
//! A message leaves the queue in one commit with the record that says where it went: its
//! `user_message`, a `message_steered`, or a `message_dropped`.

use backends::Input;
use serde_json::json;
use transcript::{
    Event, MessageId, MessageRole, PartKind, QueuedMessage, ResponseId, RunMessage, SendMode,
    SteerState, Steered,
};

use super::Task;
use super::commands::refuse;
use crate::clock;
use crate::session::command::{MessageState, NewMessage, QueuedChange, Receipt, Refused, Reply};

const QUEUE_MAX: usize = 100;

impl Task {
    /// A message starts a run, or waits for the one that is active. Sent twice under one client id,
    /// it is one message. What is held is no reason to wait: whoever says something after a stop
    /// wants an answer to that.
    pub(super) fn send(&mut self, message: NewMessage, reply: Reply<Receipt>) {
        let known = message.client_id.as_ref().map_or(Ok(None), |client_id| {
            self.shared.store.message_of_client_id(&self.id, client_id)
        });
        match known {
            Ok(Some(message_id)) => {
                let state = self.state_of(&message_id);
                self.reply(reply, Receipt { message_id, state });
            }
            Ok(None) => self.accept(message, reply),
            Err(error) => refuse(reply, Refused::Storage(error.to_string())),
        }
    }

    /// Whether or not there is one of that client id.
    pub(super) fn accept(&mut self, message: NewMessage, reply: Reply<Receipt>) {
        let message_id = clock::new_message_id();
        let limit = if message.from.is_some() { self.room_for_agents() } else { QUEUE_MAX };
        if self.must_wait() && self.queue.messages.len() >= limit {
            return refuse(reply, Refused::QueueFull(limit));
        }
        self.take_message(message_id.clone(), message);
        let state = self.state_of(&message_id);
        self.reply(reply, Receipt { message_id, state });
    }

    fn must_wait(&self) -> bool {
        self.run.is_some() || self.queue.next().is_some()
    }

    /// Now, or when its turn comes.
    pub(super) fn take_message(&mut self, message_id: MessageId, message: NewMessage) {
        let NewMessage { text, client_id, attachments, mode, from, client_tools, sent } = message;
        if !client_tools.is_empty() {
            let (message_id, tools) = (message_id.clone(), client_tools);
            self.push(None, Event::ClientTools { message_id, tools });
        }
        if self.must_wait() {
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
        } else {
            let role = MessageRole::User;
            let said =
                Event::UserMessage { message_id, client_id, role, text, attachments, from, sent };
            self.push(None, said);
            self.answer_message();
        }
    }

    pub(super) fn change_queued(
        &mut self,
        message_id: &MessageId,
        change: QueuedChange,
        reply: Reply<()>,
    ) {
        let message = self.queue.get(message_id).filter(|it| !self.is_leaving(it)).cloned();
        let Some(message) = message else {
            return refuse(reply, Refused::NoMessage(message_id.to_string()));
        };
        let message_id = message.id.clone();
        match change {
            QueuedChange::Position(position) => {
                let last = self.queue.messages.len() - 1;
                let position = (position as usize).min(last);
                if self.queue.messages[position].id != message_id {
                    let position = u32::try_from(position).unwrap_or(u32::MAX);
                    self.push(None, Event::MessageMoved { message_id, position });
                }
            }
            QueuedChange::Dropped => self.drop_message(&message),
            QueuedChange::Text(text) if message.from.is_some() => {
                self.replace_message(&message, text);
            }
            QueuedChange::Text(text) => {
                let edited =
                    Event::MessageEdited { message_id, text, attachments: None, mode: None };
                self.push(None, edited);
            }
        }
        self.reply(reply, ());
    }

    pub(super) fn clear_queue(&mut self, reply: Reply<()>) {
        for message in self.queue.messages.clone() {
            if !self.is_leaving(&message) {
                self.drop_message(&message);
            }
        }
        self.reply(reply, ());
    }

    pub(super) fn release_queue(&mut self, reply: Reply<()>) {
        if self.queue.is_held() {
            self.push(None, Event::QueueReleased {});
        }
        self.reply(reply, ());
    }

    /// Somebody who stops the agent does not want the next message to set it going again.
    pub(super) fn hold_queue(&mut self) {
        if self.queue.next().is_some() {
            self.push(None, Event::QueueHeld { reason: Some("stopped".to_owned()) });
        }
    }

    pub(super) fn steer_queued(&mut self, message_id: MessageId, reply: Reply<Receipt>) {
        let Some(message) = self.queue.get(&message_id) else {
            return refuse(reply, Refused::NoMessage(message_id.to_string()));
        };
        if self.run.is_none() {
            return refuse(reply, Refused::NothingRuns);
        }
        if message.mode != SendMode::Steer {
            let edited = Event::MessageEdited {
                message_id: message_id.clone(),
                text: message.text.clone(),
                attachments: None,
                mode: Some(SendMode::Steer),
            };
            self.push(None, edited);
            self.steer(&message_id);
        }
        let state = self.state_of(&message_id);
        self.reply(reply, Receipt { message_id, state });
    }

    /// Hands a message that waits to the run. If it cannot be, the log says so, and it waits on.
    fn steer(&mut self, message_id: &MessageId) {
        let (Some(message), Some(run)) = (self.queue.get(message_id), &self.run) else { return };
        let is_heard = self.worker.is_some() && !run.is_held_at_its_start();
        // Programs take a message once.
        let is_new = !is_among(&run.answer, message_id);
        if message.is_steerable() && is_heard && is_new {
            let message = json!({ "role": "user", "content": message.text });
            self.tell_agent(Input::Steer { message_id: message_id.clone(), message });
        } else {
            self.take_back(message_id);
        }
    }

    /// A run that was taken up again has forgotten what it was to be told.
    pub(super) fn steer_what_waits(&mut self) {
        for message_id in self.on_their_way() {
            self.steer(&message_id);
        }
    }

    /// A message is handed over as it stands in the queue. False if it was taken back meanwhile.
    pub(super) fn settle_steered(&self, event: &mut Event) -> bool {
        let Event::MessageSteered { message_id, text, state } = event else { return true };
        match (state, self.queue.get(message_id)) {
            (SteerState::HandedOver, Some(queued)) => {
                text.clone_from(&queued.text);
                true
            }
            (SteerState::HandedOver, None) => false,
            (SteerState::Seen | SteerState::Returned, _) => {
                self.run.as_ref().is_some_and(|run| is_among(&run.answer, message_id))
            }
        }
    }

    /// The agent could not take the message into its run, or did and gave it back.
    pub(super) fn take_back(&mut self, message_id: &MessageId) {
        let Some(run) = &self.run else { return };
        let (id, is_stopped) = (run.id.clone(), run.answer.cancel_requested.is_some());
        let handed_over = unseen(&run.answer).find(|it| it.id == *message_id).cloned();
        match (self.queue.get(message_id), handed_over) {
            (Some(queued), _) => {
                let text = queued.text.clone();
                self.push(Some(&id), returned(message_id, text));
            }
            (None, Some(steered)) => {
                // After those that came back before it.
                let is_back = |it: &&Steered| {
                    it.state == SteerState::Returned && self.queue.get(&it.id).is_some()
                };
                let position = steered_in(&run.answer).filter(is_back).count();
                let position = u32::try_from(position).unwrap_or(u32::MAX);
                self.queue_again(&id, &steered, position, is_stopped);
            }
            (None, None) => (),
        }
    }

    /// The agent is gone, and the run goes on with a new one.
    pub(super) fn take_back_all(&mut self) {
        let Some(run) = &self.run else { return };
        let handed_over: Vec<MessageId> = unseen(&run.answer).map(|it| it.id.clone()).collect();
        for message_id in handed_over.into_iter().chain(self.on_their_way()) {
            self.take_back(&message_id);
        }
    }

    /// A run ends, and with it the way into it.
    pub(super) fn return_what_waits(&mut self, run: &ResponseId) {
        for message_id in self.on_their_way() {
            let text = self.queue.get(&message_id).map(|it| it.text.clone());
            self.push(Some(run), returned(&message_id, text.unwrap_or_default()));
        }
    }

    /// The same for a run that broke off with the server: what its agent had and nobody has seen
    /// comes back, too.
    pub(super) fn return_unseen(&mut self, answer: &RunMessage) {
        self.return_what_waits(&answer.id);
        for (position, steered) in (0..).zip(unseen(answer)) {
            let is_stopped = answer.cancel_requested.is_some();
            self.queue_again(&answer.id, steered, position, is_stopped);
        }
    }

    /// Before what was said after it.
    fn queue_again(
        &mut self,
        run: &ResponseId,
        steered: &Steered,
        position: u32,
        is_stopped: bool,
    ) {
        self.push(Some(run), returned(&steered.id, steered.text.clone()));
        let queued = Event::MessageQueued {
            message_id: steered.id.clone(),
            client_id: None,
            text: steered.text.clone(),
            attachments: Vec::new(),
            position: Some(position),
            mode: SendMode::Queue,
            held: is_stopped,
            from: None,
            sent: None,
        };
        self.push(None, queued);
    }

    /// The one place where a message is given up that nobody has answered.
    fn drop_message(&mut self, message: &QueuedMessage) {
        let (message_id, reason) = (message.id.clone(), Some("user".to_owned()));
        self.push(None, Event::MessageDropped { message_id, reason });
    }

    /// Another agent's words, once changed, are the person's who changed them.
    fn replace_message(&mut self, message: &QueuedMessage, text: String) {
        let position = self.queue.messages.iter().position(|it| it.id == message.id);
        self.drop_message(message);
        let queued = Event::MessageQueued {
            message_id: clock::new_message_id(),
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

    /// Its program has been told, and has not said yet that it has it.
    fn is_leaving(&self, message: &QueuedMessage) -> bool {
        let is_program = self.worker.as_ref().is_some_and(|it| it.program.is_some());
        message.mode == SendMode::Steer && is_program && self.run.is_some()
    }

    fn on_their_way(&self) -> Vec<MessageId> {
        let on_their_way = self.queue.messages.iter().filter(|it| it.mode == SendMode::Steer);
        on_their_way.map(|it| it.id.clone()).collect()
    }

    fn state_of(&self, message_id: &MessageId) -> MessageState {
        let is_steered = |run: &super::Run| is_among(&run.answer, message_id);
        match self.queue.get(message_id).map(|it| it.mode) {
            Some(SendMode::Queue) => MessageState::Queued,
            Some(SendMode::Steer) => MessageState::Steering,
            None if self.run.as_ref().is_some_and(is_steered) => MessageState::HandedOver,
            None => MessageState::Started,
        }
    }
}

/// Messages that the agent has, and its model has not, as far as it says.
fn unseen(answer: &RunMessage) -> impl Iterator<Item = &Steered> {
    steered_in(answer).filter(|it| it.state == SteerState::HandedOver)
}

fn is_among(answer: &RunMessage, message_id: &MessageId) -> bool {
    steered_in(answer).any(|it| it.id == *message_id)
}

fn steered_in(answer: &RunMessage) -> impl Iterator<Item = &Steered> {
    answer.parts.iter().filter_map(|part| match &part.kind {
        PartKind::Steered(steered) => Some(steered),
        _ => None,
    })
}

fn returned(message_id: &MessageId, text: String) -> Event {
    Event::MessageSteered { message_id: message_id.clone(), text, state: SteerState::Returned }
}
