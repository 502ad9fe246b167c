//! The session's agent at work: its run begins, goes on input by input, and ends once.

use std::collections::HashMap;
use std::path::PathBuf;

use backends::{Effect, Input};
use serde_json::{Value, json};
use tools::processes::{Mark, Processes};
use transcript::{
    CallId, ClientTool, Ending, ErrorCode, ErrorInfo, Event, Message, Record, ResponseId,
    RunMessage, Transcript, Trigger, close, correct_result_code, implied_start, pause,
};

use super::asking::Asking;
use super::{AfterCommit, Next, Task};
use crate::session::exchanges::answering;
use crate::session::from_log;
use crate::session::run::{Run, RunInput};
use crate::session::worker::{Deed, Worker};
use crate::{clock, history};

/// What is taken into one commit.
const ROUND: usize = 256;

impl Task {
    /// Begins the answer to the newest message, whoever said it.
    pub(super) fn answer_message(&mut self) {
        let (id, trigger) = match &self.summary.from {
            None => (clock::new_response_id(), Trigger::User),
            Some(from) if from.is_answer => (clock::new_response_id(), Trigger::Callback),
            Some(from) => (answering(&from.exchange_id), Trigger::Agent),
        };
        self.start_run_as(id, trigger);
    }

    pub(super) fn start_run(&mut self, trigger: Trigger) -> ResponseId {
        let id = clock::new_response_id();
        self.start_run_as(id.clone(), trigger);
        id
    }

    fn start_run_as(&mut self, id: ResponseId, trigger: Trigger) {
        match self.shared.agents.check(&self.summary.agent) {
            Ok(()) => {
                self.open_run(id, trigger);
                self.after_commit.push(AfterCommit::StartAgent);
            }
            Err(error) => {
                let start = self.run_start(trigger);
                self.push(Some(&id), start.clone());
                self.fail_unstarted(&id, error, start);
            }
        }
    }

    pub(super) fn open_run(&mut self, id: ResponseId, trigger: Trigger) {
        self.end_unread();
        self.run = Some(Run::new(id.clone(), self.workspace()));
        if let Some(worker) = &mut self.worker {
            worker.mark_busy();
        }
        let start = self.run_start(trigger);
        self.push(Some(&id), start);
    }

    fn run_start(&self, trigger: Trigger) -> Event {
        let agent = self.summary.agent.clone();
        let model = self.shared.agents.model(&agent);
        let from = match trigger {
            Trigger::Agent | Trigger::Callback => self.summary.from.as_ref(),
            Trigger::User | Trigger::Continue | Trigger::Retry | Trigger::SelfStarted => None,
        };
        let exchange_id = from.map(|it| it.exchange_id.clone());
        Event::RunStart { agent, model, trigger, exchange_id }
    }

    /// The session's agent cannot work: the run ends before it begins.
    fn fail_unstarted(&mut self, id: &ResponseId, error: ErrorInfo, start: Event) {
        let record = Record::new(self.head, clock::now(), self.id.clone(), Some(id.clone()), start);
        let answer = RunMessage::replay(id, [&record]);
        for event in close(&answer, &Ending::failed(error), clock::now()) {
            self.push(Some(id), event);
        }
    }

    /// Takes what has happened and whatever else has come in, up to a round's worth. Only what will
    /// be taken is asked for: there is no way to give it back.
    pub(super) fn take_round(&mut self, first: Next) {
        self.take(first);
        for _ in 1..ROUND {
            let of_run = self.run.as_mut().and_then(Run::try_next).map(Next::Run);
            let of_agent = || self.worker.as_mut().and_then(Worker::try_next).map(Next::Agent);
            let Some(next) = of_run.or_else(of_agent) else { return };
            self.take(next);
        }
    }

    fn take(&mut self, happened: Next) {
        match happened {
            Next::Run(RunInput::Tool(news)) => self.hear_tool(news),
            Next::Run(RunInput::Heard(input)) => self.tell_agent(input),
            Next::Run(RunInput::ToolsKnown) => {
                self.after_commit.extend(self.run.as_mut().and_then(Run::release));
            }
            Next::Run(RunInput::Overdue(call_id)) => self.time_out(call_id),
            Next::Agent(Deed::Wake) => self.tell_agent(Input::Wake),
            Next::Agent(Deed::Line(line)) => self.hear_line(line),
            Next::Agent(Deed::Exited(code)) => self.hear_exit(code),
            Next::Agent(Deed::Idle) => {
                tracing::info!(session = %self.id, "an idle program is ended");
                self.dismiss();
            }
        }
    }

    pub(super) fn tell_agent(&mut self, input: Input) {
        let Some(worker) = &mut self.worker else { return };
        let effects = worker.on(clock::now(), input);
        self.carry_out(effects);
        if let Some(spare) = self.worker.as_mut().and_then(Worker::new_spare) {
            self.tell_agent(Input::Spare(spare));
        }
    }

    fn carry_out(&mut self, mut effects: Vec<Effect>) {
        announce_arguments(&mut effects);
        for effect in effects {
            match effect {
                Effect::Emit(event) => self.emit(event),
                Effect::RunTool { call_id, tool_name, arguments } => {
                    self.want_call(call_id, tool_name, arguments);
                }
                Effect::ReadHistory => self.after_commit.push(AfterCommit::ReadHistory),
                Effect::Request(request) => {
                    self.after_commit.push(AfterCommit::Request(request));
                }
                Effect::Write(line) => self.after_commit.push(AfterCommit::Write(line)),
                Effect::CloseInput => self.after_commit.push(AfterCommit::CloseInput),
                Effect::Begin => self.begin_run(),
                Effect::Ask { call_id, can_edit, form, reason, is_judged } => {
                    self.ask(call_id, Asking { can_edit, form, reason, is_judged });
                }
                Effect::Withdraw(call_id) => self.withdraw(&call_id),
                Effect::CannotSteer(message_id) => self.take_back(&message_id),
                Effect::WakeAt(at) => {
                    if let Some(worker) = &mut self.worker {
                        worker.wake_at(at);
                    }
                }
                Effect::Quit => {
                    if let Some(worker) = &mut self.worker {
                        worker.quit();
                    }
                }
                Effect::Outdated => {
                    if let Some(worker) = &self.worker {
                        self.shared.agents.mark_outdated(&worker.agent);
                    }
                    self.take_back_all();
                    self.dismiss();
                    self.after_commit.push(AfterCommit::StartAgent);
                }
                Effect::End(mut end) => {
                    let words = self.worker.as_mut().map(|it| it.take_last_words(true));
                    end.add_last_words(&words.unwrap_or_default());
                    let Some(run) = &self.run else { return };
                    let ending = end.of(&run.answer);
                    self.end_run(&ending);
                }
            }
        }
    }

    pub(super) fn emit(&mut self, mut event: Event) {
        if !self.settle_steered(&mut event) {
            return;
        }
        event = match event {
            Event::Unrecognized { source, raw, lines } => {
                self.raw.count_unrecognized(&raw);
                let Some(due) = self.unread.take(source, raw, lines) else { return };
                due
            }
            event => event,
        };
        if let (Event::AgentLinked { .. }, Some(worker)) = (&event, &mut self.worker) {
            worker.mark_started();
        }
        let Some(id) = self.run.as_ref().map(|run| run.id.clone()) else {
            // Anything else that comes between runs would belong to nothing.
            let is_aside = matches!(event, Event::Notice { .. } | Event::Unrecognized { .. });
            if is_aside || event.is_session_event() {
                self.push(None, event);
            }
            return;
        };
        self.settle_executor(&mut event);
        self.settle_validation(&mut event);
        let Some(run) = &mut self.run else { return };
        correct_result_code(&run.answer, &mut event);
        self.own_calls.settle_result(&mut event);
        run.remember_arguments(&event);
        if let Some(start) = implied_start(&run.answer, &event) {
            self.push(Some(&id), start);
        }
        self.push(Some(&id), event);
    }

    /// Ends the run, once: whoever comes later finds none.
    pub(super) fn end_run(&mut self, ending: &Ending) {
        let Some(run) = &self.run else { return };
        let id = run.id.clone();
        self.return_what_waits(&id);
        self.end_unread();
        let Some(run) = &self.run else { return };
        // Its program has stopped working on the answer, and not said that the call has ended too.
        let may_go_on = ending.is_cancelled() && run.has_running_call();
        for event in close(&run.answer, ending, clock::now()) {
            self.push(Some(&id), event);
        }
        self.drop_run();
        match &mut self.worker {
            Some(worker) if worker.is_of_use() && !may_go_on => {
                worker.mark_idle();
                // It may have said so before its commands are gone.
                let is_stopped = ending.is_cancelled();
                self.leaving.extend(is_stopped.then(|| worker.end_commands()).flatten());
            }
            // It has done its work, or is to go: the end is written when it has gone.
            Some(_) => self.dismiss(),
            None => (),
        }
        if ending.is_cancelled() {
            self.say_what_goes_on();
        }
    }

    /// Stops all that was done for the run. What the log says of it is somebody else's business.
    pub(super) fn drop_run(&mut self) {
        let Some(mut run) = self.run.take() else { return };
        let awaited = std::mem::take(&mut run.awaited);
        self.after_commit.extend(awaited.into_iter().map(AfterCommit::Reply));
        self.winding_up.extend(run.stop());
        self.own_calls.stop();
    }

    /// The server stops. A run that only waits for a person is left as it is, to go on later.
    pub(super) fn leave_run(&mut self) {
        let Some(run) = &self.run else { return };
        let is_program = self.shared.agents.is_program(&run.answer.agent);
        let paused = pause(&run.answer, clock::now()).filter(|_| !is_program);
        let Some(events) = paused else {
            self.take_back_all();
            // The end is written when the program has gone.
            self.dismiss();
            return self.end_run(&Ending::Restarted);
        };
        let id = run.id.clone();
        self.end_unread();
        for event in events {
            self.push(Some(&id), event);
        }
        self.drop_run();
    }

    /// What the log leaves open is closed; or it goes on, if it only waits for a person.
    pub(super) fn take_up(&mut self, id: &ResponseId, records: &[Record], ending: &Ending) {
        let mut whole = Transcript::whole();
        whole.extend(records);
        let Some(answer) = whole.message(id.as_str()).and_then(Message::run) else { return };
        let running = answer.calls().filter(|it| it.is_open() && it.running_since.is_some());
        for call in running {
            let processes = Processes::of(None, &Mark::of_call(&call.id));
            self.winding_up.push(tokio::spawn(async move { processes.end().await }));
        }
        // A program has lost its place in its own work.
        let can_go_on = *ending == Ending::Restarted
            && self.shared.agents.check(&answer.agent).is_ok()
            && !self.shared.agents.is_program(&answer.agent);
        let paused = pause(answer, clock::now()).filter(|_| can_go_on);
        let Some(events) = paused else {
            self.return_unseen(answer);
            for event in close(answer, ending, clock::now()) {
                self.push(Some(id), event);
            }
            return;
        };
        let mut run = Run::new(id.clone(), self.workspace());
        run.answer = RunMessage::replay(id, records);
        self.run = Some(run);
        let mut answer = answer.clone();
        for event in events {
            let (at, session) = (clock::now(), self.id.clone());
            answer.apply(&Record::new(self.head, at, session, Some(id.clone()), event.clone()));
            self.push(Some(id), event);
        }
        self.after_commit.push(AfterCommit::ResumeAgent(Box::new(answer)));
    }

    pub(super) async fn resume_agent(&mut self, answer: Box<RunMessage>) {
        if self.hire_or_fail().await {
            self.tell_history(|history| Input::Resume { answer, history }).await;
            self.steer_what_waits();
        }
    }

    pub(super) fn workspace(&self) -> PathBuf {
        from_log::workspace(&self.summary, self.shared.agents.workspace(&self.summary.agent))
    }

    pub(super) async fn start_agent(&mut self) {
        let Some(response_id) = self.run.as_ref().map(|run| run.id.clone()) else { return };
        if self.hire_or_fail().await {
            self.tell_history(|history| Input::Start { response_id, history }).await;
        }
    }

    /// The agent is there, or the run ends here.
    async fn hire_or_fail(&mut self) -> bool {
        let hired = self.hire().await;
        if let Err(error) = hired {
            self.end_run(&Ending::failed(error));
        }
        self.run.is_some()
    }

    pub(super) async fn read_history(&mut self) {
        self.tell_history(Input::History).await;
    }

    /// The next word to the agent waits for MCP servers that start, or whose tools have changed.
    /// Meanwhile the run can be stopped.
    pub(super) fn hold_until_tools_are_known(
        &mut self,
        action: AfterCommit,
    ) -> Option<AfterCommit> {
        use AfterCommit::{ReadHistory, ResumeAgent, StartAgent};
        let (Some(run), StartAgent | ResumeAgent(_) | ReadHistory) = (&mut self.run, &action)
        else {
            return Some(action);
        };
        let choice = self.shared.agents.tool_choice(&self.summary.agent);
        let Some(choice) = choice.filter(|_| !run.take_waited()) else { return Some(action) };
        let ready = self.shared.tools.mcp().getting_ready(|server| choice.takes_any_of(server));
        match (ready, &action) {
            (None, _) => Some(action),
            // What comes first are calls that were agreed to, and they start what they need.
            (Some(ready), ResumeAgent(_)) => {
                tokio::spawn(ready);
                Some(action)
            }
            (Some(ready), _) => {
                run.hold(ready, action);
                None
            }
        }
    }

    fn tell_tools(&mut self) {
        if let Some(choice) = self.shared.agents.tool_choice(&self.summary.agent) {
            let mut tools = choice.of(&self.shared.tools);
            let is_ours = |name: &str| tools.iter().any(|it| it["function"]["name"] == name);
            let theirs = self.summary.newest_client_tools().iter().filter(|it| !is_ours(&it.name));
            tools.extend(theirs.map(as_function).collect::<Vec<_>>());
            self.tell_agent(Input::Tools(tools));
        }
    }

    async fn tell_history(&mut self, input: impl FnOnce(Vec<Value>) -> Input) {
        if self.run.is_none() {
            return;
        }
        let remembers = self.worker.as_ref().is_some_and(Worker::remembers);
        let look_back = self.shared.agents.look_back(&self.summary.agent, remembers);
        match history::read(&self.shared.store, &self.id, look_back).await {
            Ok(history) => {
                self.tell_tools();
                self.tell_agent(input(history));
            }
            Err(error) => {
                let message = format!("The conversation could not be read: {error}");
                let error = ErrorInfo::new(ErrorCode::Storage, message);
                self.end_run(&Ending::failed(error));
            }
        }
    }
}

/// As the API wants it.
fn as_function(ClientTool { name, description, parameters }: &ClientTool) -> Value {
    json!({ "type": "function", "function": {
        "name": name, "description": description, "parameters": parameters,
    }})
}

/// Puts arguments that are known when their call begins into its start: not every client waits for more.
/// Deltas add to what the start says, so a call that has any keeps a start without arguments.
fn announce_arguments(effects: &mut [Effect]) {
    let starts = |it: &Effect| matches!(it, Effect::Emit(Event::ToolCallStart { .. }));
    if !effects.iter().any(starts) {
        return;
    }
    let written = effects.iter().filter_map(|it| match it {
        Effect::Emit(Event::ToolArgumentsDone {
            call_id, arguments, incomplete: false, ..
        }) => Some((call_id.clone(), arguments.clone())),
        _ => None,
    });
    let mut written: HashMap<CallId, String> = written.collect();
    for effect in &*effects {
        if let Effect::Emit(Event::ToolArgumentsDelta { call_id, .. }) = effect {
            written.remove(call_id);
        }
    }
    for effect in effects {
        if let Effect::Emit(Event::ToolCallStart { call_id, arguments, .. }) = effect
            && arguments.is_none()
        {
            *arguments = written.remove(call_id);
        }
    }
}

#[cfg(test)]
mod tests {
    //! A start says the arguments once: deltas add to it.

    use backends::Effect;
    use transcript::{CallId, Event, Executor, Validation};

    use super::announce_arguments;

    fn start(call: &str) -> Effect {
        Effect::Emit(Event::ToolCallStart {
            call_id: CallId::new(call),
            provider_call_id: None,
            tool_name: "t".to_owned(),
            arguments: None,
            parent_call_id: None,
            executor: Executor::Agent,
        })
    }

    fn done(call: &str, incomplete: bool) -> Effect {
        Effect::Emit(Event::ToolArgumentsDone {
            call_id: CallId::new(call),
            arguments: format!("\"{call}\""),
            summary: String::new(),
            incomplete,
            validation: Validation::NotRequired,
            provider_data: None,
        })
    }

    #[test]
    fn a_start_has_arguments_that_come_whole_with_it() {
        let delta = Event::ToolArgumentsDelta { call_id: CallId::new("b"), delta: "\"".to_owned() };
        let mut effects = vec![
            start("a"),
            start("b"),
            start("c"),
            start("d"),
            done("a", false),
            Effect::Emit(delta),
            done("b", false),
            done("c", true),
        ];
        announce_arguments(&mut effects);
        let said = |it: &Effect| match it {
            Effect::Emit(Event::ToolCallStart { arguments, .. }) => Some(arguments.clone()),
            _ => None,
        };
        let said: Vec<_> = effects.iter().filter_map(said).collect();
        assert_eq!(said, [Some("\"a\"".to_owned()), None, None, None]);
    }
}
