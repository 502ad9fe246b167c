//! The task of one session: takes commands and what its agent does, numbers what happens, writes it
//! to the log, and only then shows it.
//!
//! Each round takes what has piled up, commits it at once, then carries out what had to wait for
//! the commit. Between rounds everything the task knows is in the log, so when a write fails it
//! forgets all of it and opens the session again, just as after a crash.

mod agent;
mod asking;
mod calls;
mod commands;
mod exchanges;
mod grants;
mod own_calls;
mod program;
mod queue;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use backends::Request;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use transcript::{
    CallId, Ending, ErrorCode, ErrorInfo, Event, ExchangeId, MessageRole, Millis, OpenExchange,
    Queue, QueuedMessage, Record, ResponseId, RunMessage, Seq, SessionId, Summary, stream,
};

use self::commands::refuse;
use super::command::{Command, Refused, Reply};
use super::own_calls::OwnCalls;
use super::process::Leaving;
use super::raw::RawLines;
use super::run::{Awaited, Run, RunInput};
use super::unread::Unread;
use super::worker::{Deed, Worker, sleep_if};
use super::{Sessions, Shared};
use crate::clock;
use crate::live::ListChange;

/// How long a task stays when nothing happens.
const IDLE: Duration = Duration::from_secs(60);
/// How long to wait before trying again to open a session that could not be written.
const REOPEN: Duration = Duration::from_secs(1);

/// Runs a session's task until the session has been idle for a while, or the server stops.
pub(super) async fn run(id: SessionId, sessions: Sessions, mut commands: mpsc::Receiver<Command>) {
    let mut ending = Ending::Restarted;
    let mut first = None;
    loop {
        let refused = match Task::open(&id, &sessions, &ending) {
            Ok(task) => match task.serve(first.take(), &mut commands).await {
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
    /// The others, and ourselves: tools may reach them.
    sessions: Sessions,
    shared: Arc<Shared>,
    head: Seq,
    summary: Summary,
    summary_changed: bool,
    queue: Queue,
    run: Option<Run>,
    /// The agent, while it works, and between runs if it is a program.
    worker: Option<Worker>,
    /// What its program wants of our tools.
    own_calls: OwnCalls,
    /// What the program has written and is not stored yet.
    raw: RawLines,
    /// Output of the program that makes no content.
    unread: Unread,
    /// The lowest number given since it was last looked at.
    touched: Option<Seq>,
    /// Numbered, but not in the log yet.
    pending: Vec<Record>,
    /// To be done once `pending` is in the log.
    after_commit: Vec<AfterCommit>,
    stopping: bool,
    /// Programs that were told to end, and commands of theirs: nothing is written before they are gone.
    leaving: Vec<Leaving>,
    /// Tools of a run that has ended, which may have processes to end yet.
    winding_up: Vec<JoinHandle<()>>,
    /// When the calls of the last minute began.
    recent_calls: VecDeque<Instant>,
}

pub(super) enum AfterCommit {
    Reply(Awaited),
    StartAgent,
    /// The run goes on that the log leaves open.
    ResumeAgent(Box<RunMessage>),
    ReadHistory,
    /// Stores what was allowed always; see [`transcript::GrantScope`].
    Grant(String),
    /// Removes what was allowed always, and answers when it is gone.
    RevokeGrant(String, Awaited),
    Request(Request),
    /// A line for the program.
    Write(String),
    CloseInput,
    Delete(Reply<()>),
    /// Goes on with the questions to other agents that the log has left open.
    ResumeExchanges(BTreeMap<ExchangeId, OpenExchange>),
    RunTool {
        call_id: CallId,
        tool_name: String,
        arguments: String,
    },
}

impl Task {
    /// Reads what must be known of the session. A run that the log leaves open has nobody who works
    /// on it any more: it is closed with `ending`, unless all it does is wait for a person.
    fn open(id: &SessionId, sessions: &Sessions, ending: &Ending) -> Result<Self, Refused> {
        let shared = &sessions.shared;
        let failed = |error: store::Error| Refused::Storage(error.to_string());
        let found = shared.store.summary(id).map_err(failed)?;
        let (summary, head) = found.ok_or(Refused::NoSession)?;
        let queue = shared.store.queue(id).map_err(failed)?;
        let open_run = summary.open_run.clone();
        let open_exchanges = summary.open_exchanges.clone();
        let mut task = Self {
            id: id.clone(),
            sessions: sessions.clone(),
            shared: Arc::clone(shared),
            head,
            summary,
            summary_changed: false,
            queue,
            run: None,
            worker: None,
            own_calls: OwnCalls::default(),
            raw: RawLines::default(),
            unread: Unread::default(),
            touched: None,
            pending: Vec::new(),
            after_commit: Vec::new(),
            stopping: false,
            leaving: Vec::new(),
            winding_up: Vec::new(),
            recent_calls: VecDeque::new(),
        };
        if let Some(run) = open_run {
            // One that this process began has been counted when it began.
            if *ending == Ending::Restarted {
                shared.metrics.found_open_run();
            }
            let records = shared.store.records_of_run(id, &run).map_err(failed)?;
            let records: Vec<Record> = records.iter().map(store::Stored::record).collect();
            task.take_up(&run, &records, ending);
        }
        task.take_up_exchanges(open_exchanges);
        Ok(task)
    }

    async fn serve(
        mut self,
        first: Option<Command>,
        commands: &mut mpsc::Receiver<Command>,
    ) -> Stop {
        if let Err(stop) = self.settle().await {
            first.into_iter().for_each(|command| command.refuse(stop.refusal()));
            return stop;
        }
        if let Some(command) = first {
            self.handle(command);
        }
        loop {
            self.tie_own_calls();
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
                next = next_of(&mut self.run, &mut self.worker) => {
                    self.take_round(next);
                    if self.pending.is_empty() {
                        // Without a commit to wait for, a flood would keep this thread to itself.
                        tokio::task::yield_now().await;
                    }
                }
                news = self.own_calls.next() => self.hear_own(news),
                () = sleep_if(self.raw.due()) => (),
                () = tokio::time::sleep(IDLE), if self.run.is_none() && self.worker.is_none() => {
                    if self.sessions.release(&self.id, commands) {
                        return Stop::Done;
                    }
                }
            }
        }
    }

    /// Gives an event its number. Deltas of one part that wait together become one.
    fn push(&mut self, run: Option<&ResponseId>, event: Event) {
        self.push_at(clock::now(), run, event);
    }

    fn push_at(&mut self, at: Millis, run: Option<&ResponseId>, event: Event) {
        let merged = self.pending.last_mut().is_some_and(|last| {
            last.response_id.as_ref() == run && stream::merge(&mut last.event, &event)
        });
        let seq = if merged { self.head } else { self.head.next() };
        self.touched.get_or_insert(seq);
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
            self.see_off().await;
            self.commit().await?;
            self.store_raw().await;
            for tool in std::mem::take(&mut self.winding_up) {
                let _ = tool.await;
            }
            for action in std::mem::take(&mut self.after_commit) {
                let Some(action) = self.hold_until_tools_are_known(action) else { continue };
                match action {
                    AfterCommit::Reply(reply) => reply(Ok(())),
                    AfterCommit::StartAgent => self.start_agent().await,
                    AfterCommit::ResumeAgent(answer) => self.resume_agent(answer).await,
                    AfterCommit::ReadHistory => self.read_history().await,
                    AfterCommit::Grant(covers) => self.store_grant(covers).await,
                    AfterCommit::RevokeGrant(covers, reply) => {
                        self.remove_grant(covers, reply).await;
                    }
                    AfterCommit::Request(request) => {
                        if let Some(run) = &mut self.run {
                            run.start_request(&self.shared, request);
                        }
                    }
                    AfterCommit::Write(line) => {
                        if let Some(worker) = &self.worker {
                            worker.write(line);
                        }
                    }
                    AfterCommit::CloseInput => {
                        if let Some(worker) = &mut self.worker {
                            worker.close_input();
                        }
                    }
                    AfterCommit::ResumeExchanges(open) => {
                        let sessions = self.sessions.clone();
                        tokio::spawn(sessions.resume_exchanges(self.id.clone(), open));
                    }
                    AfterCommit::Delete(reply) => return self.delete(reply).await,
                    AfterCommit::RunTool { call_id, tool_name, arguments } => {
                        if let Some(run) = &mut self.run {
                            let (sessions, session) = (&self.sessions, self.id.clone());
                            run.start_tool(sessions, session, call_id, tool_name, arguments);
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
            return Err(self.give_up(&error).await);
        }
        self.shared.metrics.committed(&self.summary.agent, &records, began.elapsed());
        self.shared.hub.publish(&self.id, Arc::clone(&records));
        if std::mem::take(&mut self.summary_changed) {
            self.shared.hub.publish_list_change(ListChange::Changed {
                id: self.id.clone(),
                summary: Box::new(self.summary.clone()),
                head: self.head,
            });
        }
        Ok(())
    }

    /// Nothing of this round is in the log, so nothing of it is shown. Said once: not at every
    /// attempt to open the session again, which waits until nothing of this run is at work.
    async fn give_up(&mut self, error: &store::AppendError) -> Stop {
        let why = error.to_string();
        let lost_run = self.run.is_some();
        self.drop_run();
        self.own_calls.stop();
        self.dismiss();
        let refused = std::mem::take(&mut self.after_commit);
        if lost_run || !refused.is_empty() {
            tracing::error!(session = %self.id, error = %why, "cannot write the log");
            self.shared.hub.publish_failure(&self.id, &why);
        }
        for action in refused {
            match action {
                AfterCommit::Reply(reply) | AfterCommit::RevokeGrant(_, reply) => {
                    reply(Err(Refused::Storage(why.clone())));
                }
                AfterCommit::Delete(reply) => refuse(reply, Refused::Storage(why.clone())),
                _ => (),
            }
        }
        self.see_off().await;
        for ending in self.winding_up.drain(..) {
            let _ = ending.await;
        }
        Stop::Storage { why, lost_run }
    }

    /// Starts what waits for a run, if nothing runs. True if something was started.
    fn start_next(&mut self) -> bool {
        if self.run.is_some() || self.stopping {
            return false;
        }
        if self.summary.unanswered {
            self.answer_message();
            return true;
        }
        let Some(next) = self.queue.next().cloned() else { return false };
        let QueuedMessage { id: message_id, client_id, text, attachments, from, sent, .. } = next;
        self.push(None, Event::MessageDequeued { message_id: message_id.clone() });
        let role = MessageRole::User;
        self.push(
            None,
            Event::UserMessage { message_id, client_id, role, text, attachments, from, sent },
        );
        self.answer_message();
        true
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

/// What happens next to the run, or what the agent does next.
enum Next {
    Run(RunInput),
    Agent(Deed),
}

/// Nothing comes from a run or an agent that is not there.
async fn next_of(run: &mut Option<Run>, worker: &mut Option<Worker>) -> Next {
    let of_run = async {
        match run {
            Some(run) => run.next().await,
            None => std::future::pending().await,
        }
    };
    let of_agent = async {
        match worker {
            Some(worker) => worker.next().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        input = of_run => Next::Run(input),
        deed = of_agent => Next::Agent(deed),
    }
}

fn storage_failed(why: &str) -> Ending {
    let message = format!("The log could not be written: {why}. Make room, then continue.");
    Ending::failed(ErrorInfo::new(ErrorCode::Storage, message))
}
