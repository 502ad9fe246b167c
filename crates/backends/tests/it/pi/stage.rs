//! A driver without a process: gives a recording's inputs to the backend, carries out its effects,
//! and checks each against the state of the run.

use std::collections::HashMap;
use std::sync::Arc;

use backends::pi::Settings;
use backends::{
    Exit, Launch, Pi, ProgramBackend, ProgramEffect, ProgramInput, RunEffect, RunInput, Verdict,
};
use serde_json::{Value, json};
use transcript::{
    CallId, Event, MessageId, Millis, PartKind, Record, ResponseId, RunMessage, RunStatus, Scope,
    Seq, SessionId, Trigger, close,
};

use super::recording::{Recorded, Recording};
use crate::log::Log;

/// Pause after which requests for the state are answered: longer than the gaps within a burst of
/// lines, shorter than the gaps between bursts.
const PAUSE_MS: u64 = 15;

/// The line that our extension sends when Pi has loaded it.
pub(crate) const ANNOUNCEMENT: &str = r#"{"type":"extension_ui_request","id":"s","method":"setStatus","statusKey":"callboard","statusText":"asks"}"#;

pub(super) struct Stage {
    pi: Pi,
    now: Millis,
    runs: u32,
    steers: u32,
    open: Option<OpenRun>,
    pub(super) wake_at: Option<Millis>,
    /// Calls that wait for an approval.
    pub(super) asked: Vec<CallId>,
    /// Ids of unanswered requests for the state.
    unanswered: Vec<String>,
    /// The backend's ids of commands by the recorded ids.
    renamed: HashMap<String, String>,
    pub(super) has_quit: bool,
    pub(super) is_gone: bool,
    /// Inputs and effects in order.
    pub(super) played: Vec<Played>,
    pub(super) finished: Vec<Finished>,
    /// The log as the server would have written it.
    pub(super) session: Log,
}

pub(super) enum Played {
    Given(String),
    Wanted(Box<ProgramEffect>),
}

/// An ended run: the events of the backend and those that the driver added.
pub(super) struct Finished {
    pub(super) answer: RunMessage,
    pub(super) status: RunStatus,
    pub(super) events: Vec<Event>,
}

struct OpenRun {
    answer: RunMessage,
    events: Vec<Event>,
    records: u64,
}

impl Stage {
    pub(super) fn new(asks: bool) -> Self {
        let mut stage = Self::without_extension(asks);
        stage.give(ProgramInput::Spare(ResponseId::new("self0")));
        if asks {
            stage.line(ANNOUNCEMENT);
        }
        stage
    }

    pub(super) fn without_extension(asks: bool) -> Self {
        let permission_mode = Some(if asks { "ask" } else { "auto" }.to_owned());
        let settings = Settings { permission_mode, ..Settings::default() };
        let launch = Launch { workspace: "/workspace".to_owned(), ..Launch::default() };
        Self {
            pi: Pi::new(Arc::new(settings), &launch),
            now: Millis::default(),
            runs: 0,
            steers: 0,
            open: None,
            wake_at: None,
            asked: Vec::new(),
            unanswered: Vec::new(),
            renamed: HashMap::new(),
            has_quit: false,
            is_gone: false,
            played: Vec::new(),
            finished: Vec::new(),
            session: Log::new("pi"),
        }
    }

    /// Plays the whole recording. Responses about the state are made up if the recorder did not ask
    /// for it.
    pub(super) fn play(recording: &Recording) -> Self {
        let mut stage = Self::new(!recording.is_without_questions());
        for (at, recorded) in &recording.lines {
            stage.play_line(*at, recorded);
        }
        stage.answer_states();
        stage
    }

    pub(super) fn play_line(&mut self, at: Millis, recorded: &Recorded) {
        let is_pause = at.since(self.now) >= PAUSE_MS;
        if is_pause || !matches!(recorded, Recorded::Output(_)) {
            self.answer_states();
        }
        if self.wake_at.is_some_and(|it| it <= at) {
            self.wake();
        }
        self.now = self.now.max(at);
        match recorded {
            Recorded::Written(line) => self.written(line),
            Recorded::Output(line) => self.line(line),
            Recorded::Exited(exit) => self.exit(exit.clone()),
        }
    }

    pub(super) fn wake(&mut self) {
        if let Some(at) = self.wake_at.take() {
            self.now = self.now.max(at);
            self.give(RunInput::Wake);
        }
    }

    pub(super) fn exit(&mut self, exit: Exit) {
        if !self.is_gone {
            self.give(ProgramInput::Exited(exit));
            self.is_gone = true;
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.open.is_none()
    }

    pub(super) fn start(&mut self, text: &str) {
        if self.open.is_some() || self.is_gone {
            return;
        }
        self.runs += 1;
        let response_id = ResponseId::new(format!("r{}", self.runs));
        self.open = Some(OpenRun::new(&response_id, Trigger::User, self.now));
        self.log().start(&response_id, &json!(text));
        let history = vec![json!({ "role": "user", "content": text })];
        self.give(RunInput::Start { response_id, history });
    }

    pub(super) fn steer(&mut self, text: &str) {
        self.steers += 1;
        let message_id = MessageId::new(format!("m{}", self.steers));
        self.log().steer(&message_id, &json!(text));
        self.give(RunInput::Steer {
            message_id,
            message: json!({ "role": "user", "content": text }),
        });
    }

    pub(super) fn decide(&mut self, verdict: Verdict) {
        if !self.asked.is_empty() {
            let call_id = self.asked.remove(0);
            self.log().decide(&call_id, &verdict);
            self.give(ProgramInput::Decided { call_id, verdict });
        }
    }

    pub(super) fn answer_states(&mut self) {
        for id in std::mem::take(&mut self.unanswered) {
            let data = json!({ "sessionId": "s", "isStreaming": false, "isCompacting": false });
            let response = json!({ "id": id, "type": "response", "command": "get_state",
                "success": true, "data": data });
            self.give(ProgramInput::Line(response.to_string()));
        }
    }

    /// Gives the backend the input that corresponds to a line of the recorder.
    fn written(&mut self, line: &str) {
        let command: Value = serde_json::from_str(line).unwrap_or_default();
        let commands = self.commands().count();
        let text = command["message"].as_str().unwrap_or_default();
        match command["type"].as_str().unwrap_or_default() {
            "prompt" => self.start(text),
            "steer" => self.steer(text),
            "abort" => self.give(RunInput::Interrupt),
            "extension_ui_response" => self.answered(&command),
            _ => (),
        }
        let ours = self.commands().nth(commands).and_then(id_of);
        if let (Some(theirs), Some(ours)) = (id_of(line), ours) {
            self.renamed.insert(theirs, ours);
        }
    }

    fn answered(&mut self, response: &Value) {
        let decision = response["value"].as_str().unwrap_or("{}");
        let decision: Value = serde_json::from_str(decision).unwrap();
        let arguments = decision.get("input").map(Value::to_string);
        let feedback = decision["reason"].as_str().map(|it| it.rsplit(": ").next().unwrap());
        match (&response["confirmed"], &decision["allow"]) {
            (Value::Bool(true), _) | (_, Value::Bool(true)) => {
                self.decide(Verdict::Allowed { arguments, scope: Scope::Once });
            }
            (Value::Bool(false), _) | (_, Value::Bool(false)) => {
                self.decide(Verdict::Denied { feedback: feedback.map(str::to_owned) });
            }
            _ => (),
        }
    }

    pub(super) fn line(&mut self, line: &str) {
        let id = if line.contains(r#""response""#) { id_of(line) } else { None };
        let line = match id.and_then(|it| Some((self.renamed.get(&it)?, it))) {
            Some((ours, theirs)) => {
                line.replacen(&format!("\"{theirs}\""), &format!("\"{ours}\""), 1)
            }
            None => line.to_owned(),
        };
        self.give(ProgramInput::Line(line));
    }

    pub(super) fn give(&mut self, input: impl Into<ProgramInput>) {
        if self.is_gone {
            return;
        }
        let input = input.into();
        let room = match &input {
            ProgramInput::Line(line) => line.len(),
            _ => 0,
        };
        self.played.push(Played::Given(shown(&input)));
        let log = self.log();
        if input == RunInput::Interrupt.into() {
            log.interrupt();
        }
        let effects = self.pi.on(self.now, input);
        assert!(effects.len() <= 64 + room, "{} effects at once", effects.len());
        let n = effects.len();
        for (idx, effect) in effects.into_iter().enumerate() {
            self.played.push(Played::Wanted(Box::new(effect.clone())));
            self.carry_out(effect, idx + 1 == n);
        }
    }

    fn carry_out(&mut self, effect: ProgramEffect, is_last: bool) {
        self.session.carry_out(&effect);
        match effect {
            ProgramEffect::Run(RunEffect::Emit(event)) if event.is_session_event() => (),
            ProgramEffect::Run(RunEffect::Emit(event)) => self.run("an event").take(event),
            ProgramEffect::Write(line) => {
                if line.contains(r#""get_state""#) {
                    self.unanswered.extend(id_of(&line));
                }
            }
            ProgramEffect::Begin => {
                assert!(self.open.is_none(), "begins within a run");
                let id = ResponseId::new(format!("self{}", self.runs));
                self.open = Some(OpenRun::new(&id, Trigger::SelfStarted, self.now));
                self.session.begin(&id, Trigger::SelfStarted);
                self.runs += 1;
                // The driver gives the next spare id after it has carried out all effects.
                let spare = ProgramInput::Spare(ResponseId::new(format!("self{}", self.runs)));
                assert!(self.pi.on(self.now, spare).is_empty());
            }
            ProgramEffect::Ask { call_id, .. } => {
                let call = self.run("a question").answer.call(&call_id).expect("asks about a call");
                assert!(call.is_open() && call.arguments_done, "asks about {call_id} too early");
                assert!(call.running_since.is_none(), "asks about {call_id}, which runs");
                assert!(!self.asked.contains(&call_id), "asks twice about {call_id}");
                self.asked.push(call_id);
            }
            ProgramEffect::Withdraw(call_id) => {
                let idx = self.asked.iter().position(|it| *it == call_id);
                self.asked.remove(idx.expect("withdraws what it has asked"));
            }
            ProgramEffect::Run(RunEffect::WakeAt(at)) => self.wake_at = Some(at),
            ProgramEffect::Run(RunEffect::CannotSteer(_)) => (),
            ProgramEffect::Quit => self.has_quit = true,
            ProgramEffect::Run(RunEffect::End(ending)) => {
                assert!(is_last, "something comes after the end");
                self.run("an end");
                let run = self.open.take().expect("a run");
                self.asked.clear();
                self.finished.push(run.finish(ending, self.now));
            }
            ProgramEffect::Outdated | ProgramEffect::CloseInput => {
                panic!("Pi needs nothing of this: {effect:?}")
            }
        }
    }

    /// Returns the log of the session, with its clock set.
    fn log(&mut self) -> &mut Log {
        self.session.set_now(self.now);
        &mut self.session
    }

    fn run(&mut self, what: &str) -> &mut OpenRun {
        self.open.as_mut().unwrap_or_else(|| panic!("{what} outside of a run"))
    }

    pub(super) fn writes(&self) -> impl Iterator<Item = &str> {
        self.played.iter().filter_map(|it| match it {
            Played::Wanted(effect) => match effect.as_ref() {
                ProgramEffect::Write(line) => Some(line.as_str()),
                _ => None,
            },
            Played::Given(_) => None,
        })
    }

    fn commands(&self) -> impl Iterator<Item = &str> {
        self.writes().filter(|it| !it.contains(r#""extension_ui_response""#))
    }
}

impl OpenRun {
    fn new(id: &ResponseId, trigger: Trigger, now: Millis) -> Self {
        let answer = RunMessage::replay(id, []);
        let mut run = Self { answer, events: Vec::new(), records: 0 };
        let (agent, model, exchange_id) = ("pi".to_owned(), None, None);
        run.apply(Event::RunStart { agent, model, trigger, exchange_id }, now);
        run
    }

    /// Checks an event of the backend, and applies it.
    fn take(&mut self, event: Event) {
        self.check(&event);
        self.apply(event, Millis::default());
    }

    fn apply(&mut self, event: Event, at: Millis) {
        self.records += 1;
        let (seq, id) = (Seq(self.records), Some(self.answer.id.clone()));
        let record = Record::new(seq, at, SessionId::new("s"), id, event);
        self.answer.apply(&record);
        self.events.push(record.event);
    }

    fn check(&self, event: &Event) {
        let is_open_text = |id: &str| {
            self.answer.parts.iter().any(|part| match &part.kind {
                PartKind::Text(it) => it.id.as_str() == id && it.open,
                PartKind::Thinking(it) => it.id.as_str() == id && it.open,
                _ => false,
            })
        };
        let call = |id: &CallId| {
            let call = self.answer.call(id).unwrap_or_else(|| panic!("no call {id}: {event:?}"));
            assert!(call.is_open(), "{id} has ended: {event:?}");
            call
        };
        let open_steps = self.answer.steps.iter().filter(|it| it.finished.is_none()).count();
        match event {
            Event::StepStart { index, .. } => {
                assert_eq!((*index as usize, open_steps), (self.answer.steps.len(), 0));
            }
            Event::StepFinish { index, .. } => {
                assert_eq!((*index as usize + 1, open_steps), (self.answer.steps.len(), 1));
            }
            Event::TextStart { part_id, .. } => assert!(!self.answer.has_text(part_id)),
            Event::ThinkingStart { part_id, .. } => assert!(!self.answer.has_thinking(part_id)),
            Event::TextDelta { part_id, .. }
            | Event::TextDone { part_id, .. }
            | Event::ThinkingDelta { part_id, .. }
            | Event::ThinkingDone { part_id, .. } => {
                assert!(is_open_text(part_id.as_str()), "{part_id} is not open: {event:?}");
            }
            Event::ToolCallStart { call_id, .. } => assert!(self.answer.call(call_id).is_none()),
            Event::ToolArgumentsDelta { call_id, .. }
            | Event::ToolArgumentsDone { call_id, .. } => {
                assert!(!call(call_id).arguments_done, "{call_id} has its arguments");
            }
            Event::ToolRunning { call_id } => {
                let call = call(call_id);
                assert!(call.arguments_done && call.running_since.is_none());
            }
            Event::ToolOutputDelta { call_id, offset, .. } => {
                assert!(*offset <= call(call_id).stdout.bytes());
            }
            Event::ToolResult { call_id, .. } => assert!(call(call_id).arguments_done),
            Event::RunStart { .. }
            | Event::RunFinish { .. }
            | Event::ToolApprovalRequested { .. }
            | Event::ToolApprovalResolved { .. } => panic!("that is the driver's: {event:?}"),
            _ => (),
        }
    }

    /// Ends the run as the driver does, and checks that nothing is open.
    fn finish(mut self, ending: backends::Ending, now: Millis) -> Finished {
        let status = ending.status;
        assert_eq!(status == RunStatus::Failed, ending.error.is_some());
        for event in close(&self.answer, &ending.of(&self.answer), now) {
            self.apply(event, now);
        }
        let Self { answer, events, .. } = self;
        assert!(answer.finish.is_some());
        assert!(answer.calls().all(|it| !it.is_open() && it.arguments_done));
        assert!(answer.steps.iter().all(|it| it.finished.is_some()));
        assert!(answer.continuation().is_some(), "nobody said why it ended");
        Finished { answer, status, events }
    }
}

fn id_of(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    Some(line.get("id")?.as_str()?.to_owned())
}

fn shown(input: &ProgramInput) -> String {
    match input {
        ProgramInput::Line(line) => line.clone(),
        ProgramInput::Run(RunInput::Start { history, .. }) => {
            format!("start {}", history[0]["content"])
        }
        ProgramInput::Run(RunInput::Steer { message, .. }) => {
            format!("steer {}", message["content"])
        }
        ProgramInput::Exited(exit) => format!("exited {:?} {:?}", exit.code, exit.stderr),
        ProgramInput::Decided { call_id, verdict } => format!("decided {call_id} {verdict:?}"),
        ProgramInput::Run(RunInput::Interrupt) => "interrupt".to_owned(),
        ProgramInput::Run(RunInput::Wake) => "wake".to_owned(),
        ProgramInput::Spare(_) => format!("{input:?}"),
    }
}
