//! The start of a run: its first records, its agent, and the history that the agent gets.

use backends::openai::function;
use backends::{ModelInput, RunInput};
use serde_json::Value;
use transcript::{
    Ending, ErrorCode, ErrorInfo, Event, Level, Message, Record, ResponseId, RunMessage,
    Transcript, Trigger, close, pause,
};

use crate::agent::{Activity, Agent};
use crate::lanes::Owed;
use crate::phase::Phase;
use crate::run::Run;
use crate::{Effect, History, Launched, OfferedTools, OpenRun, ProgramOrder, Session, answering};

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
        let is_reusable = self.program().is_some_and(|it| it.activity != Activity::Ending);
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
                let why = "The program ended with the server. Send the message again to continue.";
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

    pub(crate) fn read_history(&mut self, waits_for_tools: bool) {
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
        let theirs: Vec<Value> = theirs
            .filter(|it| !is_ours(&it.name))
            .map(|it| function(&it.name, &it.description, &it.parameters))
            .collect();
        functions.extend(theirs);
        functions
    }

    /// Begins a run that the program has started by itself, under the id that was reserved for
    /// that.
    pub(crate) fn begin_own_run(&mut self) {
        if self.phase.run().is_some() {
            return self.now_do(Effect::Warn("an agent began a run within a run"));
        }
        let spare = self.program_mut().and_then(|it| it.spare.take());
        if let Some(id) = spare {
            self.open_run(id, Trigger::SelfStarted);
            self.phase.mark_running();
        }
    }

    /// Records that the installed program is too old for its backend, and continues the run with a
    /// new agent. If the run is being stopped, it ends instead.
    pub(crate) fn replace_outdated(&mut self) {
        if let Some(agent) = &self.agent {
            let agent = agent.name.clone();
            self.now_do(Effect::MarkOutdated { agent });
        }
        self.restart_agent();
    }

    pub(crate) fn restart_agent(&mut self) {
        self.return_all_steered();
        self.stop_agent();
        if self.phase.is_stopping() {
            return self.end_run(&Ending::cancelled());
        }
        self.phase.mark_starting();
        self.start_agent();
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
}
