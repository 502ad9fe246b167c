//! Checks of every run: everything that starts ends once, in the right order, and closing the run
//! leaves nothing open.

use std::collections::{HashMap, HashSet};

use backends::Ending;
use transcript::{
    CallId, Event, Millis, PartId, PartKind, Record, ResponseId, RunMessage, RunStatus, Seq,
    SessionId, Trigger,
};

/// An open run with its events so far.
pub(super) struct Watch {
    pub(super) id: ResponseId,
    pub(super) events: Vec<Event>,
    last_id: u32,
    steps: HashMap<Option<CallId>, (u32, bool)>,
    open_parts: HashMap<PartId, String>,
    calls: HashMap<CallId, WatchedCall>,
    provider_ids: HashMap<Option<String>, CallId>,
    questions: HashSet<CallId>,
}

#[derive(Default)]
struct WatchedCall {
    streamed: String,
    has_arguments: bool,
    has_result: bool,
}

impl Watch {
    pub(super) fn new(id: ResponseId) -> Self {
        Self {
            id,
            events: Vec::new(),
            last_id: 0,
            steps: HashMap::new(),
            open_parts: HashMap::new(),
            calls: HashMap::new(),
            provider_ids: HashMap::new(),
            questions: HashSet::new(),
        }
    }

    pub(super) fn see(&mut self, event: &Event) {
        self.events.push(event.clone());
        match event {
            Event::StepStart { index, parent_call_id } => {
                self.check_parent(parent_call_id.as_ref());
                let (next, is_open) = self.steps.entry(parent_call_id.clone()).or_default();
                assert!(!*is_open, "a step begins within a step");
                assert_eq!(*index, *next, "steps are counted");
                (*next, *is_open) = (index + 1, true);
            }
            Event::StepFinish { index, parent_call_id, .. } => {
                let (next, is_open) = self.steps.get_mut(parent_call_id).unwrap();
                assert!(*is_open && index + 1 == *next, "no such step is open");
                *is_open = false;
            }
            Event::TextStart { part_id, parent_call_id }
            | Event::ThinkingStart { part_id, parent_call_id } => {
                self.check_parent(parent_call_id.as_ref());
                self.check_new(part_id.as_str());
                assert_eq!(self.open_parts.insert(part_id.clone(), String::new()), None);
            }
            Event::TextDelta { part_id, delta, .. }
            | Event::ThinkingDelta { part_id, delta, .. } => {
                assert!(!delta.is_empty());
                self.open_parts.get_mut(part_id).expect("the part is open").push_str(delta);
            }
            Event::TextDone { part_id, .. } | Event::ThinkingDone { part_id, .. } => {
                assert!(self.open_parts.remove(part_id).is_some(), "the part is open");
            }
            Event::MessageSteered { .. }
            | Event::Continuation { .. }
            | Event::Notice { .. }
            | Event::AgentLinked { .. }
            | Event::Unrecognized { .. } => (),
            event => self.see_call(event),
        }
    }

    fn see_call(&mut self, event: &Event) {
        match event {
            Event::ToolCallStart { call_id, parent_call_id, provider_call_id, .. } => {
                let before = self.provider_ids.insert(provider_call_id.clone(), call_id.clone());
                let has_ended = |it: &CallId| self.calls[it].has_result;
                assert!(before.as_ref().is_none_or(has_ended), "told twice");
                self.check_parent(parent_call_id.as_ref());
                self.check_new(call_id.as_str());
                assert!(self.calls.insert(call_id.clone(), WatchedCall::default()).is_none());
            }
            Event::ToolArgumentsDelta { call_id, delta } => {
                let call = self.call(call_id);
                assert!(!call.has_arguments && !delta.is_empty());
                call.streamed.push_str(delta);
            }
            Event::ToolArgumentsDone { call_id, arguments, .. } => {
                let call = self.call(call_id);
                assert!(!std::mem::replace(&mut call.has_arguments, true));
                check_streamed(&call.streamed, arguments);
            }
            Event::ToolRunning { call_id } | Event::ToolOutputDelta { call_id, .. } => {
                assert!(self.call(call_id).has_arguments, "arguments come first");
            }
            Event::ToolResult { call_id, ok, error, .. } => {
                assert!(!self.questions.contains(call_id), "nobody is asked about what is over");
                assert_eq!(*ok, error.is_none());
                let call = self.call(call_id);
                assert!(call.has_arguments);
                call.has_result = true;
            }
            other => panic!("not for a backend to say: {other:?}"),
        }
    }

    pub(super) fn ask(&mut self, call_id: &CallId) {
        assert!(self.call(call_id).has_arguments, "the arguments are in the log");
        assert!(self.questions.insert(call_id.clone()), "asked once");
    }

    pub(super) fn unask(&mut self, call_id: &CallId) -> bool {
        self.questions.remove(call_id)
    }

    /// Returns the calls that wait for a decision, in no particular order.
    pub(super) fn questions(&self) -> impl Iterator<Item = &CallId> {
        self.questions.iter()
    }

    fn call(&mut self, call_id: &CallId) -> &mut WatchedCall {
        let call = self.calls.get_mut(call_id).expect("the call has begun");
        assert!(!call.has_result, "the call has ended");
        call
    }

    fn check_parent(&self, parent: Option<&CallId>) {
        assert!(parent.is_none_or(|it| self.calls.contains_key(it)), "the outer call is known");
    }

    /// Checks that the new id has the next number.
    fn check_new(&mut self, id: &str) {
        self.last_id += 1;
        assert_eq!(id, format!("{}.{}", self.id, self.last_id));
    }

    /// Ends the run as the driver does, and checks that everything is closed once.
    pub(super) fn close(mut self, ending: &Ending, now: Millis) -> Closed {
        let started = Event::RunStart {
            agent: "claude".to_owned(),
            model: None,
            trigger: Trigger::User,
            exchange_id: None,
        };
        let record = |(seq, event): (u64, &Event)| {
            let (seq, session) = (Seq(seq), SessionId::new("s"));
            Record::new(seq, now, session, Some(self.id.clone()), event.clone())
        };
        let records: Vec<Record> =
            (1..).zip(std::iter::once(&started).chain(&self.events)).map(record).collect();
        let mut answer = RunMessage::replay(&self.id, &records);
        assert_eq!(
            ending.status == RunStatus::Failed,
            ending.error.is_some(),
            "fails with an error"
        );
        let closing = transcript::close(&answer, &ending.clone().of(&answer), now);
        for (seq, event) in (records.len() as u64 + 1..).zip(&closing) {
            answer.apply(&record((seq, event)));
        }
        let results = |it: &&Event| matches!(it, Event::ToolResult { .. });
        let all = self.events.iter().chain(&closing);
        assert_eq!(all.filter(results).count(), self.calls.len(), "one result for each call");
        assert!(!answer.is_open() && answer.calls().all(|it| !it.is_open()));
        for part in &answer.parts {
            let is_open = match &part.kind {
                PartKind::Text(text) => text.open,
                PartKind::Thinking(thinking) => thinking.open,
                _ => false,
            };
            assert!(!is_open, "a part stays open");
        }
        let events = std::mem::take(&mut self.events);
        Closed { events, answer, status: ending.status }
    }
}

/// An ended run.
pub(super) struct Closed {
    pub(super) events: Vec<Event>,
    pub(super) answer: RunMessage,
    pub(super) status: RunStatus,
}

/// Checks that the final arguments keep the streamed text if both are the same JSON value.
fn check_streamed(streamed: &str, arguments: &str) {
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    if parsed(streamed).is_some() && parsed(streamed) == parsed(arguments) {
        assert_eq!(streamed, arguments);
    }
}
