//! Quiescing an imported session: the records that end its open runs and exchanges and hold its queue,
//! so that nothing in it starts or continues by itself.

use crate::{
    Ending, Event, Message, Millis, Record, ResponseId, RunMessage, RunStatus, SessionId,
    Transcript, close,
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
            let queue = &self.transcript.queue;
            let returned = [answer.return_waiting(queue), answer.return_unread(queue, false)];
            for (run, event) in returned.into_iter().flatten() {
                self.append(run.as_ref(), event);
            }
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

    /// Ends the exchanges that are still open after their runs have ended.
    fn end_exchanges(&mut self) {
        for (id, open) in self.transcript.summary.open_exchanges.clone() {
            let error = Ending::Imported.error_of_open_exchange();
            let (run, end) = open.end(id, None, Err(error));
            self.append(run.as_ref(), end);
        }
    }

    fn hold_queue(&mut self) {
        let Transcript { summary, queue, .. } = &self.transcript;
        if summary.unanswered || queue.next().is_some() {
            self.append(None, Event::QueueHeld { reason: Some(IMPORTED.to_owned()) });
        }
    }
}
