//! The task of one session: takes commands and what its agent does, numbers what happens, writes it
//! to the log, and only then shows it.
//!
//! Each round takes what has piled up, commits it at once, then carries out what had to wait for
//! the commit. Between rounds everything the task knows is in the log, so when a write fails it
//! forgets all of it and opens the session again, just as after a crash.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backends::{Effect, Input};
use store::Window;
use tokio::sync::{mpsc, oneshot};
use transcript::{
    Answer, CallId, Ending, ErrorCode, ErrorInfo, Event, Queue, Queued, Record, ResponseId,
    RewindReason, RunStatus, SaidBy, SendMode, Seq, SessionId, Summary, Trigger, close,
    missing_start, stream,
};

use super::command::{Command, NewMessage, Refused, Reply, SessionPatch};
use super::run::{Run, RunInput, ToolDone};
use super::{Sessions, Shared};
use crate::live::ListChange;
use crate::{clock, history};

/// How long a task stays when nothing happens.
const IDLE: Duration = Duration::from_secs(60);
/// How long to wait before trying again to open a session that could not be written.
const REOPEN: Duration = Duration::from_secs(1);
/// Inputs of a run that are taken into one commit.
const ROUND: usize = 256;
const QUEUE_MAX: usize = 100;

/// Runs a session's task until the session has been idle for a while, or the server stops.
pub(super) async fn run(id: SessionId, sessions: Sessions, mut commands: mpsc::Receiver<Command>) {
    let mut ending = Ending::Restarted;
    let mut first = None;
    loop {
        let refused = match Task::open(&id, &sessions.shared, &ending) {
            Ok(task) => match task.serve(first.take(), &mut commands, &sessions).await {
                Stop::Done => return,
                // Whoever still asks is told that there is no such session.
                Stop::Deleted => Refused::NoSession,
                Stop::Storage { why, lost_run } => {
                    if lost_run {
                        ending = storage_failed(&why);
                    }
                    Refused::Storage(why)
                }
            },
            Err(refused) => refused,
        };
        if let Some(command) = first.take() {
            command.refuse(refused.clone());
        }
        if refused == Refused::NoSession && sessions.release(&id, &commands) {
            return;
        }
        tokio::select! {
            command = commands.recv() => match command {
                Some(Command::Stop { reply }) => {
                    let _ = reply.send(());
                    return;
                }
                Some(command) => first = Some(command),
                None => return,
            },
            () = tokio::time::sleep(REOPEN) => (),
        }
    }
}

/// Why a task stopped serving.
enum Stop {
    /// Idle, or the server stops.
    Done,
    Deleted,
    Storage {
        why: String,
        lost_run: bool,
    },
}

struct Task {
    id: SessionId,
    shared: Arc<Shared>,
    head: Seq,
    summary: Summary,
    summary_changed: bool,
    queue: Queue,
    run: Option<Run>,
    /// Numbered, but not in the log yet.
    pending: Vec<Record>,
    /// To be done once `pending` is in the log.
    after_commit: Vec<AfterCommit>,
    stopping: bool,
}

enum AfterCommit {
    Reply(Box<dyn FnOnce(Result<(), Refused>) + Send>),
    StartAgent,
    Delete(Reply<()>),
    RunTool { call_id: CallId, tool_name: String, arguments: String },
}

impl Task {
    /// Reads what must be known of the session. A run that the log leaves open has nobody who works
    /// on it any more: it is closed with `ending`.
    fn open(id: &SessionId, shared: &Arc<Shared>, ending: &Ending) -> Result<Self, Refused> {
        let failed = |error: store::Error| Refused::Storage(error.to_string());
        let found = shared.store.summary(id).map_err(failed)?;
        let (summary, head) = found.ok_or(Refused::NoSession)?;
        let queue = history::queue(&shared.store, id, &summary).map_err(failed)?;
        let open_run = summary.open_run.clone();
        let mut task = Self {
            id: id.clone(),
            shared: Arc::clone(shared),
            head,
            summary,
            summary_changed: false,
            queue,
            run: None,
            pending: Vec::new(),
            after_commit: Vec::new(),
            stopping: false,
        };
        if let Some(run) = open_run {
            // One that this process began has been counted when it began.
            if *ending == Ending::Restarted {
                shared.metrics.found_open_run();
            }
            let records = shared.store.records_of_run(id, &run).map_err(failed)?;
            let records: Vec<Record> = records.iter().map(store::Stored::record).collect();
            let answer = Answer::replay(&run, &records);
            for event in close(&answer, ending, clock::now()) {
                task.push(Some(&run), event);
            }
        }
        Ok(task)
    }

    async fn serve(
        mut self,
        first: Option<Command>,
        commands: &mut mpsc::Receiver<Command>,
        sessions: &Sessions,
    ) -> Stop {
        if let Err(stop) = self.settle().await {
            first.into_iter().for_each(|command| command.refuse(stop.refusal()));
            return stop;
        }
        if let Some(command) = first {
            self.handle(command);
        }
        loop {
            if let Err(stop) = self.settle().await {
                return stop;
            }
            if self.stopping {
                return Stop::Done;
            }
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.handle(command),
                    None => return Stop::Done,
                },
                input = next_input(&mut self.run) => self.take_round(input),
                () = tokio::time::sleep(IDLE), if self.run.is_none() => {
                    if sessions.release(&self.id, commands) {
                        return Stop::Done;
                    }
                }
            }
        }
    }

    fn handle(&mut self, command: Command) {
        match command {
            Command::Update { patch, reply } => self.update(patch, reply),
            Command::Send { message, reply } => self.send(message, reply),
            Command::Cancel { by, reply } => self.cancel(by, reply),
            Command::Continue { reply } => self.go_on(reply),
            Command::Retry { reply } => self.retry(reply),
            Command::Delete { reply } => {
                self.run = None;
                self.after_commit.push(AfterCommit::Delete(reply));
            }
            Command::Stop { reply } => self.stop(reply),
        }
    }

    fn update(&mut self, patch: SessionPatch, reply: Reply<()>) {
        let SessionPatch { title, archived } = patch;
        if title.is_some() || archived.is_some() {
            let event = Event::SessionUpdated { agent: None, workspace: None, title, archived };
            self.push(None, event);
        }
        self.reply(reply, ());
    }

    /// A message starts a run, or waits for the one that is active. Sent twice under one client id,
    /// it is one message.
    fn send(&mut self, message: NewMessage, reply: Reply<transcript::MessageId>) {
        let known = message.client_id.as_ref().map_or(Ok(None), |client_id| {
            self.shared.store.message_of_client_id(&self.id, client_id)
        });
        let id = match known {
            Ok(Some(id)) => return self.reply(reply, id),
            Ok(None) => clock::new_message_id(),
            Err(error) => return refuse(reply, Refused::Storage(error.to_string())),
        };
        if self.queue.messages.len() >= QUEUE_MAX {
            return refuse(reply, Refused::QueueFull(QUEUE_MAX));
        }
        let NewMessage { text, client_id, attachments } = message;
        if self.run.is_some() || !self.queue.messages.is_empty() {
            self.push(
                None,
                Event::MessageQueued {
                    message_id: id.clone(),
                    client_id,
                    text,
                    attachments,
                    position: None,
                    mode: SendMode::Queue,
                    from: None,
                },
            );
        } else {
            self.push(
                None,
                Event::UserMessage {
                    message_id: id.clone(),
                    client_id,
                    role: SaidBy::User,
                    text,
                    attachments,
                    from: None,
                },
            );
            self.start_run(Trigger::User);
        }
        self.reply(reply, id);
    }

    fn cancel(&mut self, by: String, reply: Reply<Option<ResponseId>>) {
        let Some(run) = &self.run else { return self.reply(reply, None) };
        let id = run.id.clone();
        self.push(Some(&id), Event::CancelRequested { by });
        self.tell_agent(Input::Interrupt);
        self.reply(reply, Some(id));
    }

    fn go_on(&mut self, reply: Reply<ResponseId>) {
        match self.last_answer() {
            _ if self.run.is_some() => refuse(reply, Refused::Busy),
            Ok(Some(_)) => {
                let id = self.start_run(Trigger::Continue);
                self.reply(reply, id);
            }
            Ok(None) => refuse(reply, Refused::Nothing("continue")),
            Err(error) => refuse(reply, Refused::Storage(error.to_string())),
        }
    }

    fn retry(&mut self, reply: Reply<ResponseId>) {
        match self.last_answer() {
            _ if self.run.is_some() => refuse(reply, Refused::Busy),
            Ok(Some(before_message_id)) => {
                let reason = RewindReason::Retry;
                self.push(None, Event::HistoryRewound { before_message_id, reason });
                let id = self.start_run(Trigger::Retry);
                self.reply(reply, id);
            }
            Ok(None) => refuse(reply, Refused::Nothing("retry")),
            Err(error) => refuse(reply, Refused::Storage(error.to_string())),
        }
    }

    fn stop(&mut self, reply: oneshot::Sender<()>) {
        self.stopping = true;
        self.end_run(&Ending::Restarted);
        let reply = |_| {
            let _ = reply.send(());
        };
        self.after_commit.push(AfterCommit::Reply(Box::new(reply)));
    }

    /// The answer that the history ends with, if it ends with one.
    fn last_answer(&self) -> Result<Option<String>, store::Error> {
        let rows = self.shared.store.messages(&self.id, Window { before: None, limit: 1 })?;
        let last = rows.into_iter().next_back();
        Ok(last
            .filter(|row| row.kind == store::MessageKind::Answer && !row.superseded)
            .map(|it| it.id))
    }

    fn start_run(&mut self, trigger: Trigger) -> ResponseId {
        let id = clock::new_response_id();
        let agent = self.summary.agent.clone();
        let start =
            Event::RunStart { agent: agent.clone(), model: None, trigger, exchange_id: None };
        let Some(backend) = self.shared.agents.backend(&agent) else {
            self.push(Some(&id), start.clone());
            self.fail_unstarted(&id, &agent, start);
            return id;
        };
        let workspace = self.summary.workspace.clone().map(PathBuf::from);
        let workspace = workspace.unwrap_or_else(|| self.shared.agents.workspace(&agent));
        self.run = Some(Run::new(id.clone(), backend, workspace));
        self.push(Some(&id), start);
        self.after_commit.push(AfterCommit::StartAgent);
        id
    }

    /// The session's agent is not configured any more: the run ends before it begins.
    fn fail_unstarted(&mut self, id: &ResponseId, agent: &str, start: Event) {
        let record = Record::new(self.head, clock::now(), self.id.clone(), Some(id.clone()), start);
        let answer = Answer::replay(id, [&record]);
        let message =
            format!("No agent called '{agent}' is configured. Add it, or choose another.");
        let error = ErrorInfo::new(ErrorCode::AgentNotFound, message);
        for event in close(&answer, &Ending::Failed { error, usage: None }, clock::now()) {
            self.push(Some(id), event);
        }
    }

    /// Takes one input of the run and whatever else has come in, up to a round's worth.
    fn take_round(&mut self, first: RunInput) {
        let mut next = Some(first);
        for _ in 0..ROUND {
            let Some(input) = next.take() else { return };
            match input {
                RunInput::Wake => self.tell_agent(Input::Wake),
                RunInput::ToolDone(done) => self.end_call(done),
            }
            next = self.run.as_mut().and_then(Run::try_next);
        }
    }

    /// The one way for the result of a tool that the server ran.
    fn end_call(&mut self, done: ToolDone) {
        let Some(run) = &mut self.run else { return };
        let ToolDone { call_id, tool_name, outcome } = done;
        run.tool_ended(&call_id);
        let id = run.id.clone();
        let running_since = run.answer.call(&call_id).and_then(|call| call.running_since);
        let result = Event::ToolResult {
            call_id: call_id.clone(),
            tool_name,
            ok: outcome.ok,
            result: outcome.ok.then(|| outcome.result.clone()),
            output: None,
            error: outcome.error.clone(),
            duration_ms: running_since.map_or(0, |since| clock::now().since(since)),
            truncated: None,
        };
        self.push(Some(&id), result);
        self.tell_agent(Input::ToolResult { call_id, outcome });
    }

    fn tell_agent(&mut self, input: Input) {
        let Some(run) = &mut self.run else { return };
        let effects = run.on(clock::now(), input);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let Some(run) = &mut self.run else { return };
            match effect {
                Effect::Emit(event) => {
                    let id = run.id.clone();
                    if let Some(start) = missing_start(&run.answer, &event) {
                        self.push(Some(&id), start);
                    }
                    self.push(Some(&id), event);
                }
                Effect::RunTool { call_id, tool_name, arguments } => {
                    let id = run.id.clone();
                    self.push(Some(&id), Event::ToolRunning { call_id: call_id.clone() });
                    self.after_commit.push(AfterCommit::RunTool { call_id, tool_name, arguments });
                }
                Effect::WakeAt(at) => run.wake_at(at),
                Effect::End(end) => {
                    let ending = how_it_ended(&run.answer, end);
                    self.end_run(&ending);
                }
            }
        }
    }

    /// Ends the run, once: whoever comes later finds none.
    fn end_run(&mut self, ending: &Ending) {
        let Some(run) = self.run.take() else { return };
        for event in close(&run.answer, ending, clock::now()) {
            self.push(Some(&run.id), event);
        }
    }

    /// Gives an event its number. Deltas of one part that wait together become one.
    fn push(&mut self, run: Option<&ResponseId>, event: Event) {
        let at = clock::now();
        let merged = self.pending.last_mut().is_some_and(|last| {
            last.response_id.as_ref() == run && stream::merge(&mut last.event, &event)
        });
        let seq = if merged { self.head } else { self.head.next() };
        let record = Record::new(seq, at, self.id.clone(), run.cloned(), event);
        if let Some(active) = self.run.as_mut().filter(|active| Some(&active.id) == run) {
            active.answer.apply(&record);
        }
        self.summary_changed |= self.summary.apply(&record);
        self.queue.apply(&record);
        if !merged {
            self.head = seq;
            self.pending.push(record);
        }
    }

    /// Commits, carries out what waited for it, and goes on with the queue, until nothing is left
    /// to do.
    async fn settle(&mut self) -> Result<(), Stop> {
        loop {
            self.commit().await?;
            for action in std::mem::take(&mut self.after_commit) {
                match action {
                    AfterCommit::Reply(reply) => reply(Ok(())),
                    AfterCommit::StartAgent => self.start_agent().await,
                    AfterCommit::Delete(reply) => return self.delete(reply).await,
                    AfterCommit::RunTool { call_id, tool_name, arguments } => {
                        if let Some(run) = &mut self.run {
                            run.start_tool(&self.shared, call_id, tool_name, arguments);
                        }
                    }
                }
            }
            if self.pending.is_empty() && self.after_commit.is_empty() && !self.start_next() {
                return Ok(());
            }
        }
    }

    async fn commit(&mut self) -> Result<(), Stop> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let records: Arc<[Record]> = std::mem::take(&mut self.pending).into();
        let expected = Seq(records[0].seq.0 - 1);
        let began = Instant::now();
        let written = self.shared.store.append(&self.id, expected, Arc::clone(&records)).await;
        if let Err(error) = written {
            return Err(self.give_up(&error));
        }
        self.shared.metrics.committed(&self.summary.agent, &records, began.elapsed());
        self.shared.hub.publish(&self.id, &records);
        if std::mem::take(&mut self.summary_changed) {
            self.shared.hub.publish_list_change(ListChange::Changed {
                id: self.id.clone(),
                summary: self.summary.clone(),
                head: self.head,
            });
        }
        Ok(())
    }

    async fn delete(&mut self, reply: Reply<()>) -> Result<(), Stop> {
        match self.shared.store.delete_session(&self.id).await {
            Ok(_) => {
                self.shared.hub.publish_deletion(&self.id);
                let _ = reply.send(Ok(()));
                Err(Stop::Deleted)
            }
            Err(error) => {
                refuse(reply, Refused::Storage(error.to_string()));
                Ok(())
            }
        }
    }

    /// Nothing of this round is in the log, so nothing of it is shown.
    fn give_up(&mut self, error: &store::AppendError) -> Stop {
        let why = error.to_string();
        tracing::error!(session = %self.id, error = %why, "cannot write the log; the run is stopped");
        let lost_run = self.run.take().is_some();
        for action in std::mem::take(&mut self.after_commit) {
            if let AfterCommit::Reply(reply) = action {
                reply(Err(Refused::Storage(why.clone())));
            }
        }
        self.shared.hub.publish_failure(&self.id, &why);
        Stop::Storage { why, lost_run }
    }

    async fn start_agent(&mut self) {
        let Some(response_id) = self.run.as_ref().map(|run| run.id.clone()) else { return };
        match history::since_last_message(&self.shared.store, &self.id).await {
            Ok(history) => self.tell_agent(Input::Start { response_id, history }),
            Err(error) => {
                let message = format!("The conversation could not be read: {error}");
                let error = ErrorInfo::new(ErrorCode::Storage, message);
                self.end_run(&Ending::Failed { error, usage: None });
            }
        }
    }

    /// Starts what waits for a run, if nothing runs. True if something was started.
    fn start_next(&mut self) -> bool {
        if self.run.is_some() || self.stopping || self.queue.held.is_some() {
            return false;
        }
        if self.summary.unanswered {
            self.start_run(Trigger::User);
            return true;
        }
        let Some(next) = self.queue.messages.first().cloned() else { return false };
        let Queued { id: message_id, client_id, text, attachments, from, .. } = next;
        self.push(None, Event::MessageDequeued { message_id: message_id.clone() });
        let role = SaidBy::User;
        self.push(
            None,
            Event::UserMessage { message_id, client_id, role, text, attachments, from },
        );
        self.start_run(Trigger::User);
        true
    }

    fn reply<T: Send + 'static>(&mut self, reply: Reply<T>, value: T) {
        let reply = move |outcome: Result<(), Refused>| {
            let _ = reply.send(outcome.map(|()| value));
        };
        self.after_commit.push(AfterCommit::Reply(Box::new(reply)));
    }
}

impl Stop {
    fn refusal(&self) -> Refused {
        match self {
            Self::Done => Refused::Stopping,
            Self::Deleted => Refused::NoSession,
            Self::Storage { why, .. } => Refused::Storage(why.clone()),
        }
    }
}

/// Nothing comes from a run that is not there.
async fn next_input(run: &mut Option<Run>) -> RunInput {
    match run {
        Some(run) => run.next().await,
        None => std::future::pending().await,
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

fn storage_failed(why: &str) -> Ending {
    let message = format!("The log could not be written: {why}. Make room, then continue.");
    Ending::Failed { error: ErrorInfo::new(ErrorCode::Storage, message), usage: None }
}

fn refuse<T>(reply: Reply<T>, why: Refused) {
    let _ = reply.send(Err(why));
}
