//! The demo agent: built in, needs no key and no network, and uses the server's real tools.
//!
//! It is rule-based and deterministic. Like a model it works from the chat history alone: a new [`Demo`]
//! continues a run that broke off, because the history has every finished call.

mod answer;
mod call;
mod history;
mod places;
mod plan;
mod playback;
mod script;
mod sentence;
mod understand;

#[cfg(test)]
mod tests;

use serde_json::Value;
use transcript::{
    CallId, ErrorCode, ErrorInfo, Event, Millis, PartId, ResponseId, RunMessage, RunStatus, Usage,
};

use self::history::count_words;
use self::plan::{Plan, Purpose, Step};
pub use self::playback::Pace;
use self::playback::Playback;
use crate::model_backend::{ids_given, open_calls};
use crate::{
    Ending, ModelBackend, ModelEffect, ModelInput, ReadyCall, RunEffect, RunInput, ToolOutcome,
};

/// The built-in demo agent, as the backend of one run.
#[derive(Debug)]
pub struct Demo {
    pace: Pace,
    /// Run that the demo agent is answering. `None` before its start and after its end.
    run: Option<Run>,
}

impl Demo {
    /// Creates the backend of the demo agent for one run.
    pub fn new(pace: Pace) -> Self {
        Self { pace, run: None }
    }
}

impl ModelBackend for Demo {
    fn on(&mut self, now: Millis, input: ModelInput) -> Vec<ModelEffect> {
        match (input, &mut self.run) {
            (ModelInput::Run(RunInput::Start { response_id, history }), run) => {
                *run = Some(Run::new(response_id, &history, self.pace));
            }
            (ModelInput::Resume { answer, history }, run) => {
                *run = Some(Run::resumed(&answer, &history, self.pace));
            }
            (ModelInput::ToolResult { call_id, outcome }, Some(run)) => {
                run.take_result(&call_id, outcome);
            }
            (ModelInput::Run(RunInput::Wake), Some(run)) => run.playback.wake(),
            (ModelInput::Run(RunInput::Interrupt), Some(run)) => run.interrupt(),
            // The plan is made once, so a later message cannot change it.
            (ModelInput::Run(RunInput::Steer { message_id, .. }), _) => {
                return vec![RunEffect::CannotSteer(message_id).into()];
            }
            // The tools are built in and run without a limit, and the demo agent sends no requests.
            (
                ModelInput::Tools(_)
                | ModelInput::ToolWaits(_)
                | ModelInput::History(_)
                | ModelInput::Response(_),
                _,
            )
            | (_, None) => (),
        }
        self.play(now)
    }
}

impl Demo {
    fn play(&mut self, now: Millis) -> Vec<ModelEffect> {
        let effects = self.run.as_mut().map(|run| run.play(now)).unwrap_or_default();
        if let Some(ModelEffect::Run(RunEffect::End(_))) = effects.last() {
            self.run = None;
        }
        effects
    }
}

#[derive(Debug)]
struct Run {
    response_id: ResponseId,
    plan: Plan,
    playback: Playback,
    /// Tool calls that have no result yet, each with the index of its task in the plan.
    waiting: Vec<(CallId, usize)>,
    /// Whether the next text must still say that the answer begins again after an earlier run broke
    /// off.
    must_announce_resumption: bool,
    ids_given: u32,
    steps_begun: u32,
    is_step_open: bool,
    usage: Tally,
}

/// Token counts of the demo agent. A token is a word: deterministic, and close enough for a demo.
#[derive(Debug, Default)]
struct Tally {
    /// Input tokens of the open step.
    input: u64,
    /// Output tokens of the open step.
    output: u64,
    /// Tokens of the tool results in the open step, which are input of the next step.
    results: u64,
    /// Usage of all finished steps of the run. `None` before the first is finished.
    total: Option<Usage>,
}

impl Run {
    fn new(response_id: ResponseId, history: &[Value], pace: Pace) -> Self {
        let history = history::read(history);
        Self {
            response_id,
            usage: Tally { input: history.words, ..Tally::default() },
            must_announce_resumption: history.goes_on,
            plan: plan::plan(history),
            playback: Playback::new(pace),
            waiting: Vec::new(),
            ids_given: 0,
            steps_begun: 0,
            is_step_open: false,
        }
    }

    /// Resumes a run after a restart: finished tool calls are in the history, and open tool calls
    /// run again under their ids.
    fn resumed(answer: &RunMessage, history: &[Value], pace: Pace) -> Self {
        let mut run = Self::new(answer.id.clone(), history, pace);
        run.must_announce_resumption = false;
        run.ids_given = ids_given(answer);
        run.steps_begun = answer.steps.len() as u32;
        run.is_step_open = answer.steps.last().is_some_and(|it| it.finished.is_none());
        run.usage.total = answer.usage();
        for call in open_calls(answer) {
            let task = run.plan.take_over(&call.tool_name, &call.arguments);
            run.waiting.extend(task.map(|it| (call.call_id.clone(), it)));
            run.playback.effect(ModelEffect::RunTool(call));
        }
        run
    }

    fn take_result(&mut self, call_id: &CallId, outcome: ToolOutcome) {
        let Some(idx) = self.waiting.iter().position(|(it, _)| it == call_id) else { return };
        let (_, task) = self.waiting.remove(idx);
        self.usage.results += count_words(&outcome.result.to_string());
        self.plan.tasks[task].outcome = Some(outcome);
    }

    /// Ends the demo agent's run as cancelled. Open parts stay open: the driver closes them.
    fn interrupt(&mut self) {
        self.playback = Playback::new(Pace::Instant);
        self.waiting.clear();
        self.plan.steps.clear();
        self.end(RunStatus::Cancelled, None);
    }

    fn play(&mut self, now: Millis) -> Vec<ModelEffect> {
        let mut effects = self.playback.play(now);
        while self.playback.is_empty() && self.waiting.is_empty() && self.write_next_step() {
            effects.extend(self.playback.play(now));
        }
        effects
    }

    /// Queues the effects of the next step of the plan. Returns false if there is no step left.
    fn write_next_step(&mut self) -> bool {
        let Some(step) = self.plan.steps.pop_front() else { return false };
        if self.is_step_open {
            self.finish_tool_step();
        }
        self.start_step(&step);
        match step.purpose {
            Purpose::RunTools(tasks) => self.run_tools(&tasks),
            Purpose::Answer => self.answer(),
            Purpose::BreakDown => self.break_down(),
        }
        true
    }

    fn start_step(&mut self, step: &Step) {
        self.playback.start_step(self.steps_begun);
        self.steps_begun += 1;
        self.is_step_open = true;
        for about in &step.thoughts {
            let thought = script::thought(about);
            self.usage.output += count_words(&thought);
            let part_id = self.next_part_id();
            self.playback.thinking(&part_id, &thought);
        }
    }

    fn run_tools(&mut self, tasks: &[usize]) {
        let calls: Vec<_> = tasks.iter().map(|&it| self.plan.tasks[it].call.clone()).collect();
        let commentary = script::commentary(&calls, self.steps_begun);
        self.say(commentary);
        let mut runs = Vec::new();
        for (call, &task) in calls.iter().zip(tasks) {
            let call_id = self.next_call_id();
            self.playback.call(&call_id, call);
            let arguments = call.arguments().to_string();
            self.usage.output += count_words(&arguments);
            self.waiting.push((call_id.clone(), task));
            let tool_name = call.tool_name().to_owned();
            runs.push(ModelEffect::RunTool(ReadyCall { call_id, tool_name, arguments }));
        }
        for run in runs {
            self.playback.effect(run);
        }
    }

    fn finish_tool_step(&mut self) {
        self.finish_step("tool-calls");
        self.continuation(true, "tool_calls", "ToolCalls");
    }

    fn answer(&mut self) {
        let answer = answer::answer(&self.plan);
        self.say(answer);
        self.finish_step("stop");
        self.continuation(false, "completed", "NoToolCalls");
        self.end(RunStatus::Completed, None);
    }

    fn break_down(&mut self) {
        let part_id = self.next_part_id();
        self.playback.open_text(&part_id, script::BEFORE_BREAKING);
        let error = ErrorInfo::new(ErrorCode::UpstreamError, script::BROKEN);
        self.end(RunStatus::Failed, Some(error));
    }

    fn say(&mut self, mut text: String) {
        if std::mem::take(&mut self.must_announce_resumption) {
            // A list or a heading needs a line of its own.
            let gap = if text.contains('\n') { "\n\n" } else { " " };
            text = format!("{}{gap}{text}", script::GOING_ON);
        }
        self.usage.output += count_words(&text);
        let part_id = self.next_part_id();
        self.playback.text(&part_id, &text);
    }

    fn finish_step(&mut self, finish_reason: &str) {
        self.playback.event(Event::StepFinish {
            index: self.steps_begun - 1,
            finish_reason: finish_reason.to_owned(),
            usage: Some(self.usage.finish_step()),
            cost: None,
            parent_call_id: None,
        });
        self.is_step_open = false;
    }

    fn continuation(&mut self, should_continue: bool, stop_reason: &str, resolved_by: &str) {
        self.playback.event(Event::Continuation {
            should_continue,
            stop_reason: stop_reason.to_owned(),
            resolved_by: resolved_by.to_owned(),
            evaluations: Vec::new(),
        });
    }

    fn end(&mut self, status: RunStatus, error: Option<ErrorInfo>) {
        let usage = self.usage.total;
        self.playback.effect(RunEffect::End(Ending { status, error, usage, cost: None }));
    }

    fn next_part_id(&mut self) -> PartId {
        self.ids_given += 1;
        PartId::numbered(&self.response_id, self.ids_given)
    }

    fn next_call_id(&mut self) -> CallId {
        self.ids_given += 1;
        CallId::numbered(&self.response_id, self.ids_given)
    }
}

impl Tally {
    fn finish_step(&mut self) -> Usage {
        let step = usage(self.input, self.output);
        let before = self.total.unwrap_or_default();
        self.total = Some(usage(
            before.input_tokens + step.input_tokens,
            before.output_tokens + step.output_tokens,
        ));
        self.input += self.output + self.results;
        (self.output, self.results) = (0, 0);
        step
    }
}

fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens + output_tokens,
        cached_tokens: None,
        reasoning_tokens: None,
    }
}
