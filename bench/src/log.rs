//! Records to fill a log with: one answer that grows by deltas, as a model's does.

use std::sync::Arc;

use transcript::{Event, Millis, PartId, Record, ResponseId, RunStatus, Seq, SessionId, Trigger};

/// Writes the records of one session, in order.
pub struct Writer {
    session: SessionId,
    run: ResponseId,
    part: PartId,
    head: u64,
}

impl Writer {
    pub fn new(session: &str) -> Self {
        let run = ResponseId::new(format!("01a1e10e-9c69-7013-a16d-{session:0>12}"));
        let part = PartId::numbered(&run, 1);
        Self { session: SessionId::new(session), run, part, head: 0 }
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The head before the next record.
    pub fn head(&self) -> Seq {
        Seq(self.head)
    }

    /// What comes before the first delta.
    pub fn opening(&mut self) -> Arc<[Record]> {
        let created = Event::SessionCreated { agent: "demo".into(), workspace: None, title: None };
        let start = Event::RunStart {
            agent: "demo".into(),
            model: None,
            trigger: Trigger::User,
            exchange_id: None,
        };
        let text = Event::TextStart { part_id: self.part.clone(), parent_call_id: None };
        self.records([(false, created), (true, start), (true, text)])
    }

    pub fn delta(&mut self) -> Arc<[Record]> {
        self.deltas(1)
    }

    pub fn deltas(&mut self, n: usize) -> Arc<[Record]> {
        let delta = || Event::TextDelta {
            part_id: self.part.clone(),
            parent_call_id: None,
            delta: "a word ".into(),
        };
        let events: Vec<_> = (0..n).map(|_| (true, delta())).collect();
        self.records(events)
    }

    /// What comes after `n` deltas.
    pub fn closing(&mut self, n: usize) -> Arc<[Record]> {
        let done = Event::TextDone {
            part_id: self.part.clone(),
            parent_call_id: None,
            text: "a word ".repeat(n),
            phase: None,
            discarded: false,
        };
        let finish = Event::RunFinish {
            status: RunStatus::Completed,
            error: None,
            usage: None,
            cost: None,
            duration_ms: 1,
        };
        self.records([(true, done), (true, finish)])
    }

    fn records(&mut self, events: impl IntoIterator<Item = (bool, Event)>) -> Arc<[Record]> {
        events
            .into_iter()
            .map(|(in_run, event)| {
                self.head += 1;
                let run = in_run.then(|| self.run.clone());
                let at = Millis(1_763_232_268_000 + self.head as i64);
                Record::new(Seq(self.head), at, self.session.clone(), run, event)
            })
            .collect()
    }
}
