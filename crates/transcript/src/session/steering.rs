//! Steered messages that go back to the queue, because their run ends or its agent gives them back.

use crate::{
    Event, MessageId, PartKind, Queue, ResponseId, RunMessage, SendMode, SteerState, Steered,
};

/// An event with the id of its run. The id is `None` if the event belongs to the session.
pub type RunEvent = (Option<ResponseId>, Event);

impl RunMessage {
    /// Iterates over the messages that the agent of this run has got, in that order.
    pub fn steered(&self) -> impl Iterator<Item = &Steered> {
        self.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Steered(steered) => Some(steered),
            _ => None,
        })
    }

    /// Returns the events that return one message to the queue: it waits to be steered, or the
    /// agent has it and its model has not read it. Otherwise there are none. `held` says whether
    /// a message that left the queue is held there.
    pub fn return_steered(&self, id: &MessageId, queue: &Queue, held: bool) -> Vec<RunEvent> {
        if let Some(queued) = queue.get(id) {
            return vec![self.returned(id, &queued.text)];
        }
        let unread = self.unread().find(|it| it.id == *id);
        unread.map_or(Vec::new(), |it| self.queue_again(it, self.n_returned(queue), held).into())
    }

    /// Returns the events that return the messages which wait to be steered into this run. They
    /// keep their places in the queue.
    pub fn return_waiting(&self, queue: &Queue) -> Vec<RunEvent> {
        let waiting = queue.messages.iter().filter(|it| it.mode == SendMode::Steer);
        waiting.map(|it| self.returned(&it.id, &it.text)).collect()
    }

    /// Returns the events that queue again what the agent of this run has got and its model has
    /// not read. `held` says whether the messages are held in the queue.
    pub fn return_unread(&self, queue: &Queue, held: bool) -> Vec<RunEvent> {
        let positions = self.n_returned(queue)..;
        let unread = positions.zip(self.unread());
        unread.flat_map(|(position, it)| self.queue_again(it, position, held)).collect()
    }

    /// Iterates over the messages that the agent has got and that, as far as it reports, its model
    /// has not read.
    fn unread(&self) -> impl Iterator<Item = &Steered> {
        self.steered().filter(|it| it.state == SteerState::HandedOver)
    }

    /// Returns how many messages have come back from this run and are still queued. Later ones are
    /// placed behind them.
    fn n_returned(&self, queue: &Queue) -> u32 {
        let is_back =
            |it: &&Steered| it.state == SteerState::Returned && queue.get(&it.id).is_some();
        u32::try_from(self.steered().filter(is_back).count()).unwrap_or(u32::MAX)
    }

    fn returned(&self, id: &MessageId, text: &str) -> RunEvent {
        let (message_id, text) = (id.clone(), text.to_owned());
        let event = Event::MessageSteered { message_id, text, state: SteerState::Returned };
        (Some(self.id.clone()), event)
    }

    /// Returns the events that queue a steered message at this position, before messages that were
    /// sent after it.
    fn queue_again(&self, steered: &Steered, position: u32, held: bool) -> [RunEvent; 2] {
        let Steered { id, text, .. } = steered;
        let queued = Event::MessageQueued {
            message_id: id.clone(),
            client_id: None,
            text: text.clone(),
            attachments: Vec::new(),
            position: Some(position),
            mode: SendMode::Queue,
            held,
            from: None,
            sent: None,
        };
        [self.returned(id, text), (None, queued)]
    }
}
