//! The end of a run: reported by its agent, or because its program or the server ends.

use backends::{Exit, ProgramInput};
use transcript::{Ending, ErrorCode, ErrorInfo, close, pause};

use crate::agent::Activity;
use crate::lanes::{AgentWait, Work};
use crate::phase::Phase;
use crate::{AgentInput, Effect, ProgramOrder, QueryId, Session};

impl Session {
    pub(crate) fn end_as_agent_says(&mut self, ending: backends::Ending) {
        if let Some(run) = self.phase.run() {
            let ending = ending.of(&run.message);
            self.end_run(&ending);
        }
    }

    /// Ends the open run and logs its end. Does nothing if no run is open.
    pub(crate) fn end_run(&mut self, ending: &Ending) {
        let Some(run) = self.phase.run() else { return };
        let waiting = run.message.return_waiting(&self.journal.queue);
        self.push_all(waiting);
        self.log_unrecognized();
        let Some(run) = self.phase.run() else { return };
        // The program has stopped working on the answer, and did not say that its call has ended too.
        let may_go_on = ending.is_cancelled() && run.has_running_call();
        for event in close(&run.message, ending, self.now) {
            self.push_here(event);
        }
        self.drop_run();
        let now = self.now;
        match self.program_mut() {
            Some(program) if program.activity != Activity::Ending && !may_go_on => {
                program.activity = Activity::Idle { since: now };
                // The program may say so before its commands are gone.
                if ending.is_cancelled() {
                    self.now_do(Effect::Program(ProgramOrder::EndCommands));
                }
            }
            _ => self.stop_agent(),
        }
        if ending.is_cancelled() {
            self.note_background_exchanges();
        }
    }

    /// Stops all work for the open run and forgets the run, without logging its end.
    pub(crate) fn drop_run(&mut self) {
        if self.phase.run().is_none() {
            return;
        }
        for (to, answer) in self.phase.mark_idle() {
            self.after_append(Effect::Reply { to, answer: Ok(answer) });
        }
        self.stop_relay();
        self.agent_lane.forget_run();
        self.cancel_effects(|it| {
            matches!(
                it,
                Effect::Launch { .. }
                    | Effect::ReadHistory { .. }
                    | Effect::Request(_)
                    | Effect::RunTool { .. }
            )
        });
        self.now_do(Effect::StopRun);
    }

    /// Pauses or closes the open run because the server stops. A run that only waits for a person
    /// stays open in the log, so that a later server continues it.
    pub(crate) fn leave_run(&mut self) {
        let Some(run) = self.phase.run() else { return };
        let is_program = self.facts().is_program;
        let paused = pause(&run.message, self.now).filter(|_| !is_program);
        let Some(events) = paused else {
            self.return_all_steered();
            // The end is logged when the program is gone.
            self.stop_agent();
            return self.end_run(&Ending::Restarted);
        };
        self.log_unrecognized();
        for event in events {
            self.push_here(event);
        }
        self.drop_run();
    }

    pub(crate) fn take_exit(&mut self, code: Option<i32>, stderr: String) {
        let is_wanted = matches!(self.phase, Phase::Running(_));
        if is_wanted && self.program().is_some_and(|it| it.activity == Activity::Silent) {
            self.agent = None;
            return self.restart_agent();
        }
        if self.phase.run().is_none() {
            self.log_unrecognized();
        }
        let how = code.map_or("by a signal".to_owned(), |it| format!("with code {it}"));
        let message = format!("The program ended {how}. {stderr}").trim_end().to_owned();
        self.feed_program(ProgramInput::Exited(Exit { code, stderr }));
        self.agent_lane.work.push_back(Work::Exited { message });
    }

    pub(crate) fn finish_exit(&mut self, message: &str) {
        self.agent = None;
        if self.phase.run().is_some() {
            self.end_run(&Ending::failed(ErrorInfo::new(ErrorCode::AgentExited, message)));
        }
    }

    /// Stops the agent, if there is one. Later records are appended only when no process of its
    /// program is left.
    pub(crate) fn stop_agent(&mut self) {
        if self.agent.take().is_none() {
            return;
        }
        self.now_do(Effect::StopAgent);
        for input in std::mem::take(&mut self.agent_lane.inputs) {
            match input {
                AgentInput::Line(line) => self.keep_late_line(line),
                AgentInput::Exited { .. } | AgentInput::Response(_) => (),
                tool @ AgentInput::Tool { .. } => self.agent_lane.inputs.push_back(tool),
            }
        }
    }

    pub(crate) fn take_stderr(&mut self, query: QueryId, text: &str) {
        if let Some(AgentWait::End(mut ending)) = self.agent_lane.take_waiting(query) {
            ending.append_stderr(text);
            self.end_as_agent_says(ending);
        }
    }
}
