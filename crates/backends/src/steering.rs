//! Messages that are handed to a run while it is active.

use transcript::{Event, MessageId, SteerState};

use crate::RunEffect;
use crate::emitter::Emitter;

/// Messages that were steered into the run and that no model has seen yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    unseen: Vec<Steered>,
}

#[derive(Debug)]
pub(crate) struct Steered {
    /// Id under which the agent reports about the steered message. Empty if it does not report.
    pub(crate) key: String,
    pub(crate) message_id: MessageId,
    pub(crate) text: String,
    /// Whether the agent has confirmed that it has the steered message.
    pub(crate) is_handed_over: bool,
}

impl Steering {
    /// Adds a steered message that was sent to the agent, which has not confirmed it.
    pub(crate) fn send(&mut self, key: impl Into<String>, message_id: MessageId, text: String) {
        let key = key.into();
        self.unseen.push(Steered { key, message_id, text, is_handed_over: false });
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.unseen.iter().map(|it| it.key.as_str())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.unseen.is_empty()
    }

    pub(crate) fn has_handed_over(&self) -> bool {
        self.unseen.iter().any(|it| it.is_handed_over)
    }

    /// Marks the matching messages as handed over to the agent, and emits that.
    pub(crate) fn hand_over<E: From<RunEffect>>(
        &mut self,
        is_it: impl Fn(&Steered) -> bool,
        out: &mut Emitter<E>,
    ) {
        for steered in self.unseen.iter_mut().filter(|it| !it.is_handed_over && is_it(it)) {
            steered.is_handed_over = true;
            out.emit(steered.event(SteerState::HandedOver));
        }
    }

    /// Marks the first matching message that was handed over as seen by a model. Returns false if
    /// there is none.
    pub(crate) fn mark_seen<E: From<RunEffect>>(
        &mut self,
        is_it: impl Fn(&Steered) -> bool,
        out: &mut Emitter<E>,
    ) -> bool {
        let seen = self.unseen.iter().position(|it| it.is_handed_over && is_it(it));
        let seen = seen.map(|at| self.unseen.remove(at));
        if let Some(steered) = &seen {
            out.emit(steered.event(SteerState::Seen));
        }
        seen.is_some()
    }

    /// Returns the matching messages to the queue, because no model will see them in this run.
    pub(crate) fn give_back<E: From<RunEffect>>(
        &mut self,
        is_it: impl Fn(&Steered) -> bool,
        out: &mut Emitter<E>,
    ) {
        for it in self.unseen.extract_if(.., |it| is_it(it)) {
            out.push(RunEffect::CannotSteer(it.message_id));
        }
    }
}

impl Steered {
    fn event(&self, state: SteerState) -> Event {
        let (message_id, text) = (self.message_id.clone(), self.text.clone());
        Event::MessageSteered { message_id, text, state }
    }
}
