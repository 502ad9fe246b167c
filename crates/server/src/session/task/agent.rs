//! The session's agent at work: its run begins, goes on input by input, and ends once.

use std::path::PathBuf;

use backends::{Effect, Input};
use serde_json::Value;
use transcript::{
    Answer, Ending, ErrorCode, ErrorInfo, Event, Message, Record, ResponseId, RunStatus,
    Transcript, Trigger, close, missing_start, pause,
};

use super::{AfterCommit, Task};
use crate::session::run::{Run, RunInput};
use crate::tools::end_survivors;
use crate::{clock, history};

/// Inputs of a run that are taken into one commit.
const ROUND: usize = 256;

impl Task {
    pub(super) fn start_run(&mut self, trigger: Trigger) -> ResponseId {
        let id = clock::new_response_id();
        let agent = self.summary.agent.clone();
        let model = self.shared.agents.model(&agent);
        let start = Event::RunStart { agent: agent.clone(), model, trigger, exchange_id: None };
        let backend = match self.shared.agents.backend(&agent) {
            Ok(backend) => backend,
            Err(error) => {
                self.push(Some(&id), start.clone());
                self.fail_unstarted(&id, error, start);
                return id;
            }
        };
        self.run = Some(Run::new(id.clone(), backend, self.workspace()));
        self.push(Some(&id), start);
        self.after_commit.push(AfterCommit::StartAgent);
        id
    }

    /// The session's agent cannot work: the run ends before it begins.
    fn fail_unstarted(&mut self, id: &ResponseId, error: ErrorInfo, start: Event) {
        let record = Record::new(self.head, clock::now(), self.id.clone(), Some(id.clone()), start);
        let answer = Answer::replay(id, [&record]);
        for event in close(&answer, &Ending::Failed { error, usage: None }, clock::now()) {
            self.push(Some(id), event);
        }
    }

    /// Takes one input of the run and whatever else has come in, up to a round's worth.
    pub(super) fn take_round(&mut self, first: RunInput) {
        let mut next = Some(first);
        for _ in 0..ROUND {
            let Some(input) = next.take() else { return };
            match input {
                RunInput::Wake => self.tell_agent(Input::Wake),
                RunInput::Tool(news) => self.hear_tool(news),
                RunInput::Heard(input) => self.tell_agent(input),
                RunInput::Overdue(call_id) => self.time_out(call_id),
            }
            next = self.run.as_mut().and_then(Run::try_next);
        }
    }

    pub(super) fn tell_agent(&mut self, input: Input) {
        let Some(run) = &mut self.run else { return };
        let effects = run.on(clock::now(), input);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let Some(run) = &mut self.run else { return };
            match effect {
                Effect::Emit(mut event) => {
                    let id = run.id.clone();
                    self.settle_validation(&mut event);
                    let Some(run) = &self.run else { return };
                    if let Some(start) = missing_start(&run.answer, &event) {
                        self.push(Some(&id), start);
                    }
                    self.push(Some(&id), event);
                }
                Effect::RunTool { call_id, tool_name, arguments } => {
                    self.want_call(call_id, tool_name, arguments);
                }
                Effect::ReadHistory => self.after_commit.push(AfterCommit::ReadHistory),
                Effect::Request(request) => {
                    self.after_commit.push(AfterCommit::Request(request));
                }
                Effect::WakeAt(at) => run.wake_at(at),
                // Said only by agents that are processes of their own.
                Effect::Write(_)
                | Effect::CloseInput
                | Effect::Begin
                | Effect::Ask { .. }
                | Effect::Withdraw(_)
                | Effect::CannotSteer(_)
                | Effect::Quit => (),
                Effect::End(end) => {
                    let ending = how_it_ended(&run.answer, end);
                    self.end_run(&ending);
                }
            }
        }
    }

    /// Ends the run, once: whoever comes later finds none.
    pub(super) fn end_run(&mut self, ending: &Ending) {
        let Some(run) = self.run.take() else { return };
        for event in close(&run.answer, ending, clock::now()) {
            self.push(Some(&run.id), event);
        }
        self.winding_up.extend(run.stop());
    }

    /// The server stops. A run that only waits for a person is left as it is, to go on later.
    pub(super) fn leave_run(&mut self) {
        let Some(run) = &self.run else { return };
        let Some(events) = pause(&run.answer, clock::now()) else {
            return self.end_run(&Ending::Restarted);
        };
        let id = run.id.clone();
        for event in events {
            self.push(Some(&id), event);
        }
        self.winding_up.extend(self.run.take().into_iter().flat_map(Run::stop));
    }

    /// What the log leaves open is closed; or it goes on, if it only waits for a person.
    pub(super) fn take_up(&mut self, id: &ResponseId, records: &[Record], ending: &Ending) {
        let mut whole = Transcript::whole();
        whole.extend(records);
        let Some(answer) = whole.message(id.as_str()).and_then(Message::answer) else { return };
        let running = answer.calls().filter(|it| it.is_open() && it.running_since.is_some());
        for call in running {
            let call = call.id.clone();
            self.winding_up.push(tokio::spawn(async move { end_survivors(&call).await }));
        }
        let backend = self.shared.agents.backend(&answer.agent);
        let paused = pause(answer, clock::now()).filter(|_| *ending == Ending::Restarted);
        let (Some(events), Ok(backend)) = (paused, backend) else {
            for event in close(answer, ending, clock::now()) {
                self.push(Some(id), event);
            }
            return;
        };
        let mut run = Run::new(id.clone(), backend, self.workspace());
        run.answer = Answer::replay(id, records);
        self.run = Some(run);
        let mut answer = answer.clone();
        for event in events {
            let (at, session) = (clock::now(), self.id.clone());
            answer.apply(&Record::new(self.head, at, session, Some(id.clone()), event.clone()));
            self.push(Some(id), event);
        }
        self.after_commit.push(AfterCommit::ResumeAgent(Box::new(answer)));
    }

    pub(super) async fn resume_agent(&mut self, answer: Box<Answer>) {
        self.tell_history(|history| Input::Resume { answer, history }).await;
    }

    fn workspace(&self) -> PathBuf {
        let workspace = self.summary.workspace.clone().map(PathBuf::from);
        workspace.unwrap_or_else(|| self.shared.agents.workspace(&self.summary.agent))
    }

    pub(super) async fn start_agent(&mut self) {
        let Some(response_id) = self.run.as_ref().map(|run| run.id.clone()) else { return };
        self.tell_history(|history| Input::Start { response_id, history }).await;
    }

    pub(super) async fn read_history(&mut self) {
        self.tell_history(Input::History).await;
    }

    async fn tell_history(&mut self, input: impl FnOnce(Vec<Value>) -> Input) {
        if self.run.is_none() {
            return;
        }
        let look_back = self.shared.agents.look_back(&self.summary.agent);
        match history::read(&self.shared.store, &self.id, look_back).await {
            Ok(history) => self.tell_agent(input(history)),
            Err(error) => {
                let message = format!("The conversation could not be read: {error}");
                let error = ErrorInfo::new(ErrorCode::Storage, message);
                self.end_run(&Ending::Failed { error, usage: None });
            }
        }
    }
}

/// Once somebody has asked to stop, the run is cancelled, whatever the agent says of its end.
fn how_it_ended(answer: &Answer, end: backends::Ending) -> Ending {
    let backends::Ending { status, error, usage } = end;
    match status {
        _ if answer.cancel_requested.is_some() => Ending::Cancelled,
        RunStatus::Completed => Ending::Completed { usage },
        RunStatus::Cancelled => Ending::Cancelled,
        RunStatus::Failed => {
            let unknown = || ErrorInfo::new(ErrorCode::AgentFailed, "The agent gave no reason.");
            Ending::Failed { error: error.unwrap_or_else(unknown), usage }
        }
    }
}

#[cfg(test)]
mod tests {
    //! How a run ends, whoever says so.

    use transcript::{Millis, Seq, SessionId};

    use super::*;

    #[test]
    fn a_run_that_was_asked_to_stop_is_cancelled_whatever_its_agent_says() {
        let id = ResponseId::new("r");
        let asked = Event::CancelRequested { by: "user".to_owned() };
        let asked = Record::new(Seq(1), Millis(0), SessionId::new("s"), Some(id.clone()), asked);
        let end = |status| backends::Ending { status, error: None, usage: None };
        for status in [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled] {
            let answer = Answer::replay(&id, [&asked]);
            assert_eq!(how_it_ended(&answer, end(status)), Ending::Cancelled);
            let ending = how_it_ended(&Answer::replay(&id, []), end(status));
            assert_eq!(ending.status(), status, "nobody asked");
        }
    }
}
