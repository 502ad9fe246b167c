//! Records to fill a log with: one answer that grows by deltas, as a model's does.

use std::sync::Arc;

use serde_json::json;
use transcript::{
    CallId, Event, Executor, Millis, PartId, Record, ResponseId, RunStatus, Seq, SessionId,
    Trigger, Validation,
};

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

    /// The sequence number of the last record.
    pub fn head(&self) -> Seq {
        Seq(self.head)
    }

    /// The records before the first delta.
    pub fn opening(&mut self) -> Arc<[Record]> {
        let created = Event::SessionCreated {
            agent: "demo".into(),
            workspace: None,
            workspace_confirmed: false,
            title: None,
        };
        let start = Event::RunStart {
            agent: "demo".into(),
            model: None,
            trigger: Trigger::User,
            exchange_id: None,
        };
        let text = Event::TextStart { part_id: self.part.clone(), parent_call_id: None };
        self.records([(false, created), (true, start), (true, text)])
    }

    /// Adds a whole call, whose arguments are in these pieces.
    pub fn call(&mut self, n: u32, pieces: &[&str]) -> Arc<[Record]> {
        let call_id = CallId::numbered(&self.run, n);
        let tool_name = "write".to_owned();
        let start = Event::ToolCallStart {
            call_id: call_id.clone(),
            provider_call_id: None,
            tool_name: tool_name.clone(),
            arguments: None,
            parent_call_id: None,
            executor: Executor::Server,
        };
        let done = Event::ToolArgumentsDone {
            call_id: call_id.clone(),
            arguments: pieces.concat(),
            summary: String::new(),
            incomplete: false,
            validation: Validation::NotRequired,
            provider_data: None,
        };
        let result = Event::ToolResult {
            call_id: call_id.clone(),
            tool_name,
            ok: true,
            result: Some(json!({ "ok": true })),
            output: None,
            error: None,
            summary: None,
            duration_ms: Some(1),
            truncated: None,
        };
        let deltas = pieces.iter().map(|piece| {
            let (call_id, delta) = (call_id.clone(), (*piece).to_owned());
            Event::ToolArgumentsDelta { call_id, delta }
        });
        let events: Vec<_> = [start].into_iter().chain(deltas).chain([done, result]).collect();
        self.records(events.into_iter().map(|event| (true, event)))
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

    /// The records after `n` deltas.
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
            duration_ms: Some(1),
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
