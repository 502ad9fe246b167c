//! A driver without I/O: it keeps a log in memory, and answers the machine when the test says so.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use transcript::{
    CallId, Ending, ErrorCode, ErrorInfo, Event, Millis, Queue, Record, ResponseId, RunMessage,
    Seq, SessionId, Summary,
};

use super::agents::{Model, Program, TOOLS, succeeded};
use crate::{
    AgentFacts, AgentInput, Answer, Command, Effect, Found, History, Input, Judged, Launched,
    LaunchedProgram, Line, Lookup, OfferedTools, OpenRun, Opening, ProgramOrder, QueryId, Refused,
    ReplyId, ReplyTo, Ruling, Session, Settings, ToolEvent,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Model,
    Program,
}

/// A reply that the driver owes the machine.
#[derive(Debug, Clone)]
enum Owed {
    Judged(QueryId),
    Found(QueryId, Lookup),
    Stderr(QueryId),
    Launched(ResponseId),
    History(ResponseId),
}

/// A session with everything around it.
pub(super) struct World {
    pub(super) kind: Kind,
    pub(super) session: Session,
    /// Committed records.
    pub(super) log: Vec<Record>,
    pub(super) now: Millis,
    owed: VecDeque<Owed>,
    pub(super) ruling: Ruling,
    /// Replies that callers got.
    pub(super) replies: BTreeMap<ReplyId, Result<Answer, Refused>>,
    commands: u64,
    /// Callers that gave a decision about a call.
    pub(super) decisions: Vec<ReplyId>,
    /// Callers that gave the result of a call.
    pub(super) results: Vec<ReplyId>,
    /// Callers that no longer wait.
    gone: BTreeSet<ReplyId>,
    /// Calls that were judged, with their arguments, since the session was opened.
    judged: BTreeSet<(CallId, String)>,
    /// Calls whose tools have been started, and how often.
    pub(super) started: HashMap<CallId, usize>,
    /// Tools at work.
    pub(super) running: Vec<(ResponseId, CallId)>,
    /// Lines that were written to the program.
    pub(super) written: Vec<String>,
    pub(super) is_deleted: bool,
    /// Whether the program's process is there.
    pub(super) has_program: bool,
    /// Appends that still succeed, if one is to fail.
    pub(super) appends_left: Option<usize>,
    pub(super) failures: usize,
}

pub(super) fn settings(kind: Kind) -> Arc<Settings> {
    let facts = AgentFacts {
        model: None,
        is_program: kind == Kind::Program,
        workspace: "/workspace".into(),
    };
    let mut settings = Settings::default();
    settings.agents.insert("agent".to_owned(), facts);
    Arc::new(settings)
}

impl World {
    pub(super) fn new(kind: Kind) -> Self {
        let id = SessionId::new("s");
        let created = Event::SessionCreated {
            agent: "agent".to_owned(),
            workspace: None,
            workspace_confirmed: false,
            title: None,
        };
        let log = vec![Record::new(Seq(1), Millis(0), id, None, created)];
        let session = open(kind, &log, &Ending::Restarted, Millis(0));
        Self {
            kind,
            session,
            log,
            now: Millis(0),
            owed: VecDeque::new(),
            ruling: Ruling::Ask,
            replies: BTreeMap::new(),
            commands: 0,
            decisions: Vec::new(),
            results: Vec::new(),
            gone: BTreeSet::new(),
            judged: BTreeSet::new(),
            started: HashMap::new(),
            running: Vec::new(),
            written: Vec::new(),
            is_deleted: false,
            has_program: false,
            appends_left: None,
            failures: 0,
        }
    }

    /// Gives the machine one input and carries out what follows.
    pub(super) fn give(&mut self, input: Input) {
        if self.is_deleted {
            return;
        }
        self.now = self.now.plus(1);
        let effects = self.session.on(self.now, input);
        self.carry_out(effects);
    }

    pub(super) fn settle(&mut self) {
        while !self.is_deleted {
            let effects = self.session.on(self.now, Input::Settle);
            if effects.is_empty() || !self.carry_out(effects) {
                return;
            }
        }
    }

    /// Gives a command and returns its caller.
    pub(super) fn command<T>(&mut self, command: impl FnOnce(ReplyTo<T>) -> Command) -> ReplyId {
        self.commands += 1;
        let caller = ReplyId(self.commands);
        if self.is_deleted {
            self.replies.insert(caller, Err(Refused::NoSession));
        } else {
            self.give(Input::Command(command(ReplyTo::new(caller))));
        }
        caller
    }

    pub(super) fn line(&mut self, line: &str) {
        if self.has_program {
            self.give(Input::Agent(AgentInput::Line(Line::Whole(line.to_owned()))));
        }
    }

    pub(super) fn exit(&mut self) {
        if std::mem::take(&mut self.has_program) {
            let stderr = "broken".to_owned();
            self.give(Input::Agent(AgentInput::Exited { code: Some(1), stderr }));
        }
    }

    pub(super) fn tool(&mut self, event: impl FnOnce() -> ToolEvent) {
        let Some((run, call_id)) = self.running.first().cloned() else { return };
        let event = event();
        if matches!(event, ToolEvent::Done(_)) {
            self.running.remove(0);
        }
        self.give(Input::Agent(AgentInput::Tool { run, call_id, event }));
    }

    /// Lets the first tool end.
    pub(super) fn finish_tool(&mut self) {
        self.tool(|| ToolEvent::Done(succeeded()));
    }

    /// Number of replies that the driver owes.
    pub(super) fn n_owed(&self) -> usize {
        self.owed.len()
    }

    /// Returns whether the driver's next reply is the judgement of a call.
    pub(super) fn owes_judgement(&self) -> bool {
        matches!(self.owed.front(), Some(Owed::Judged(_)))
    }

    /// Sends the reply with this index.
    pub(super) fn pay(&mut self, idx: usize) {
        let Some(owed) = self.owed.remove(idx) else { return };
        let input = match owed {
            Owed::Judged(query) => Input::Judged { query, judged: self.judgement() },
            Owed::Stderr(query) => Input::Stderr { query, text: "noise".to_owned() },
            Owed::Found(query, lookup) => Input::Found { query, found: Ok(self.look_up(&lookup)) },
            Owed::Launched(run) => {
                self.has_program = self.kind == Kind::Program;
                let launched = match self.kind {
                    Kind::Model => Launched::Model(Box::<Model>::default()),
                    Kind::Program => Launched::Program(LaunchedProgram {
                        backend: Box::<Program>::default(),
                        idle_limit_ms: 1000,
                        is_resumed: false,
                    }),
                };
                Input::Launched { run, notice: None, result: Ok(launched) }
            }
            Owed::History(run) => {
                let theirs = self.session.summary().newest_client_tools();
                let ours = TOOLS.iter().filter(|name| theirs.iter().all(|it| it.name != **name));
                let names = ours.map(|it| (*it).to_owned()).collect();
                let tools = OfferedTools { names, functions: Some(Vec::new()) };
                Input::History { run, result: Ok(History { messages: Vec::new(), tools }) }
            }
        };
        self.give(input);
    }

    /// Pays and settles until nothing is owed.
    pub(super) fn run_driver(&mut self) {
        self.settle();
        while self.n_owed() > 0 {
            self.pay(0);
            self.settle();
        }
    }

    fn judgement(&self) -> Judged {
        let covers = Some("scope".to_owned());
        Judged {
            ruling: self.ruling.clone(),
            matching: covers.clone(),
            is_granted_always: false,
            covers,
            target: None,
        }
    }

    fn look_up(&self, lookup: &Lookup) -> Found {
        match lookup {
            Lookup::MessageOfClient(key) => {
                let accepted = self.log.iter().find_map(|it| match &it.event {
                    Event::UserMessage { message_id, client_id, .. }
                    | Event::MessageQueued { message_id, client_id, .. }
                        if client_id.as_ref() == Some(key) =>
                    {
                        Some(message_id.clone())
                    }
                    _ => None,
                });
                Found::Message(accepted)
            }
            Lookup::MessageOfPerson(id) => Found::Message(Some(id.clone())),
            Lookup::LastAnswer | Lookup::AnswerAt(_) => {
                Found::Answer(self.runs().last().map(|it| it.id.to_string()))
            }
            Lookup::Call(call_id) => {
                let runs = self.runs();
                let mut found = runs.iter().filter_map(|it| it.call(call_id));
                Found::Call(found.next().cloned().map(Box::new))
            }
            Lookup::Grant(_) => Found::Granted(true),
        }
    }

    /// The runs of the log, in the order in which they began.
    pub(super) fn runs(&self) -> Vec<RunMessage> {
        let starts = self.log.iter().filter(|it| matches!(it.event, Event::RunStart { .. }));
        let ids = starts.filter_map(|it| it.response_id.clone());
        ids.map(|id| {
            let records = self.log.iter().filter(|it| it.response_id.as_ref() == Some(&id));
            RunMessage::replay(&id, records)
        })
        .collect()
    }

    /// Carries out effects. Returns false if an append failed.
    fn carry_out(&mut self, effects: Vec<Effect>) -> bool {
        for effect in effects {
            let stops = matches!(effect, Effect::StopAgent | Effect::StopRun);
            assert!(stops || !self.is_deleted, "{effect:?} after the deletion");
            match effect {
                Effect::Append { records, .. } => {
                    if self.appends_left == Some(0) {
                        self.fail_append();
                        return false;
                    }
                    self.appends_left = self.appends_left.map(|it| it - 1);
                    for record in records {
                        assert_eq!(record.seq, Seq(self.log.len() as u64 + 1), "dense numbers");
                        self.log.push(record);
                    }
                }
                Effect::Judge { query, call } => {
                    self.judged.insert((call.call_id, call.arguments));
                    self.owed.push_back(Owed::Judged(query));
                }
                Effect::Find { query, lookup } => self.owed.push_back(Owed::Found(query, lookup)),
                Effect::TakeStderr { query } => self.owed.push_back(Owed::Stderr(query)),
                Effect::Launch { run, .. } => self.owed.push_back(Owed::Launched(run)),
                Effect::ReadHistory { run, .. } => self.owed.push_back(Owed::History(run)),
                Effect::RunTool { run, call_id, arguments } => {
                    self.start_tool(run, call_id, arguments);
                }
                Effect::StopTool(call_id) => {
                    assert!(self.running.iter().any(|it| it.1 == call_id), "{call_id} runs");
                    self.running.retain(|it| it.1 != call_id);
                }
                Effect::StopRun => self.running.clear(),
                Effect::StopAgent => self.has_program = false,
                Effect::Program(ProgramOrder::Write(line)) if self.has_program => {
                    self.written.push(line)
                }
                Effect::Reply { to, .. } if self.gone.contains(&to) => (),
                Effect::Reply { to, answer } => {
                    let before = self.replies.insert(to, answer);
                    assert!(before.is_none(), "{to:?} got two replies");
                }
                Effect::RemoveGrant { to, answer, .. } => {
                    assert!(self.replies.insert(to, Ok(answer)).is_none());
                }
                Effect::Delete { to } => {
                    assert!(self.replies.insert(to, Ok(Answer::Done)).is_none());
                    self.is_deleted = true;
                    self.refuse_open(&Refused::NoSession);
                    return false;
                }
                _ => (),
            }
        }
        true
    }

    fn start_tool(&mut self, run: ResponseId, call_id: CallId, arguments: String) {
        let is_judged = self.judged.contains(&(call_id.clone(), arguments));
        assert!(is_judged, "{call_id} runs with the arguments that were judged");
        let open = self.runs().into_iter().find(|it| it.id == run);
        let open = open.filter(RunMessage::is_open);
        let call = open.as_ref().and_then(|it| it.call(&call_id));
        let is_running = call.is_some_and(|it| it.is_open() && it.running_since.is_some());
        assert!(is_running, "the log says that {call_id} runs");
        *self.started.entry(call_id.clone()).or_default() += 1;
        self.running.push((run, call_id));
    }

    /// Opens the session again from the log, as the driver does after a failed append.
    fn fail_append(&mut self) {
        let lost_run = self.session.has_run();
        let effects = self.session.abandon();
        self.appends_left = None;
        self.failures += 1;
        self.carry_out(effects);
        self.refuse_open(&Refused::Storage("full".to_owned()));
        let error = ErrorInfo::new(ErrorCode::Storage, "full");
        let ending = if lost_run { Ending::failed(error) } else { Ending::Restarted };
        self.reopen(&ending);
    }

    /// Opens the session again from the log, as after a crash.
    pub(super) fn crash(&mut self) {
        self.refuse_open(&Refused::Stopping);
        self.reopen(&Ending::Restarted);
    }

    fn reopen(&mut self, ending: &Ending) {
        self.judged.clear();
        self.owed.clear();
        self.running.clear();
        self.has_program = false;
        self.session = open(self.kind, &self.log, ending, self.now);
        self.settle();
    }

    fn refuse_open(&mut self, why: &Refused) {
        for caller in 1..=self.commands {
            self.replies.entry(ReplyId(caller)).or_insert_with(|| Err(why.clone()));
        }
    }

    /// Lets the caller of the last command stop waiting.
    pub(super) fn leave(&mut self) {
        let last = ReplyId(self.commands);
        if !self.is_deleted && !self.replies.contains_key(&last) && self.gone.insert(last) {
            self.give(Input::CallerGone(last));
        }
    }

    pub(super) fn has_reply(&self, caller: u64) -> bool {
        let caller = ReplyId(caller);
        self.replies.contains_key(&caller) || self.gone.contains(&caller)
    }

    pub(super) fn n_commands(&self) -> u64 {
        self.commands
    }
}

fn open(kind: Kind, log: &[Record], ending: &Ending, now: Millis) -> Session {
    let mut summary = Summary::default();
    let mut queue = Queue::default();
    for record in log {
        summary.apply(record);
        queue.apply(record);
    }
    let open_run = summary.open_run.clone().map(|id| {
        let of_run = log.iter().filter(|it| it.response_id.as_ref() == Some(&id));
        OpenRun { records: of_run.cloned().collect(), id, can_continue: kind == Kind::Model }
    });
    Session::new(Opening {
        queue,
        open_run,
        ending: ending.clone(),
        settings: settings(kind),
        seed: log.len() as u128,
        now,
        ..Opening::of(SessionId::new("s"), Seq(log.len() as u64), summary)
    })
}
