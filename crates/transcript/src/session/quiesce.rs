//! What is left to say of a session that comes from elsewhere, so that nothing in it starts, goes on or
//! is waited for by itself: what it was doing, it was doing there.

use crate::run::unanswered_exchange;
use crate::{
    Ending, Event, Message, Millis, PartKind, Record, ResponseId, RunMessage, RunStatus, SendMode,
    SessionId, SteerState, Steered, Transcript, close,
};

/// Why the queue of an imported session is held.
pub const IMPORTED: &str = "imported";

/// The records that follow on those of a session, of the time of its last one. None, if nothing is open
/// and nothing waits.
pub fn quiesce(records: &[Record]) -> Vec<Record> {
    let Some(Record { session_id, at, .. }) = records.last() else { return Vec::new() };
    let mut transcript = Transcript::whole();
    transcript.extend(records);
    let mut rest = Rest { session: session_id, transcript, now: *at, said: Vec::new() };
    rest.end_runs();
    rest.end_exchanges();
    rest.hold_what_waits();
    rest.said
}

struct Rest<'a> {
    session: &'a SessionId,
    /// Of all that was said, here too.
    transcript: Transcript,
    now: Millis,
    said: Vec<Record>,
}

impl Rest<'_> {
    fn say(&mut self, run: Option<&ResponseId>, event: Event) {
        let (seq, session) = (self.transcript.head.next(), self.session.clone());
        let record = Record::new(seq, self.now, session, run.cloned(), event);
        self.transcript.apply(&record);
        self.said.push(record);
    }

    fn end_runs(&mut self) {
        let answers = self.transcript.messages.iter().filter_map(Message::run);
        let open: Vec<RunMessage> = answers.filter(|it| it.is_open()).cloned().collect();
        for answer in open {
            self.return_messages(&answer);
            for event in close(&answer, &Ending::Imported, self.now) {
                self.say(Some(&answer.id), event);
            }
        }
        // In a broken log a run may begin again.
        if let Some(run) = self.transcript.summary.open_run.clone() {
            let status = RunStatus::Cancelled;
            let finish = Event::RunFinish {
                status,
                error: None,
                usage: None,
                cost: None,
                duration_ms: None,
            };
            self.say(Some(&run), finish);
        }
    }

    /// What was on its way into the run, or had arrived and was not seen, waits again.
    fn return_messages(&mut self, answer: &RunMessage) {
        let queue = &self.transcript.queue;
        let on_their_way = queue.messages.iter().filter(|it| it.mode == SendMode::Steer);
        let on_their_way = on_their_way.map(|it| returned(&it.id, &it.text)).collect::<Vec<_>>();
        for event in on_their_way {
            self.say(Some(&answer.id), event);
        }
        for (position, steered) in (0..).zip(unseen(answer)) {
            self.say(Some(&answer.id), returned(&steered.id, &steered.text));
            let again = Event::MessageQueued {
                message_id: steered.id.clone(),
                client_id: None,
                text: steered.text.clone(),
                attachments: Vec::new(),
                position: Some(position),
                mode: SendMode::Queue,
                held: false,
                from: None,
                sent: None,
            };
            self.say(None, again);
        }
    }

    /// Those that no open run waits for.
    fn end_exchanges(&mut self) {
        for (id, open) in self.transcript.summary.open_exchanges.clone() {
            let run = open.response_id.clone();
            self.say(run.as_ref(), unanswered_exchange(id, open, &Ending::Imported));
        }
    }

    fn hold_what_waits(&mut self) {
        let Transcript { summary, queue, .. } = &self.transcript;
        if summary.unanswered || queue.next().is_some() {
            self.say(None, Event::QueueHeld { reason: Some(IMPORTED.to_owned()) });
        }
    }
}

fn unseen(answer: &RunMessage) -> impl Iterator<Item = &Steered> {
    let steered = answer.parts.iter().filter_map(|part| match &part.kind {
        PartKind::Steered(steered) => Some(steered),
        _ => None,
    });
    steered.filter(|it| it.state == SteerState::HandedOver)
}

fn returned(id: &crate::MessageId, text: &str) -> Event {
    let (message_id, text) = (id.clone(), text.to_owned());
    Event::MessageSteered { message_id, text, state: SteerState::Returned }
}
