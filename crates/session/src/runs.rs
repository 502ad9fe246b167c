//! The agent at work: a run begins, continues input by input, and ends once.

use backends::{Exit, ModelEffect, ModelInput, ProgramEffect, ProgramInput, RunEffect, RunInput};
use serde_json::{Value, json};
use transcript::{
    ClientTool, Ending, ErrorCode, ErrorInfo, Event, Executor, Level, Message, RawLine, Record,
    ResponseId, RunMessage, RunStatus, SteerState, Transcript, Trigger, Validation, close,
    correct_result_code, implied_start, pause,
};

use crate::agent::{Agent, Family, Program};
use crate::announce::announce_arguments;
use crate::lanes::{Owed, Work};
use crate::phase::Phase;
use crate::run::Run;
use crate::unrecognized_lines::{Keep, MAX_RAW};
use crate::{
    AgentInput, Effect, History, Launched, Line, OfferedTools, OpenRun, ProgramOrder, Session,
    answering,
};

/// The next step of the agent's lane, taken from one of its queues.
enum Step {
    Work(Work),
    Owed(Owed),
    Spare,
    Input(AgentInput),
}

impl Session {
    /// Starts the run that answers the newest message, whether a person or an agent sent it.
    pub(crate) fn answer_message(&mut self) {
        match self.journal.summary.from.clone() {
            None => self.start_run(Trigger::User),
            Some(from) if from.is_answer => self.start_run(Trigger::Callback),
            Some(from) => self.start_run_as(answering(&from.exchange_id), Trigger::Agent),
        }
    }

    /// Starts a run under a new id, with this trigger.
    pub(crate) fn start_run(&mut self, trigger: Trigger) {
        let id = self.ids.response(self.now);
        self.start_run_as(id, trigger);
    }

    fn start_run_as(&mut self, id: ResponseId, trigger: Trigger) {
        self.open_run(id, trigger);
        self.start_agent();
    }

    /// Logs the start of a run and makes it the open run. The agent does not know of it yet.
    fn open_run(&mut self, id: ResponseId, trigger: Trigger) {
        self.log_unrecognized();
        let run = Run::new(id, self.workspace());
        self.phase = Phase::Starting { run, resumes: None };
        if let Some(program) = self.program_mut() {
            program.mark_busy();
            self.now_do(Effect::Program(ProgramOrder::BeginRun));
        }
        let summary = &self.journal.summary;
        let from = match trigger {
            Trigger::Agent | Trigger::Callback => summary.from.as_ref(),
            Trigger::User | Trigger::Continue | Trigger::Retry | Trigger::SelfStarted => None,
        };
        let start = Event::RunStart {
            agent: summary.agent.clone(),
            model: self.facts().model,
            trigger,
            exchange_id: from.map(|it| it.exchange_id.clone()),
        };
        self.push_here(start);
    }

    /// Returns the workspace of the session, or else the folder that is configured for its agent.
    fn workspace(&self) -> std::path::PathBuf {
        let named = self.journal.summary.workspace().map(std::path::PathBuf::from);
        named.unwrap_or_else(|| self.facts().workspace)
    }

    /// Requests the launch of the agent for the open run, or reuses the program that runs already.
    fn start_agent(&mut self) {
        let Some(run) = self.phase.run() else { return };
        let (id, workspace) = (run.id.clone(), run.workspace.clone());
        let name = self.journal.summary.agent.clone();
        let is_reusable = self.program().is_some_and(|it| !it.is_ending());
        if is_reusable && self.agent.as_ref().is_some_and(|it| it.name == name) {
            return self.read_history_at_start();
        }
        self.stop_agent();
        self.after_append(Effect::Launch { run: id, agent: name, workspace });
    }

    pub(crate) fn take_launched(
        &mut self,
        id: &ResponseId,
        notice: Option<String>,
        result: Result<Launched, ErrorInfo>,
    ) {
        let awaits = self.phase.is_starting() && self.phase.run().is_some_and(|it| it.id == *id);
        if let Some(text) = notice.filter(|_| awaits) {
            self.push_here(Event::Notice { level: Level::Error, text });
        }
        match result {
            // The run has ended meanwhile.
            Ok(_) if !awaits => self.now_do(Effect::StopAgent),
            Err(_) if !awaits => (),
            Err(error) => self.end_run(&Ending::failed(error)),
            // A process does not survive the server, so its run cannot go on.
            Ok(Launched::Program(_)) if self.phase.is_resuming() => {
                self.now_do(Effect::StopAgent);
                let why = "The program was ended with the server. Send the message again to go on.";
                self.end_run(&Ending::failed(ErrorInfo::new(ErrorCode::AgentExited, why)));
            }
            Ok(launched) => {
                let name = self.journal.summary.agent.clone();
                self.agent = Some(Agent::new(name, launched));
                self.advance();
                self.read_history_at_start();
            }
        }
    }

    fn read_history_at_start(&mut self) {
        let is_new = matches!(&self.phase, Phase::Starting { resumes: None, .. });
        // The calls of a resumed run that are approved come first, and they start what they need.
        self.read_history(is_new);
    }

    fn read_history(&mut self, waits_for_tools: bool) {
        let Some(run) = self.phase.run().map(|it| it.id.clone()) else { return };
        let remembers = self.program().is_some_and(|it| it.remembers);
        self.after_append(Effect::ReadHistory { run, remembers, waits_for_tools });
    }

    pub(crate) fn take_history(&mut self, id: &ResponseId, result: Result<History, String>) {
        let Some(run) = self.phase.run_mut().filter(|it| it.id == *id) else { return };
        let History { messages: history, tools } = match result {
            Ok(history) => history,
            Err(why) => {
                let message = format!("The conversation could not be read: {why}");
                let error = ErrorInfo::new(ErrorCode::Storage, message);
                return self.end_run(&Ending::failed(error));
            }
        };
        let OfferedTools { names, functions } = tools;
        run.offered = names;
        let response_id = run.id.clone();
        if let Some(functions) = functions {
            let functions = self.with_client_tools(functions);
            self.agent_lane.owed.push_back(Owed::Model(ModelInput::Tools(functions)));
        }
        let resumed = match &mut self.phase {
            Phase::Starting { resumes, .. } => resumes.take(),
            _ => return self.tell_model(ModelInput::History(history)),
        };
        self.phase.mark_running();
        match resumed {
            None => self.tell(RunInput::Start { response_id, history }),
            Some(answer) => {
                self.tell_model(ModelInput::Resume { answer, history });
                self.steer_pending();
            }
        }
    }

    /// Adds the tools that the sender of the newest message runs, except those with the name of one
    /// of Callboard's tools.
    fn with_client_tools(&self, mut functions: Vec<Value>) -> Vec<Value> {
        let is_ours = |name: &str| functions.iter().any(|it| it["function"]["name"] == name);
        let theirs = self.journal.summary.newest_client_tools().iter();
        let theirs: Vec<Value> = theirs.filter(|it| !is_ours(&it.name)).map(as_function).collect();
        functions.extend(theirs);
        functions
    }

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
            Step::Work(Work::Log(event)) => self.log(event),
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
    fn feed_model(&mut self, input: ModelInput) {
        let now = self.now;
        let Some(model) = self.model_mut() else { return };
        let effects = model.on(now, input);
        self.queue_work(effects.into_iter().map(Work::Model).collect());
    }

    /// Gives the backend of a program agent an input and queues its effects.
    fn feed_program(&mut self, input: ProgramInput) {
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
            RunEffect::Emit(event) => self.log(event),
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
                    program.mark_ending();
                    self.now_do(Effect::Program(ProgramOrder::Quit));
                }
            }
            ProgramEffect::Outdated => self.replace_outdated(),
        }
    }

    pub(crate) fn end_as_agent_says(&mut self, ending: backends::Ending) {
        if let Some(run) = self.phase.run() {
            let ending = ending.of(&run.message);
            self.end_run(&ending);
        }
    }

    /// Records that the installed program is too old for its backend, and continues the run with a
    /// new agent. If the run is being stopped, it ends instead.
    fn replace_outdated(&mut self) {
        if let Some(agent) = &self.agent {
            let agent = agent.name.clone();
            self.now_do(Effect::MarkOutdated { agent });
        }
        self.restart_agent();
    }

    fn restart_agent(&mut self) {
        self.return_all_steered();
        self.stop_agent();
        if self.phase.is_stopping() {
            return self.end_run(&Ending::cancelled());
        }
        self.phase.mark_starting();
        self.start_agent();
    }

    /// Begins a run that the program has started by itself, under the id that was reserved for
    /// that.
    fn begin_own_run(&mut self) {
        if self.phase.run().is_some() {
            return self.now_do(Effect::Warn("an agent began a run within a run"));
        }
        let spare = self.program_mut().and_then(|it| it.spare.take());
        if let Some(id) = spare {
            self.open_run(id, Trigger::SelfStarted);
            self.phase.mark_running();
        }
    }

    /// Logs an event of the agent, completed with facts that the session knows. Events that cannot
    /// belong to anything are dropped.
    pub(crate) fn log(&mut self, event: Event) {
        let event = match event {
            Event::MessageSteered { message_id, text, state } => {
                let Some(text) = self.steered_text(&message_id, text, state) else { return };
                Event::MessageSteered { message_id, text, state }
            }
            Event::Unrecognized { source, raw, lines } => {
                self.raw.count_unrecognized(&raw);
                let Some(due) = self.unrecognized.take(source, raw, lines) else { return };
                due
            }
            event => event,
        };
        if let (Event::AgentLinked { .. }, Some(program)) = (&event, self.program_mut()) {
            program.remembers = true;
            self.now_do(Effect::Program(ProgramOrder::NoteConversation));
        }
        if self.phase.run().is_some() {
            return self.log_in_run(event);
        }
        // Anything else between runs would belong to nothing.
        let is_aside = matches!(event, Event::Notice { .. } | Event::Unrecognized { .. });
        if is_aside || event.is_session_event() {
            self.push(None, event);
        }
    }

    fn log_in_run(&mut self, mut event: Event) {
        match &mut event {
            Event::ToolCallStart { tool_name, executor, .. } => {
                *executor = self.executor_of(tool_name, *executor);
            }
            Event::ToolArgumentsDone { call_id, incomplete: false, arguments, .. }
                if self.is_run_here(call_id) =>
            {
                let (call_id, arguments) = (call_id.clone(), arguments.clone());
                return self.validate(&call_id, arguments, event);
            }
            Event::ToolResult { .. } => {
                if let Some(run) = self.phase.run() {
                    correct_result_code(&run.message, &mut event);
                }
                self.relay.restore_result(&mut event);
            }
            _ => (),
        }
        self.log_final(event);
    }

    /// Logs the arguments of a tool call, together with whether a person has to approve the call.
    pub(crate) fn log_validated(&mut self, mut event: Event, judged: &crate::Judged) {
        let must_ask = self.needs_person(judged);
        if let Event::ToolArgumentsDone { validation, .. } = &mut event {
            *validation = if must_ask { Validation::Pending } else { Validation::NotRequired };
        }
        self.log_final(event);
    }

    fn log_final(&mut self, event: Event) {
        let Some(run) = self.phase.run_mut() else { return };
        run.remember_arguments(&event);
        if let Some(start) = implied_start(&run.message, &event) {
            self.push_here(start);
        }
        self.push_here(event);
    }

    /// Returns the text with which the log records a steered message. For a message that was just
    /// handed over, this is the queued text. `None` if the message is not known in that state, so
    /// that nothing is logged.
    fn steered_text(
        &self,
        message_id: &transcript::MessageId,
        text: String,
        state: SteerState,
    ) -> Option<String> {
        match state {
            SteerState::HandedOver => self.journal.queue.get(message_id).map(|it| it.text.clone()),
            SteerState::Seen | SteerState::Returned => self.has_steered(message_id).then_some(text),
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
            Some(program) if !program.is_ending() && !may_go_on => {
                program.mark_idle(now);
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

    /// Continues or closes the run that the log leaves open. It is continued if it only waits for a
    /// person.
    pub(crate) fn take_up_run(&mut self, open: &OpenRun, ending: &Ending) {
        let OpenRun { id, records, can_continue } = open;
        let mut whole = Transcript::whole();
        whole.extend(records);
        let Some(message) = whole.message(id.as_str()).and_then(Message::run) else { return };
        let running = message.calls().filter(|it| it.is_open() && it.running_since.is_some());
        let left_behind: Vec<_> = running.map(|it| it.id.clone()).collect();
        if !left_behind.is_empty() {
            self.now_do(Effect::EndProcesses(left_behind));
        }
        let may_continue = *can_continue && *ending == Ending::Restarted;
        let paused = pause(message, self.now).filter(|_| may_continue);
        let Some(events) = paused else {
            let queue = &self.journal.queue;
            let held = message.cancel_requested.is_some();
            let returned = [message.return_waiting(queue), message.return_unread(queue, held)];
            self.push_all(returned.into_iter().flatten());
            for event in close(message, ending, self.now) {
                self.push(Some(id), event);
            }
            return;
        };
        let mut run = Run::new(id.clone(), self.workspace());
        run.message = RunMessage::replay(id, records);
        let mut resumed = message.clone();
        for event in &events {
            let session = self.journal.session.clone();
            let head = self.journal.head;
            resumed.apply(&Record::new(head, self.now, session, Some(id.clone()), event.clone()));
        }
        self.phase = Phase::Starting { run, resumes: Some(Box::new(resumed)) };
        for event in events {
            self.push_here(event);
        }
        self.start_agent();
    }

    fn take_line(&mut self, line: Line) {
        self.journal.take_touched();
        if let Some(program) = self.program_mut() {
            program.mark_heard();
        }
        let text = match line {
            Line::Whole(text) => {
                self.feed_program(ProgramInput::Line(text.clone()));
                text
            }
            overlong @ Line::Overlong { .. } => {
                let raw = overlong.into_raw();
                let source = self.journal.summary.agent.clone();
                let event = Event::Unrecognized { source, raw: raw.clone(), lines: 1 };
                self.agent_lane.work.push_back(Work::Log(event));
                raw
            }
        };
        self.agent_lane.work.push_back(Work::LineDone(text));
    }

    /// Keeps a line of the program as a raw line, with the sequence numbers of the records that it
    /// produced.
    fn finish_line(&mut self, text: String) {
        let made = self.journal.take_touched();
        if made.is_none() && !self.try_reserve_raw(text.len()) {
            return;
        }
        let head = self.journal.head;
        let from = made.unwrap_or(head.next());
        self.raw.add(RawLine { at: self.now, from, to: head, text });
    }

    /// Returns whether a line of the program that produced no record is kept as a raw line. The
    /// first line that is dropped is announced by a notice in the log.
    fn try_reserve_raw(&mut self, bytes: usize) -> bool {
        match self.unrecognized.keep(bytes) {
            Keep::Yes => true,
            Keep::No => false,
            Keep::NoMore => {
                let text = format!(
                    "The program has written more than {} MB that is not part of its answer. \
                     Further lines of this kind are counted, but not kept.",
                    MAX_RAW / (1024 * 1024)
                );
                self.log(Event::Notice { level: Level::Info, text });
                self.journal.take_touched();
                false
            }
        }
    }

    /// Logs the unreadable lines that were counted and are in no record yet, and resets the counts.
    fn log_unrecognized(&mut self) {
        if let Some(event) = std::mem::take(&mut self.unrecognized).take_rest() {
            self.push_here(event);
        }
    }

    fn take_exit(&mut self, code: Option<i32>, stderr: String) {
        let is_wanted = matches!(self.phase, Phase::Running(_));
        if is_wanted && self.program().is_some_and(Program::is_silent) {
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

    fn finish_exit(&mut self, message: &str) {
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

    /// Returns whether the tool of a call runs on the server, and not in the agent's program or at
    /// the client.
    fn is_run_here(&self, call_id: &transcript::CallId) -> bool {
        let call = self.phase.run().and_then(|it| it.message.call(call_id));
        call.is_some_and(|it| it.executor == Executor::Server)
    }
}

/// Returns the description of a client's tool in the form of the OpenAI API.
fn as_function(ClientTool { name, description, parameters }: &ClientTool) -> Value {
    json!({ "type": "function", "function": {
        "name": name, "description": description, "parameters": parameters,
    }})
}
