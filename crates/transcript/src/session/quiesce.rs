//! Quiescing an imported session: the records that end its open runs and exchanges and hold its queue,
//! so that nothing in it starts or continues by itself.

use crate::run::unanswered_exchange;
use crate::{
    Ending, Event, Message, Millis, PartKind, Record, ResponseId, RunMessage, RunStatus, SendMode,
    SessionId, SteerState, Steered, Transcript, close,
};

/// Reason that a `queue_held` record gives for holding the queue of an imported session.
pub const IMPORTED: &str = "imported";

/// Returns the records to append to an imported session so that nothing in it is active, with the
/// time of its last record. Empty if no run or exchange is open and no message waits.
pub fn quiesce(records: &[Record]) -> Vec<Record> {
    let Some(Record { session_id, at, .. }) = records.last() else { return Vec::new() };
    let mut transcript = Transcript::whole();
    transcript.extend(records);
    let mut quiescer = Quiescer { session: session_id, transcript, now: *at, added: Vec::new() };
    quiescer.end_runs();
    quiescer.end_exchanges();
    quiescer.hold_queue();
    quiescer.added
}

/// Collects the records that quiesce an imported session.
struct Quiescer<'a> {
    session: &'a SessionId,
    /// Transcript of the session's records and of the records added so far.
    transcript: Transcript,
    now: Millis,
    added: Vec<Record>,
}

impl Quiescer<'_> {
    fn append(&mut self, run: Option<&ResponseId>, event: Event) {
        let (seq, session) = (self.transcript.head.next(), self.session.clone());
        let record = Record::new(seq, self.now, session, run.cloned(), event);
        self.transcript.apply(&record);
        self.added.push(record);
    }

    fn end_runs(&mut self) {
        let answers = self.transcript.messages.iter().filter_map(Message::run);
        let open: Vec<RunMessage> = answers.filter(|it| it.is_open()).cloned().collect();
        for answer in open {
            self.return_messages(&answer);
            for event in close(&answer, &Ending::Imported, self.now) {
                self.append(Some(&answer.id), event);
            }
        }
        // In a broken log a finished run may have started again.
        if let Some(run) = self.transcript.summary.open_run.clone() {
            let status = RunStatus::Cancelled;
            let finish = Event::RunFinish {
                status,
                error: None,
                usage: None,
                cost: None,
                duration_ms: None,
            };
            self.append(Some(&run), finish);
        }
    }

    /// Requeues the steered messages that the run has not taken or the model has not read.
    fn return_messages(&mut self, answer: &RunMessage) {
        let queue = &self.transcript.queue;
        let untaken = queue.messages.iter().filter(|it| it.mode == SendMode::Steer);
        let untaken = untaken.map(|it| returned(&it.id, &it.text)).collect::<Vec<_>>();
        for event in untaken {
            self.append(Some(&answer.id), event);
        }
        for (position, steered) in (0..).zip(unseen(answer)) {
            self.append(Some(&answer.id), returned(&steered.id, &steered.text));
            let requeued = Event::MessageQueued {
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
            self.append(None, requeued);
        }
    }

    /// Ends the exchanges that are still open after their runs have ended.
    fn end_exchanges(&mut self) {
        for (id, open) in self.transcript.summary.open_exchanges.clone() {
            let run = open.response_id.clone();
            self.append(run.as_ref(), unanswered_exchange(id, open, &Ending::Imported));
        }
    }

    fn hold_queue(&mut self) {
        let Transcript { summary, queue, .. } = &self.transcript;
        if summary.unanswered || queue.next().is_some() {
            self.append(None, Event::QueueHeld { reason: Some(IMPORTED.to_owned()) });
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
