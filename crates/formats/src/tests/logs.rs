//! Logs that use everything there is: hand-written ones, and random ones as the server writes them.

use proptest::prelude::*;
use testkit::logs::any_log;
use transcript::{
    Call, CallId, CallState, Decision, Ending, ErrorCode, ErrorInfo, Event, Executor, Message,
    MessageId, Millis, PartId, PartKind, Record, ResponseId, RunMessage, Seq, SessionId,
    Transcript, Trigger, Validation, close, event_from_body,
};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../render/fixtures/", $name, ".jsonl")))),*]
    };
}

pub(crate) fn corpus() -> Vec<(&'static str, Vec<Record>)> {
    let of_all_kinds = ("every event", include_str!("../../../transcript/fixtures/v1.jsonl"));
    let files = files![
        "approval", "decided", "exchange", "failed", "long", "odd", "queue", "stopped", "subagent",
        "thinking", "tools", "words",
    ];
    let read = |text: &str| -> Vec<Record> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    files.into_iter().chain([of_all_kinds]).map(|(name, text)| (name, read(text))).collect()
}

/// Each line is a run, or `-`, and an event.
pub(crate) fn read(log: &str) -> Vec<Record> {
    let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    (1..)
        .zip(lines)
        .map(|(seq, line)| {
            let (run, body) = line.split_once(' ').unwrap();
            let run = (run != "-").then(|| ResponseId::new(run));
            let event = event_from_body(body);
            assert!(!matches!(event, Event::Other(_)), "{line}");
            let at = Millis(1_700_000_000_000 + 100 * i64::try_from(seq).unwrap());
            Record::new(Seq(seq), at, SessionId::new("s"), run, event)
        })
        .collect()
}

/// Random logs as a server writes them: everything has its start and its one end, in a step, and what
/// closes only adds to the text.
pub(crate) fn sound_log(len: usize) -> impl Strategy<Value = Vec<Record>> {
    any_log(len).prop_map(|records| made_sound(records, Speech::SideBySide))
}

/// The same, with parts one after the other, as models write them.
pub(crate) fn spoken_log(len: usize) -> impl Strategy<Value = Vec<Record>> {
    any_log(len).prop_map(|records| made_sound(records, Speech::InTurn))
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Speech {
    #[default]
    SideBySide,
    InTurn,
}

fn made_sound(records: Vec<Record>, speech: Speech) -> Vec<Record> {
    let mut sound = Sound { speech, ..Sound::default() };
    for record in records {
        sound.now = record.at;
        match record.response_id.filter(|_| !record.event.is_session_event()) {
            // Only imported sessions have them, and their runs are over: they are in no stream.
            Some(_) if matches!(record.event, Event::PartExtras { .. }) => (),
            None => sound.push(None, record.event),
            Some(run) => sound.take(&run, record.event),
        }
    }
    for run in ["r1", "r2"].map(ResponseId::new) {
        if sound.answer(&run).is_some() {
            let error = ErrorInfo::new(ErrorCode::UpstreamError, "gone");
            sound.close(&run, &Ending::failed(error));
        }
    }
    sound.records
}

#[derive(Default)]
struct Sound {
    transcript: Transcript,
    records: Vec<Record>,
    now: Millis,
    speech: Speech,
    open_step: std::collections::HashMap<(ResponseId, Option<CallId>), u32>,
}

impl Sound {
    fn push(&mut self, run: Option<&ResponseId>, event: Event) {
        let seq = Seq(self.records.len() as u64 + 1);
        let record = Record::new(seq, self.now, SessionId::new("s"), run.cloned(), event);
        self.transcript.apply(&record);
        self.records.push(record);
    }

    fn answer(&self, run: &ResponseId) -> Option<&RunMessage> {
        self.transcript.message(run.as_str()).and_then(Message::run)
    }

    fn call(&self, run: &ResponseId, id: &CallId) -> Option<Call> {
        self.answer(run)?.call(id).cloned()
    }

    fn close(&mut self, run: &ResponseId, ending: &Ending) {
        for event in close(self.answer(run).unwrap(), ending, self.now) {
            self.push(Some(run), event);
        }
    }

    fn take(&mut self, run: &ResponseId, event: Event) {
        if self.answer(run).is_none() {
            let start = Event::RunStart {
                agent: "demo".into(),
                model: Some("m".into()),
                trigger: Trigger::User,
                exchange_id: None,
            };
            self.push(Some(run), start);
        }
        if !self.answer(run).unwrap().is_open() {
            return;
        }
        match event {
            Event::RunFinish { .. } => self.close(run, &Ending::completed()),
            Event::OutputCancelled { .. } => self.close(run, &Ending::cancelled()),
            Event::RunStart { .. } | Event::Other(_) => (),
            Event::MessageSteered { message_id, text, state } => {
                let message_id = MessageId::new(format!("{run}.{message_id}"));
                self.push(Some(run), Event::MessageSteered { message_id, text, state });
            }
            Event::StepStart { parent_call_id, .. } => self.start_step(run, parent_call_id),
            Event::StepFinish { parent_call_id, .. } => self.finish_step(run, parent_call_id),
            Event::TextStart { part_id, parent_call_id } => {
                self.words(run, "x", &part_id, parent_call_id, "", false);
            }
            Event::TextDelta { part_id, parent_call_id, delta } => {
                self.words(run, "x", &part_id, parent_call_id, &delta, false);
            }
            Event::TextDone { part_id, parent_call_id, text, .. } => {
                self.words(run, "x", &part_id, parent_call_id, &text, true);
            }
            Event::ThinkingDelta { part_id, parent_call_id, delta } => {
                self.words(run, "y", &part_id, parent_call_id, &delta, false);
            }
            Event::ThinkingDone { part_id, parent_call_id, text, .. } => {
                self.words(run, "y", &part_id, parent_call_id, &text, true);
            }
            event => match call_of(&event) {
                Some(call) => self.of_call(run, &call.clone(), event),
                None => self.push(Some(run), event),
            },
        }
    }

    fn start_step(&mut self, run: &ResponseId, parent: Option<CallId>) {
        self.finish_step(run, parent.clone());
        let n_steps = self.answer(run).map_or(0, |it| it.steps.len() as u32);
        self.open_step.insert((run.clone(), parent.clone()), n_steps);
        self.push(Some(run), Event::StepStart { index: n_steps, parent_call_id: parent });
    }

    fn finish_step(&mut self, run: &ResponseId, parent: Option<CallId>) {
        let Some(index) = self.open_step.remove(&(run.clone(), parent.clone())) else { return };
        self.close_parts(run);
        let event = Event::StepFinish {
            index,
            finish_reason: "stop".into(),
            usage: None,
            cost: None,
            parent_call_id: parent,
        };
        self.push(Some(run), event);
    }

    fn close_parts(&mut self, run: &ResponseId) {
        let answer = self.answer(run).unwrap();
        let closing = close(answer, &Ending::cancelled(), self.now);
        let closing: Vec<Event> = closing
            .into_iter()
            .filter(|it| {
                let words = matches!(it, Event::TextDone { .. } | Event::ThinkingDone { .. });
                words || matches!(it, Event::ToolArgumentsDone { .. })
            })
            .collect();
        for event in closing {
            self.push(Some(run), event);
        }
    }

    fn in_step(&mut self, run: &ResponseId, parent: Option<&CallId>) {
        if self.speech == Speech::InTurn {
            self.close_parts(run);
        }
        if !self.open_step.contains_key(&(run.clone(), parent.cloned())) {
            self.start_step(run, parent.cloned());
        }
    }

    fn words(
        &mut self,
        run: &ResponseId,
        kind: &str,
        id: &PartId,
        parent_call_id: Option<CallId>,
        more: &str,
        done: bool,
    ) {
        let part_id = PartId::new(format!("{run}.{kind}{id}"));
        let is_text = kind == "x";
        let known = self.answer(run).unwrap().parts.iter().find_map(|part| match &part.kind {
            PartKind::Text(text) if text.id == part_id => {
                Some((text.text.clone(), text.open, part.parent.clone()))
            }
            PartKind::Thinking(it) if it.id == part_id => {
                Some((it.text.clone(), it.open, part.parent.clone()))
            }
            _ => None,
        });
        let (before, parent_call_id) = match known {
            Some((_, false, _)) => return,
            Some((before, true, parent)) => (before, parent),
            None => {
                self.in_step(run, parent_call_id.as_ref());
                let (part_id, parent) = (part_id.clone(), parent_call_id.clone());
                let start = match is_text {
                    true => Event::TextStart { part_id, parent_call_id: parent },
                    false => Event::ThinkingStart { part_id, parent_call_id: parent },
                };
                self.push(Some(run), start);
                (String::new(), parent_call_id)
            }
        };
        let (delta, text) = (more.to_owned(), before + more);
        let discarded = text.len() % 7 == 6;
        let event = match (is_text, done) {
            (true, false) => Event::TextDelta { part_id, parent_call_id, delta },
            (true, true) => {
                Event::TextDone { part_id, parent_call_id, text, phase: None, discarded }
            }
            (false, false) => Event::ThinkingDelta { part_id, parent_call_id, delta },
            (false, true) => Event::ThinkingDone { part_id, parent_call_id, text, discarded },
        };
        self.push(Some(run), event);
    }

    fn of_call(&mut self, run: &ResponseId, id: &CallId, event: Event) {
        let id = CallId::new(format!("{run}.{id}"));
        if self.call(run, &id).is_none() {
            let (name, parent, executor, arguments) = match &event {
                Event::ToolCallStart { tool_name, parent_call_id, executor, arguments, .. } => {
                    let name = tool_name.trim().to_owned();
                    (name, parent_call_id.clone(), *executor, arguments.clone())
                }
                _ => ("t".to_owned(), None, Executor::Server, None),
            };
            self.in_step(run, parent.as_ref());
            let start = Event::ToolCallStart {
                call_id: id.clone(),
                provider_call_id: None,
                tool_name: name,
                arguments,
                parent_call_id: parent,
                executor,
            };
            self.push(Some(run), start);
        }
        let call = self.call(run, &id).unwrap();
        if call.outcome.is_some() {
            return;
        }
        match event {
            Event::ToolCallStart { .. } => (),
            Event::ToolArgumentsDelta { delta, .. } => {
                if !call.arguments_done {
                    self.push(Some(run), Event::ToolArgumentsDelta { call_id: id, delta });
                }
            }
            Event::ToolArgumentsDone { arguments, .. } => self.write(run, &call, &arguments),
            Event::ToolApprovalRequested { options, .. } => {
                self.write(run, &call, "");
                if call.approval.is_none() && call.running_since.is_none() {
                    let event = Event::ToolApprovalRequested { call_id: id, options };
                    self.push(Some(run), event);
                }
            }
            Event::ToolApprovalResolved { decision, .. } => self.resolve(run, &call, decision),
            Event::ToolRunning { .. } => {
                self.write(run, &call, "");
                let may_run = call.approval.is_none() || crate::call::accepted(&call).is_some();
                if may_run && call.running_since.is_none() {
                    self.push(Some(run), Event::ToolRunning { call_id: id });
                }
            }
            Event::ToolGranted { scope, covers, .. } => {
                let event = Event::ToolGranted { call_id: id, scope, covers };
                self.push(Some(run), event);
            }
            Event::ToolOutputDelta { stream, offset, delta, .. } => {
                let event = Event::ToolOutputDelta { call_id: id, stream, offset, delta };
                self.push(Some(run), event);
            }
            Event::ToolResult { ok, error, .. } => {
                self.write(run, &call, "");
                self.resolve(run, &call, Decision::Rejected);
                self.end_call(run, &id, ok, error);
            }
            other => panic!("{other:?} is of no call"),
        }
    }

    fn write(&mut self, run: &ResponseId, call: &Call, more: &str) {
        if call.arguments_done {
            return;
        }
        let event = Event::ToolArgumentsDone {
            call_id: call.id.clone(),
            arguments: call.arguments.whole().unwrap_or_default() + more,
            summary: String::new(),
            incomplete: false,
            validation: Validation::NotRequired,
            provider_data: None,
        };
        self.push(Some(run), event);
    }

    fn resolve(&mut self, run: &ResponseId, call: &Call, decision: Decision) {
        if !call.waits_for_approval() {
            return;
        }
        let event = Event::ToolApprovalResolved {
            call_id: call.id.clone(),
            decision,
            scope: None,
            arguments: None,
            feedback: Some("no".to_owned()),
            covers: None,
            by: "me".into(),
        };
        self.push(Some(run), event);
    }

    /// Ends a call. A refused one has not run.
    fn end_call(&mut self, run: &ResponseId, id: &CallId, ok: bool, error: Option<ErrorInfo>) {
        let call = self.call(run, id).unwrap();
        let code = match call.state {
            CallState::Denied => Some(ErrorCode::ToolDenied),
            CallState::Interrupted => Some(ErrorCode::ToolInterrupted),
            _ => None,
        };
        let ok = ok && code.is_none();
        let event = Event::ToolResult {
            call_id: id.clone(),
            tool_name: call.name.clone(),
            ok,
            result: ok.then(|| serde_json::json!({ "n": 7 })),
            output: None,
            error: code.map(|code| ErrorInfo::new(code, "refused")).or(error.filter(|_| !ok)),
            summary: None,
            duration_ms: Some(3),
            truncated: None,
        };
        self.push(Some(run), event);
    }
}

fn call_of(event: &Event) -> Option<&CallId> {
    match event {
        Event::ToolCallStart { call_id, .. }
        | Event::ToolArgumentsDelta { call_id, .. }
        | Event::ToolArgumentsDone { call_id, .. }
        | Event::ToolRunning { call_id }
        | Event::ToolGranted { call_id, .. }
        | Event::ToolApprovalRequested { call_id, .. }
        | Event::ToolApprovalResolved { call_id, .. }
        | Event::ToolOutputDelta { call_id, .. }
        | Event::ToolResult { call_id, .. } => Some(call_id),
        _ => None,
    }
}
