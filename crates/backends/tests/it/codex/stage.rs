//! A driver without a process: carries out effects, keeps the log, and checks every event.

use std::collections::{HashMap, HashSet};

use backends::{Ending, ProgramBackend, ProgramEffect, ProgramInput, RunEffect, RunInput, Verdict};
use serde_json::{Value, json};
use transcript::{
    ApprovalOptions, Call, CallId, Decision, Event, MessageId, Millis, Record, ResponseId,
    RunMessage, RunStatus, Scope, Seq, SessionId, SteerState, Trigger,
};

use crate::log::Log;

/// Maximum number of effects of one input.
const MAX_EFFECTS: usize = 60;

pub(crate) struct Stage {
    backend: Box<dyn ProgramBackend>,
    pub(crate) now: Millis,
    runs: u32,
    run: Option<OpenRun>,
    pub(crate) ended: Vec<RunMessage>,
    pub(crate) endings: Vec<Ending>,
    /// Lines to the program that were not read yet.
    pub(crate) written: Vec<String>,
    /// Calls that wait for an approval.
    pub(crate) asked: Vec<CallId>,
    /// Finished texts and thinking blocks, without discarded ones.
    pub(crate) texts: Vec<String>,
    /// Finished texts and thinking blocks that differ from their deltas.
    pub(crate) corrected: Vec<String>,
    pub(crate) wake_at: Option<Millis>,
    pub(crate) has_quit: bool,
    pub(crate) is_outdated: bool,
    /// Steering messages that the program has neither seen nor refused.
    steering: HashSet<MessageId>,
    steered: HashSet<MessageId>,
    /// Effects as text, one line each.
    pub(crate) outline: String,
    /// The log as the server would have written it.
    pub(crate) session: Log,
}

struct OpenRun {
    answer: RunMessage,
    seq: u64,
    open: Open,
}

/// Open parts of a run, derived from its events alone.
#[derive(Default)]
struct Open {
    last_id: u32,
    /// Number of steps and the open step, by the call that they belong to.
    steps: HashMap<Option<CallId>, (u32, Option<u32>)>,
    parts: HashMap<String, String>,
    /// Open calls: whether the arguments are finished, and the length of the output.
    calls: HashMap<CallId, (bool, u64)>,
}

impl Stage {
    pub(crate) fn new(backend: Box<dyn ProgramBackend>) -> Self {
        let mut stage = Self {
            backend,
            now: Millis(1_000_000),
            runs: 0,
            run: None,
            ended: Vec::new(),
            endings: Vec::new(),
            written: Vec::new(),
            asked: Vec::new(),
            texts: Vec::new(),
            corrected: Vec::new(),
            wake_at: None,
            has_quit: false,
            is_outdated: false,
            steering: HashSet::new(),
            steered: HashSet::new(),
            outline: String::new(),
            session: Log::new("codex"),
        };
        stage.give(ProgramInput::Spare(ResponseId::new("self1")));
        stage
    }

    pub(crate) fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Returns a call of the open run.
    pub(crate) fn call(&self, id: &str) -> &Call {
        self.run
            .as_ref()
            .and_then(|it| it.answer.call(&CallId::new(id)))
            .expect("the call is known")
    }

    pub(crate) fn start(&mut self, prompt: &str) {
        assert!(self.run.is_none(), "one run at a time");
        self.runs += 1;
        let response_id = ResponseId::new(format!("r{}", self.runs));
        self.open_run(response_id.clone(), Trigger::User);
        self.session.start(&response_id, &json!(prompt));
        let history = vec![json!({ "role": "user", "content": prompt })];
        self.give(RunInput::Start { response_id, history });
    }

    pub(crate) fn steer(&mut self, id: &str, text: &str) {
        let message_id = MessageId::new(id);
        // A message is steered once.
        if !self.steered.insert(message_id.clone()) {
            return;
        }
        self.steering.insert(message_id.clone());
        self.session.steer(&message_id, &json!(text));
        let message = json!({ "role": "user", "content": text });
        self.give(RunInput::Steer { message_id, message });
    }

    /// Decides the oldest open approval.
    pub(crate) fn decide(&mut self, verdict: Verdict) {
        if self.asked.is_empty() {
            return;
        }
        let call_id = self.asked.remove(0);
        let (decision, feedback) = match &verdict {
            Verdict::Allowed { .. } => (Decision::Accepted, None),
            Verdict::Denied { feedback } => (Decision::Rejected, feedback.clone()),
            Verdict::TimedOut => (Decision::TimedOut, None),
        };
        self.resolve(call_id.clone(), decision, feedback);
        self.session.decide(&call_id, &verdict);
        self.give(ProgramInput::Decided { call_id, verdict });
    }

    pub(crate) fn allow(&mut self) {
        self.decide(Verdict::Allowed { arguments: None, scope: Scope::Once });
    }

    pub(crate) fn line(&mut self, line: &str) {
        self.give(ProgramInput::Line(line.to_owned()));
    }

    /// Advances the clock to the time at which the backend wants to be woken, and wakes it.
    pub(crate) fn wake(&mut self) {
        if let Some(at) = self.wake_at.take() {
            self.now = self.now.max(at);
            self.give(RunInput::Wake);
        }
    }

    pub(crate) fn give(&mut self, input: impl Into<ProgramInput>) {
        self.now = self.now.plus(10);
        self.session.set_now(self.now);
        let input = input.into();
        if input == RunInput::Interrupt.into() {
            self.session.interrupt();
        }
        let effects = self.backend.on(self.now, input);
        assert!(effects.len() <= MAX_EFFECTS, "too much at once: {}", effects.len());
        let n_effects = effects.len();
        for (idx, effect) in effects.into_iter().enumerate() {
            let is_last = idx + 1 == n_effects;
            self.carry_out(effect, is_last);
        }
    }

    fn carry_out(&mut self, effect: ProgramEffect, is_last: bool) {
        self.record_effect(&effect);
        self.session.carry_out(&effect);
        match effect {
            ProgramEffect::Run(RunEffect::Emit(event)) => self.emit(event),
            ProgramEffect::Write(line) => self.written.push(line),
            ProgramEffect::Begin => {
                assert!(self.run.is_none(), "one run at a time");
                let id = ResponseId::new("self1");
                self.session.begin(&id, Trigger::SelfStarted);
                self.open_run(id, Trigger::SelfStarted);
            }
            ProgramEffect::Ask { call_id, can_edit, form, reason, .. } => {
                assert!(!can_edit, "Codex runs what it asked about, or nothing");
                let run = self.run.as_ref().expect("only a run asks");
                let call = run.answer.call(&call_id).expect("the call is in the log");
                assert!(call.is_open() && call.arguments_done, "it can be decided about");
                assert!(!self.asked.contains(&call_id), "it is asked about once at a time");
                self.asked.push(call_id.clone());
                let options = ApprovalOptions {
                    scopes: vec![Scope::Once],
                    can_edit,
                    form,
                    reason,
                    ..ApprovalOptions::default()
                };
                self.record(Event::ToolApprovalRequested { call_id, options });
            }
            ProgramEffect::Withdraw(call_id) => {
                assert!(self.asked.contains(&call_id), "what is withdrawn was asked");
                self.asked.retain(|it| *it != call_id);
                self.resolve(call_id, Decision::Withdrawn, None);
            }
            ProgramEffect::Run(RunEffect::CannotSteer(id)) => {
                assert!(self.steering.remove(&id), "the message was to be seen: {id}");
            }
            ProgramEffect::Run(RunEffect::WakeAt(at)) => self.wake_at = Some(at),
            ProgramEffect::Quit => self.has_quit = true,
            ProgramEffect::Outdated => {
                self.is_outdated = true;
                self.run = None;
            }
            ProgramEffect::CloseInput => (),
            ProgramEffect::Run(RunEffect::End(ending)) => {
                assert!(is_last, "the end is last");
                self.end(ending);
            }
        }
    }

    fn emit(&mut self, event: Event) {
        let run = self.run.as_mut().expect("events are a run's");
        self.corrected.extend(run.open.apply(&run.answer.id, &event));
        match &event {
            Event::TextDone { text, discarded: false, .. }
            | Event::ThinkingDone { text, discarded: false, .. } => self.texts.push(text.clone()),
            Event::MessageSteered { message_id, state: SteerState::Seen, .. } => {
                assert!(self.steering.remove(message_id), "it is seen once: {message_id}");
            }
            Event::ToolResult { call_id, .. } => {
                assert!(!self.asked.contains(call_id), "what has ended is not asked about");
            }
            _ => (),
        }
        self.record(event);
    }

    fn record(&mut self, event: Event) {
        let run = self.run.as_mut().expect("records are a run's");
        run.seq += 1;
        let session = SessionId::new("s");
        let id = Some(run.answer.id.clone());
        run.answer.apply(&Record::new(Seq(run.seq), self.now, session, id, event));
    }

    fn resolve(&mut self, call_id: CallId, decision: Decision, feedback: Option<String>) {
        self.record(Event::ToolApprovalResolved {
            call_id,
            decision,
            scope: None,
            arguments: None,
            feedback,
            covers: None,
            by: "somebody".to_owned(),
        });
    }

    fn open_run(&mut self, id: ResponseId, trigger: Trigger) {
        let answer = RunMessage::replay(&id, []);
        self.run = Some(OpenRun { answer, seq: 0, open: Open::default() });
        let agent = "codex".to_owned();
        self.record(Event::RunStart { agent, model: None, trigger, exchange_id: None });
    }

    /// Ends the run and closes its open parts, as the driver does.
    fn end(&mut self, ending: Ending) {
        assert_eq!(ending.error.is_some(), ending.status == RunStatus::Failed);
        let run = self.run.as_ref().expect("only a run ends");
        for event in transcript::close(&run.answer, &ending.clone().of(&run.answer), self.now) {
            self.record(event);
        }
        let answer = self.run.take().unwrap().answer;
        assert!(answer.finish.is_some() && answer.calls().all(|it| !it.is_open()));
        assert!(answer.texts().all(|(_, it)| !it.open));
        self.asked.clear();
        self.wake_at = None;
        self.ended.push(answer);
        self.endings.push(ending);
    }

    fn record_effect(&mut self, effect: &ProgramEffect) {
        let line = match effect {
            ProgramEffect::Run(RunEffect::Emit(event)) => {
                let mut event = serde_json::to_value(event).unwrap();
                let name = event["type"].take();
                event.as_object_mut().unwrap().shift_remove("type");
                format!("{} {}", name.as_str().unwrap(), short(event))
            }
            ProgramEffect::Write(line) => {
                let message = serde_json::from_str(line).unwrap_or_else(|_| json!(line));
                format!("  -> {}", short(message))
            }
            ProgramEffect::Run(RunEffect::End(Ending { status, error, usage, .. })) => {
                format!(
                    "END {}",
                    short(json!({ "status": status, "error": error, "usage": usage }))
                )
            }
            ProgramEffect::Ask { call_id, form, .. } => format!("ASK {call_id} {}", json!(form)),
            ProgramEffect::Run(RunEffect::WakeAt(at)) => {
                format!("WAKE in {} ms", at.since(self.now))
            }
            ProgramEffect::Withdraw(call_id) => format!("WITHDRAW {call_id}"),
            ProgramEffect::Run(RunEffect::CannotSteer(message_id)) => {
                format!("CANNOT STEER {message_id}")
            }
            other => format!("{other:?}").to_uppercase(),
        };
        self.outline.push_str(&line);
        self.outline.push('\n');
    }
}

impl Open {
    /// Checks and applies an event. Returns a finished text that differs from its deltas.
    fn apply(&mut self, run: &ResponseId, event: &Event) -> Option<String> {
        match event {
            Event::StepStart { index, parent_call_id } => {
                let (n_steps, open) = self.steps.entry(parent_call_id.clone()).or_default();
                assert_eq!((*open, *index), (None, *n_steps), "steps follow each other");
                *open = Some(*index);
                *n_steps += 1;
            }
            Event::StepFinish { index, parent_call_id, .. } => {
                let (_, open) = self.steps.get_mut(parent_call_id).expect("it was begun");
                assert_eq!(open.take(), Some(*index));
            }
            Event::TextStart { part_id, parent_call_id }
            | Event::ThinkingStart { part_id, parent_call_id } => {
                assert!(self.is_in_step(parent_call_id.as_ref()), "words belong to a step");
                self.take_id(run, part_id.as_str());
                self.parts.insert(part_id.to_string(), String::new());
            }
            Event::TextDelta { part_id, delta, .. }
            | Event::ThinkingDelta { part_id, delta, .. } => {
                self.parts.get_mut(part_id.as_str()).expect("it is open").push_str(delta);
            }
            Event::TextDone { part_id, text, discarded, .. }
            | Event::ThinkingDone { part_id, text, discarded, .. } => {
                let streamed = self.parts.remove(part_id.as_str()).expect("it is open");
                assert!(!discarded || streamed == *text, "what is dropped is what came");
                let is_corrected = !streamed.is_empty() && streamed != *text;
                return is_corrected.then(|| text.clone());
            }
            Event::ToolCallStart { call_id, parent_call_id, .. } => {
                assert!(self.is_in_step(parent_call_id.as_ref()), "calls belong to a step");
                self.take_id(run, call_id.as_str());
                self.calls.insert(call_id.clone(), (false, 0));
            }
            Event::ToolArgumentsDone { call_id, .. } => {
                let (done, _) = self.calls.get_mut(call_id).expect("it is open");
                assert!(!std::mem::replace(done, true), "arguments are done once");
            }
            Event::ToolRunning { call_id } => assert!(self.calls.contains_key(call_id)),
            Event::ToolOutputDelta { call_id, offset, delta, .. } => {
                let (_, length) = self.calls.get_mut(call_id).expect("it is open");
                assert!(*offset <= *length, "output has no holes");
                *length = offset + delta.len() as u64;
            }
            Event::ToolResult { call_id, ok, error, .. } => {
                let (done, _) = self.calls.remove(call_id).expect("it is open");
                assert!(done, "no result without arguments");
                assert_eq!(*ok, error.is_none());
            }
            Event::Continuation { .. }
            | Event::Notice { .. }
            | Event::AgentLinked { .. }
            | Event::MessageSteered { .. }
            | Event::Unrecognized { .. } => (),
            other => panic!("not a backend's: {other:?}"),
        }
        None
    }

    fn is_in_step(&self, parent: Option<&CallId>) -> bool {
        self.steps.get(&parent.cloned()).is_some_and(|(_, open)| open.is_some())
    }

    fn take_id(&mut self, run: &ResponseId, id: &str) {
        self.last_id += 1;
        assert_eq!(id, format!("{run}.{}", self.last_id), "ids are counted");
    }
}

/// Returns the value without nulls, and with long texts replaced by their beginnings and lengths.
fn short(value: Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > 70 => {
            let head: String = text.chars().take(50).collect();
            json!(format!("{head}… ({} bytes)", text.len()))
        }
        Value::Array(values) => values.into_iter().map(short).collect(),
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, it)| !it.is_null());
            Value::Object(kept.map(|(name, it)| (name, short(it))).collect())
        }
        other => other,
    }
}
