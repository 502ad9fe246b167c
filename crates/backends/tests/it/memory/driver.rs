//! A minimal driver, which allows every call and sends the responses that the program would send.

use std::collections::{HashMap, VecDeque};

use backends::{
    ModelBackend, ModelEffect, ModelInput, ProgramBackend, ProgramEffect, ProgramInput,
    ResponsePart, RunEffect, RunInput, ToolOutcome, Verdict,
};
use serde_json::{Value, json};
use transcript::{CallId, Event, Millis, ResponseId, Scope};

use super::programs::{Program, in_round};

/// An agent of either family.
#[derive(Debug)]
pub(super) enum Backend {
    Model(Box<dyn ModelBackend>),
    Program(Box<dyn ProgramBackend>),
}

#[derive(Debug)]
pub(super) enum Input {
    Run(RunInput),
    Model(ModelInput),
    Program(ProgramInput),
}

enum Effect {
    Model(ModelEffect),
    Program(ProgramEffect),
}

impl Backend {
    fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        let model = |it: ModelEffect| Effect::Model(it);
        let program = |it: ProgramEffect| Effect::Program(it);
        match (self, input) {
            (Self::Model(it), Input::Run(input)) => {
                it.on(now, input.into()).into_iter().map(model).collect()
            }
            (Self::Model(it), Input::Model(input)) => {
                it.on(now, input).into_iter().map(model).collect()
            }
            (Self::Program(it), Input::Run(input)) => {
                it.on(now, input.into()).into_iter().map(program).collect()
            }
            (Self::Program(it), Input::Program(input)) => {
                it.on(now, input).into_iter().map(program).collect()
            }
            (_, input) => panic!("an input of the other family: {input:?}"),
        }
    }
}

pub(super) struct Driver<'a> {
    program: &'a Program,
    backend: Backend,
    now: Millis,
    runs: usize,
    is_running: bool,
    is_over: bool,
    wake_at: Option<Millis>,
    /// Calls that wait for an approval.
    asked: Vec<CallId>,
    /// Lengths of open texts, arguments and outputs.
    saying: HashMap<String, usize>,
    /// Whether the rest of the response belongs to an earlier request.
    is_cut_off: bool,
    /// Number of responses that the program still sends.
    answers: usize,
    round: usize,
    /// Number of runs at the start of the round.
    run: usize,
    inputs: VecDeque<Input>,
}

impl<'a> Driver<'a> {
    pub(super) fn new(program: &'a Program, backend: Backend, answers: usize) -> Self {
        let mut driver = Self {
            program,
            backend,
            now: Millis(1_000_000),
            runs: 0,
            is_running: false,
            is_over: false,
            wake_at: None,
            asked: Vec::new(),
            saying: HashMap::new(),
            is_cut_off: false,
            answers,
            round: 0,
            run: 0,
            inputs: VecDeque::new(),
        };
        if let Backend::Program(_) = driver.backend {
            driver.give(Input::Program(ProgramInput::Spare(ResponseId::new("self"))));
        }
        driver
    }

    /// Returns the length of the state's debug output without open texts, which must be kept.
    pub(super) fn size(&self) -> usize {
        let output: usize = self.saying.values().sum();
        length(&format!("{:?}", self.backend)).saturating_sub(output)
    }

    pub(super) fn runs(&self) -> usize {
        self.runs
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Returns whether the program is to be ended, which discards its state.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Plays all lines in the open run or in a new one.
    pub(super) fn play(&mut self, output: &[String], round: usize) {
        self.round = round;
        if !self.is_running && !self.is_over {
            self.runs += 1;
            self.is_running = true;
            self.run = self.runs;
            let response_id = ResponseId::new(format!("r{}", self.runs));
            let history = vec![json!({ "role": "user", "content": "go" })];
            self.give(Input::Run(RunInput::Start { response_id, history }));
        }
        self.run = self.runs;
        let output: Vec<String> = output.iter().map(|it| in_round(it, round, self.run)).collect();
        for input in (self.program.inputs_of)(output) {
            match &input {
                Input::Model(ModelInput::Response(ResponsePart::Head { .. })) => {
                    self.wake();
                    self.is_cut_off = false;
                }
                Input::Model(ModelInput::Response(_)) if self.is_cut_off => continue,
                _ => (),
            }
            self.give(input);
        }
    }

    /// Ends the run, with an interrupt if it is open.
    pub(super) fn stop(&mut self) {
        if self.is_running {
            self.give(Input::Run(RunInput::Interrupt));
        }
        for _ in 0..8 {
            self.wake();
        }
        assert!(!self.is_running || self.is_over, "a run that is stopped ends");
    }

    fn wake(&mut self) {
        if let Some(at) = self.wake_at.take() {
            self.now = self.now.max(at);
            self.give(Input::Run(RunInput::Wake));
        }
    }

    fn give(&mut self, input: Input) {
        self.inputs.push_back(input);
        while let Some(input) = self.inputs.pop_front() {
            let is_decided = match &input {
                Input::Program(ProgramInput::Decided { call_id, .. }) => self.unask(call_id),
                _ => true,
            };
            if self.is_over || !is_decided {
                continue;
            }
            self.now = self.now.plus(10);
            for effect in self.backend.on(self.now, input) {
                self.carry_out(effect);
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Model(effect) => self.carry_out_of_model(effect),
            Effect::Program(effect) => self.carry_out_of_program(effect),
        }
    }

    fn carry_out_on_run(&mut self, effect: RunEffect) {
        match effect {
            RunEffect::Emit(event) => self.track(&event),
            RunEffect::WakeAt(at) => self.wake_at = Some(at),
            RunEffect::End(_) => {
                (self.is_running, self.wake_at) = (false, None);
                self.asked.clear();
                self.saying.clear();
            }
            RunEffect::CannotSteer(_) => (),
        }
    }

    fn carry_out_of_model(&mut self, effect: ModelEffect) {
        match effect {
            ModelEffect::Run(effect) => self.carry_out_on_run(effect),
            ModelEffect::RunTool(call) => {
                let outcome = ToolOutcome { ok: true, result: json!("a result"), error: None };
                let result = ModelInput::ToolResult { call_id: call.call_id, outcome };
                self.inputs.push_back(Input::Model(result));
            }
            ModelEffect::ReadHistory => {
                let history = vec![json!({ "role": "user", "content": "go" })];
                self.inputs.push_back(Input::Model(ModelInput::History(history)));
            }
            // A request cuts the response to the previous one off.
            ModelEffect::Request(_) => self.is_cut_off = true,
        }
    }

    fn carry_out_of_program(&mut self, effect: ProgramEffect) {
        match effect {
            ProgramEffect::Run(effect) => self.carry_out_on_run(effect),
            ProgramEffect::Write(line) => self.answer(&line),
            ProgramEffect::Begin => {
                self.is_running = true;
                self.runs += 1;
                let spare = ResponseId::new(format!("self{}", self.runs));
                self.inputs.push_back(Input::Program(ProgramInput::Spare(spare)));
            }
            ProgramEffect::Ask { call_id, .. } => {
                self.asked.push(call_id.clone());
                let verdict = Verdict::Allowed { arguments: None, scope: Scope::Once };
                let decided = ProgramInput::Decided { call_id, verdict };
                self.inputs.push_back(Input::Program(decided));
            }
            ProgramEffect::Withdraw(call_id) => {
                self.unask(&call_id);
            }
            ProgramEffect::Quit | ProgramEffect::Outdated => self.is_over = true,
            ProgramEffect::CloseInput => (),
        }
    }

    fn track(&mut self, event: &Event) {
        let (id, delta) = match event {
            Event::TextDelta { part_id, delta, .. }
            | Event::ThinkingDelta { part_id, delta, .. } => (part_id.as_str(), delta),
            Event::ToolArgumentsDelta { call_id, delta }
            | Event::ToolOutputDelta { call_id, delta, .. } => (call_id.as_str(), delta),
            Event::TextDone { part_id, .. } | Event::ThinkingDone { part_id, .. } => {
                self.saying.remove(part_id.as_str());
                return;
            }
            Event::ToolArgumentsDone { call_id, .. } | Event::ToolResult { call_id, .. } => {
                self.saying.remove(call_id.as_str());
                return;
            }
            _ => return,
        };
        *self.saying.entry(id.to_owned()).or_default() += length(&format!("{delta:?}")) - 2;
    }

    fn unask(&mut self, call_id: &CallId) -> bool {
        let asked = self.asked.iter().position(|it| it == call_id);
        asked.map(|it| self.asked.remove(it)).is_some()
    }

    fn answer(&mut self, written: &str) {
        let written: Value = serde_json::from_str(written).unwrap_or_default();
        let answers = (self.program.answer)(&written);
        if answers.is_empty() || self.answers == 0 {
            return;
        }
        self.answers -= 1;
        let line = |it: &String| ProgramInput::Line(in_round(it, self.round, self.run));
        self.inputs.extend(answers.iter().map(|it| Input::Program(line(it))));
    }
}

/// Returns the length of the text, where every number counts as one character.
fn length(description: &str) -> usize {
    let mut is_number = false;
    let counts = |letter: char| {
        let was_number = std::mem::replace(&mut is_number, letter.is_ascii_digit());
        !(was_number && is_number)
    };
    description.chars().map(counts).filter(|it| *it).count()
}
