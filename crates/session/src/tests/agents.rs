//! Agents of the tests: small state machines that keep the contracts of [`ModelBackend`] and [`ProgramBackend`].

use backends::{
    Ending, ModelBackend, ModelEffect, ModelInput, ProgramBackend, ProgramEffect, ProgramInput,
    ReadyCall, RunEffect, RunInput, ToolOutcome, Verdict,
};
use serde_json::Value;
use transcript::{
    CallId, ErrorCode, ErrorInfo, Event, Executor, MessageId, Millis, PartId, ResponseId,
    RunStatus, SteerState, Validation,
};

/// A model agent: calls two tools in its first step, then says something and ends.
#[derive(Debug, Default)]
pub(super) struct Model {
    run: Option<ResponseId>,
    open_calls: usize,
    /// Messages that go to the model with its next step.
    steers: Vec<MessageId>,
}

/// A program agent. Each line of its output is a command of the test: `call`, `ask`, `result`, `say`, `done`,
/// `begin`.
#[derive(Debug, Default)]
pub(super) struct Program {
    run: Option<ResponseId>,
    spare: Option<ResponseId>,
    verdict: Option<Verdict>,
}

pub(super) const TOOLS: [&str; 2] = ["shell", "read_file"];

fn call_id(run: &ResponseId, n: u32) -> CallId {
    CallId::numbered(run, n)
}

fn call_events(run: &ResponseId, n: u32, tool: &str, executor: Executor) -> [RunEffect; 2] {
    let call_id = call_id(run, n);
    let start = Event::ToolCallStart {
        call_id: call_id.clone(),
        provider_call_id: Some(format!("p{n}")),
        tool_name: tool.to_owned(),
        arguments: None,
        parent_call_id: None,
        executor,
    };
    let done = Event::ToolArgumentsDone {
        call_id,
        arguments: "{}".to_owned(),
        summary: String::new(),
        incomplete: false,
        validation: Validation::NotRequired,
        provider_data: None,
    };
    [RunEffect::Emit(start), RunEffect::Emit(done)]
}

fn text(run: &ResponseId, n: u32, text: &str) -> Vec<RunEffect> {
    let part_id = PartId::numbered(run, n);
    let (delta, done) = (text.to_owned(), text.to_owned());
    vec![
        RunEffect::Emit(Event::TextDelta { part_id: part_id.clone(), parent_call_id: None, delta }),
        RunEffect::Emit(Event::TextDone {
            part_id,
            parent_call_id: None,
            text: done,
            phase: None,
            discarded: false,
        }),
    ]
}

fn step_start(index: u32) -> RunEffect {
    RunEffect::Emit(Event::StepStart { index, parent_call_id: None })
}

fn step_finish(index: u32) -> RunEffect {
    RunEffect::Emit(Event::StepFinish {
        index,
        finish_reason: "stop".to_owned(),
        usage: None,
        cost: None,
        parent_call_id: None,
    })
}

fn end(status: RunStatus) -> RunEffect {
    let is_failed = status == RunStatus::Failed;
    let error = is_failed.then(|| ErrorInfo::new(ErrorCode::AgentFailed, "It failed."));
    RunEffect::End(Ending { status, error, usage: None, cost: None })
}

fn steered(message_id: &MessageId, state: SteerState) -> RunEffect {
    let message_id = message_id.clone();
    RunEffect::Emit(Event::MessageSteered { message_id, text: String::new(), state })
}

fn of_model(effects: impl IntoIterator<Item = RunEffect>) -> Vec<ModelEffect> {
    effects.into_iter().map(ModelEffect::Run).collect()
}

fn of_program(effects: impl IntoIterator<Item = RunEffect>) -> Vec<ProgramEffect> {
    effects.into_iter().map(ProgramEffect::Run).collect()
}

impl Model {
    fn give_up_steers(&mut self) -> Vec<RunEffect> {
        self.steers.drain(..).map(RunEffect::CannotSteer).collect()
    }
}

impl ModelBackend for Model {
    fn on(&mut self, _: Millis, input: ModelInput) -> Vec<ModelEffect> {
        match input {
            ModelInput::Run(RunInput::Start { response_id, .. }) => {
                let mut effects = vec![step_start(0)];
                for (n, tool) in (1..).zip(TOOLS) {
                    effects.extend(call_events(&response_id, n, tool, Executor::Server));
                }
                effects.push(step_finish(0));
                let mut effects = of_model(effects);
                for (n, tool) in (1..).zip(TOOLS) {
                    effects.push(ModelEffect::RunTool(ReadyCall {
                        call_id: call_id(&response_id, n),
                        tool_name: tool.to_owned(),
                        arguments: "{}".to_owned(),
                    }));
                }
                self.open_calls = TOOLS.len();
                self.run = Some(response_id);
                effects
            }
            ModelInput::Resume { answer, .. } => {
                let open = answer.calls().filter(|it| it.is_open());
                let runs = open.map(|it| {
                    ModelEffect::RunTool(ReadyCall {
                        call_id: it.id.clone(),
                        tool_name: it.name.clone(),
                        arguments: it.arguments.whole().unwrap_or_default(),
                    })
                });
                let runs: Vec<ModelEffect> = runs.collect();
                self.open_calls = runs.len();
                self.run = Some(answer.id.clone());
                if runs.is_empty() { vec![ModelEffect::ReadHistory] } else { runs }
            }
            ModelInput::ToolResult { .. } => {
                self.open_calls = self.open_calls.saturating_sub(1);
                if self.open_calls == 0 { vec![ModelEffect::ReadHistory] } else { Vec::new() }
            }
            ModelInput::History(_) => {
                let Some(run) = self.run.take() else { return Vec::new() };
                let mut effects = vec![step_start(1)];
                for id in std::mem::take(&mut self.steers) {
                    effects.push(steered(&id, SteerState::HandedOver));
                    effects.push(steered(&id, SteerState::Seen));
                }
                effects.extend(text(&run, 9, "Done."));
                effects.extend([step_finish(1), end(RunStatus::Completed)]);
                of_model(effects)
            }
            ModelInput::Run(RunInput::Steer { message_id, .. }) => {
                self.steers.push(message_id);
                Vec::new()
            }
            ModelInput::Run(RunInput::Interrupt) => {
                let mut effects = self.give_up_steers();
                effects.extend(self.run.take().map(|_| end(RunStatus::Cancelled)));
                of_model(effects)
            }
            ModelInput::Run(RunInput::Wake)
            | ModelInput::Tools(_)
            | ModelInput::ToolWaits(_)
            | ModelInput::Response(_) => Vec::new(),
        }
    }
}

impl ProgramBackend for Program {
    fn on(&mut self, _: Millis, input: ProgramInput) -> Vec<ProgramEffect> {
        let write = |line: &str| ProgramEffect::Write(line.to_owned());
        match input {
            ProgramInput::Spare(id) => {
                self.spare = Some(id);
                Vec::new()
            }
            ProgramInput::Run(RunInput::Start { response_id, .. }) => {
                self.run = Some(response_id);
                vec![write("prompt"), step_start(0).into()]
            }
            ProgramInput::Line(line) => self.read(&line),
            ProgramInput::Decided { verdict, .. } => {
                let word = match &verdict {
                    Verdict::Allowed { .. } => "yes",
                    Verdict::Denied { .. } | Verdict::TimedOut => "no",
                };
                self.verdict = Some(verdict);
                vec![write(word)]
            }
            ProgramInput::Run(RunInput::Interrupt) => {
                let stopped = self.run.take().map(|_| end(RunStatus::Cancelled).into());
                std::iter::once(write("interrupt")).chain(stopped).collect()
            }
            ProgramInput::Run(RunInput::Steer { message_id, .. }) => {
                vec![write("steer"), steered(&message_id, SteerState::HandedOver).into()]
            }
            ProgramInput::Exited(_) => of_program(self.run.take().map(|_| end(RunStatus::Failed))),
            ProgramInput::Run(RunInput::Wake) => Vec::new(),
        }
    }
}

impl Program {
    fn read(&mut self, line: &str) -> Vec<ProgramEffect> {
        if line == "begin" && self.run.is_none() {
            self.run = self.spare.take();
            return vec![ProgramEffect::Begin, step_start(0).into()];
        }
        let Some(run) = self.run.clone() else { return Vec::new() };
        match line {
            "call" => of_program(call_events(&run, 1, "Bash", Executor::Agent)),
            "own" => of_program(call_events(&run, 2, "time", Executor::Agent)),
            "ask" => vec![ProgramEffect::Ask {
                call_id: call_id(&run, 1),
                can_edit: true,
                form: None,
                reason: None,
                is_judged: false,
            }],
            "result" => of_program([RunEffect::Emit(Event::ToolResult {
                call_id: call_id(&run, 1),
                tool_name: "Bash".to_owned(),
                ok: true,
                result: Some(Value::from("ok")),
                output: None,
                error: None,
                summary: None,
                duration_ms: None,
                truncated: None,
            })]),
            "say" => of_program(text(&run, 9, "Well.")),
            "done" => {
                self.run = None;
                of_program([step_finish(0), end(RunStatus::Completed)])
            }
            "fail" => {
                self.run = None;
                of_program([end(RunStatus::Failed)])
            }
            unknown => of_program([RunEffect::Emit(Event::Unrecognized {
                source: "program".to_owned(),
                raw: unknown.to_owned(),
                lines: 1,
            })]),
        }
    }
}

pub(super) fn succeeded() -> ToolOutcome {
    ToolOutcome { ok: true, result: Value::from("ok"), error: None }
}
