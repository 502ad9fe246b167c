//! The steps of the agent's lane: inputs for the agent's backend, and the effects that it returns.

use backends::{ModelEffect, ModelInput, ProgramEffect, ProgramInput, RunEffect, RunInput};
use transcript::RunStatus;

use crate::agent::{Activity, Family};
use crate::agent_events::announce_arguments;
use crate::lanes::{Owed, Work};
use crate::{AgentInput, Effect, ProgramOrder, Session};

/// The next step of the agent's lane, taken from one of its queues.
enum Step {
    Work(Work),
    Owed(Owed),
    Spare,
    Input(AgentInput),
}

impl Session {
    /// Queues an input about the run for the agent's backend, after earlier pending inputs.
    pub(crate) fn tell(&mut self, input: RunInput) {
        match self.agent.as_ref().map(|it| &it.family) {
            Some(Family::Model(_)) => self.tell_model(input.into()),
            Some(Family::Program(_)) => self.tell_program(input.into()),
            None => (),
        }
    }

    /// Queues an input for the backend of a model agent, after earlier pending inputs.
    pub(crate) fn tell_model(&mut self, input: ModelInput) {
        self.agent_lane.owed.push_back(Owed::Model(input));
        self.advance();
    }

    /// Queues an input for the backend of a program agent, after earlier pending inputs.
    pub(crate) fn tell_program(&mut self, input: ProgramInput) {
        self.agent_lane.owed.push_back(Owed::Program(input));
        self.advance();
    }

    /// Carries out the pending steps of the agent's lane, until the lane is empty or waits for the
    /// driver.
    pub(crate) fn advance(&mut self) {
        if std::mem::replace(&mut self.agent_lane.is_advancing, true) {
            return;
        }
        loop {
            while let Some(step) = self.next_step() {
                self.do_step(step);
            }
            if self.agent_lane.is_waiting() || !self.begin_relayed_call() {
                break;
            }
        }
        self.agent_lane.is_advancing = false;
    }

    /// Returns the next step of the agent's lane. `None` if it is empty or waits. Events of the
    /// agent wait until the agent knows of the open run.
    fn next_step(&mut self) -> Option<Step> {
        let needs_spare = self.program().is_some_and(|it| it.spare.is_none());
        let lane = &mut self.agent_lane;
        if lane.is_waiting() {
            return None;
        }
        if let Some(work) = lane.work.pop_front() {
            return Some(Step::Work(work));
        }
        if needs_spare {
            return Some(Step::Spare);
        }
        if let Some(owed) = lane.owed.pop_front() {
            return Some(Step::Owed(owed));
        }
        if self.phase.is_starting() {
            return None;
        }
        lane.inputs.pop_front().map(Step::Input)
    }

    fn do_step(&mut self, step: Step) {
        match step {
            Step::Work(Work::Model(effect)) => self.carry_out_of_model(effect),
            Step::Work(Work::Program(effect)) => self.carry_out_of_program(effect),
            Step::Work(Work::Log(event)) => self.log_agent_event(event),
            Step::Work(Work::LineDone(text)) => self.finish_line(text),
            Step::Work(Work::Exited { message }) => self.finish_exit(&message),
            Step::Work(Work::Relay { call_id, call, reply }) => {
                self.judge_relayed(call_id, call, reply);
            }
            Step::Owed(Owed::Model(input)) => self.feed_model(input),
            Step::Owed(Owed::Program(input)) => self.feed_program(input),
            Step::Owed(Owed::Refused(call_id, outcome)) => self.end_call(call_id, outcome),
            Step::Spare => {
                let spare = self.ids.response(self.now);
                if let Some(program) = self.program_mut() {
                    program.spare = Some(spare.clone());
                }
                self.feed_program(ProgramInput::Spare(spare));
            }
            Step::Input(AgentInput::Line(line)) => self.take_line(line),
            Step::Input(AgentInput::Exited { code, stderr }) => self.take_exit(code, stderr),
            Step::Input(AgentInput::Response(part)) => self.feed_model(part.into()),
            Step::Input(AgentInput::Tool { run, call_id, event }) => {
                self.take_tool_event(&run, call_id, event);
            }
        }
    }

    /// Gives the backend of a model agent an input and queues its effects. Does nothing for a
    /// program: the outcomes of its relayed tool calls go to their callers.
    pub(crate) fn feed_model(&mut self, input: ModelInput) {
        let now = self.now;
        let Some(model) = self.model_mut() else { return };
        let effects = model.on(now, input);
        self.queue_work(effects.into_iter().map(Work::Model).collect());
    }

    /// Gives the backend of a program agent an input and queues its effects.
    pub(crate) fn feed_program(&mut self, input: ProgramInput) {
        let now = self.now;
        let Some(program) = self.program_mut() else { return };
        let effects = program.backend.on(now, input);
        self.queue_work(effects.into_iter().map(Work::Program).collect());
    }

    fn queue_work(&mut self, mut work: Vec<Work>) {
        announce_arguments(&mut work);
        self.agent_lane.work.extend(work);
    }

    fn carry_out(&mut self, effect: RunEffect) {
        match effect {
            RunEffect::Emit(event) => self.log_agent_event(event),
            RunEffect::CannotSteer(message_id) => self.return_steered(&message_id),
            RunEffect::WakeAt(at) => {
                if let Some(agent) = &mut self.agent {
                    agent.wake_at = Some(at);
                }
            }
            RunEffect::End(ending) => self.end_as_agent_says(ending),
        }
    }

    fn carry_out_of_model(&mut self, effect: ModelEffect) {
        match effect {
            ModelEffect::Run(effect) => self.carry_out(effect),
            ModelEffect::RunTool(call) => {
                self.want_call(call.call_id, call.tool_name, call.arguments);
            }
            ModelEffect::ReadHistory => self.read_history(true),
            ModelEffect::Request(request) => self.after_append(Effect::Request(request)),
        }
    }

    fn carry_out_of_program(&mut self, effect: ProgramEffect) {
        match effect {
            ProgramEffect::Run(RunEffect::End(ending)) if ending.status == RunStatus::Failed => {
                self.ask_for_stderr(ending);
            }
            ProgramEffect::Run(effect) => self.carry_out(effect),
            ProgramEffect::Write(line) => {
                self.after_append(Effect::Program(ProgramOrder::Write(line)));
            }
            ProgramEffect::CloseInput => {
                self.after_append(Effect::Program(ProgramOrder::CloseInput));
            }
            ProgramEffect::Begin => self.begin_own_run(),
            ProgramEffect::Ask { call_id, can_edit, form, reason, is_judged } => {
                self.judge_question(call_id, can_edit, form, reason, is_judged);
            }
            ProgramEffect::Withdraw(call_id) => self.withdraw(&call_id),
            ProgramEffect::Quit => {
                if let Some(program) = self.program_mut() {
                    program.activity = Activity::Ending;
                    self.now_do(Effect::Program(ProgramOrder::Quit));
                }
            }
            ProgramEffect::Outdated => self.replace_outdated(),
        }
    }
}
