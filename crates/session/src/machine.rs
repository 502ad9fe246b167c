//! The session: its state, the dispatch of inputs, and the two lists of effects.

use std::sync::Arc;

use backends::ToolOutcome;
use transcript::{
    Ending, ErrorInfo, Event, Millis, Queue, Record, ResponseId, RunEvent, Seq, SessionId, Summary,
};

use crate::agent::Agent;
use crate::ids::Ids;
use crate::journal::Journal;
use crate::lanes::{AgentLane, AgentWait, CommandLane, CommandWait};
use crate::phase::Phase;
use crate::rate_limit::RateLimit;
use crate::raw_lines::RawLines;
use crate::relay::Relay;
use crate::unrecognized_lines::UnrecognizedLines;
use crate::{
    AgentFacts, AgentInput, AnswerType, Effect, Found, Input, Judged, Lookup, ProposedCall,
    QueryId, Refused, ReplyId, ReplyTo, Settings,
};

/// State machine of one session: its open run, queue, approvals and agent.
#[derive(Debug)]
pub struct Session {
    pub(crate) settings: Arc<Settings>,
    /// Time of the current input, as the driver gave it.
    pub(crate) now: Millis,
    pub(crate) ids: Ids,
    pub(crate) journal: Journal,
    pub(crate) phase: Phase,
    /// The agent of the session. Between runs it is kept only if it is a program.
    pub(crate) agent: Option<Agent>,
    pub(crate) agent_lane: AgentLane,
    pub(crate) command_lane: CommandLane,
    pub(crate) relay: Relay,
    pub(crate) rate_limit: RateLimit,
    pub(crate) raw: RawLines,
    pub(crate) unrecognized: UnrecognizedLines,
    last_query: QueryId,
    /// Effects that the driver carries out before the next input.
    immediate: Vec<Effect>,
    /// Effects that the driver carries out after the next append.
    after_append: Vec<Effect>,
}

/// State from which a session is opened: the log's summary, queue and open run, and the settings.
#[derive(Debug)]
pub struct Opening {
    /// Id of the session to open.
    pub id: SessionId,
    /// Sequence number of the log's last record.
    pub head: Seq,
    /// Summary of the session's log.
    pub summary: Summary,
    /// Queued messages of the session.
    pub queue: Queue,
    /// Run that is open at the end of the log. `None` if the last run has ended.
    pub open_run: Option<OpenRun>,
    /// Reason why the agent of the open run is gone, as the log will give it.
    pub ending: Ending,
    /// The part of the server's configuration that the session uses.
    pub settings: Arc<Settings>,
    /// Random bits from which the session makes ids.
    pub seed: u128,
    /// Time at which the session is opened.
    pub now: Millis,
}

/// A run that is open at the end of a log, without an agent that works on it.
#[derive(Debug)]
pub struct OpenRun {
    /// Id of the open run.
    pub id: ResponseId,
    /// Records of the open run.
    pub records: Vec<Record>,
    /// Whether the run's agent can continue the run, provided that the run only waits for a person.
    pub can_continue: bool,
}

impl Opening {
    /// Returns the opening state of a session without a run and a queue, with default settings.
    pub fn of(id: SessionId, head: Seq, summary: Summary) -> Self {
        Self {
            id,
            head,
            summary,
            queue: Queue::default(),
            open_run: None,
            ending: Ending::Restarted,
            settings: Arc::default(),
            seed: 0,
            now: Millis(0),
        }
    }
}

impl Session {
    /// Opens a session. A run that the log leaves open is closed or continued; the effects of that
    /// come with the first [`Input::Settle`].
    pub fn new(opening: Opening) -> Self {
        let Opening { id, head, summary, queue, open_run, ending, settings, seed, now } = opening;
        let open_exchanges = summary.open_exchanges.clone();
        let mut session = Self {
            settings,
            now,
            ids: Ids::new(seed),
            journal: Journal::new(id, head, summary, queue),
            phase: Phase::Idle,
            agent: None,
            agent_lane: AgentLane::default(),
            command_lane: CommandLane::default(),
            relay: Relay::default(),
            rate_limit: RateLimit::default(),
            raw: RawLines::default(),
            unrecognized: UnrecognizedLines::default(),
            last_query: QueryId(0),
            immediate: Vec::new(),
            after_append: Vec::new(),
        };
        if let Some(run) = open_run {
            session.take_up_run(&run, &ending);
        }
        session.take_up_exchanges(open_exchanges);
        session
    }

    /// Takes one input at the time `now` and returns the effects for the driver to carry out.
    pub fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        self.now = now;
        match input {
            Input::Settle => return self.settle(),
            Input::Tick => self.tick(),
            Input::Command(command) => self.take_command(command),
            Input::CallerGone(caller) => self.drop_caller(caller),
            Input::Agent(AgentInput::Line(line)) if self.agent.is_none() => {
                self.keep_late_line(line);
            }
            Input::Agent(input) => self.agent_lane.inputs.push_back(input),
            Input::LateLines(lines) => {
                // Nothing follows from them, so that the driver can deliver them while it waits.
                lines.into_iter().for_each(|it| self.keep_late_line(it));
                return Vec::new();
            }
            Input::Launched { run, notice, result } => self.take_launched(&run, notice, result),
            Input::History { run, result } => self.take_history(&run, result),
            Input::Judged { query, judged } => self.take_judged(query, judged),
            Input::Found { query, found } => self.take_found(query, found),
            Input::Stderr { query, text } => self.take_stderr(query, &text),
        }
        self.advance();
        std::mem::take(&mut self.immediate)
    }

    /// Returns the sequence number of the last record, committed or not.
    pub fn head(&self) -> Seq {
        self.journal.head
    }

    /// Returns the summary of the log, including records that are not committed yet.
    pub fn summary(&self) -> &Summary {
        &self.journal.summary
    }

    /// Returns whether a run is open.
    pub fn has_run(&self) -> bool {
        self.phase.run().is_some()
    }

    /// Returns whether the session has neither an open run nor an agent, so that its driver can
    /// close it.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle) && self.agent.is_none()
    }

    /// Returns whether the session's work has ended for good: deleted, abandoned, or stopped with
    /// the server.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// Ends the session's work because the log cannot be written. Returns the effects that stop its
    /// agent and its tools; all other effects are discarded.
    pub fn abandon(&mut self) -> Vec<Effect> {
        self.immediate.clear();
        self.stop_agent();
        self.drop_run();
        self.phase = Phase::Closed;
        self.after_append.clear();
        std::mem::take(&mut self.immediate)
    }

    /// Returns the append of pending records and the effects that waited for it. If there are none,
    /// starts a run for the next queued message.
    fn settle(&mut self) -> Vec<Effect> {
        self.advance();
        let mut effects = std::mem::take(&mut self.immediate);
        effects.extend(self.journal.take_append());
        effects.extend(self.take_raw());
        effects.append(&mut self.after_append);
        if effects.is_empty() && self.start_next() {
            return self.settle();
        }
        effects
    }

    /// Starts a run for an unanswered message, or for the next queued message, if no run is open.
    /// Returns whether a run was started.
    fn start_next(&mut self) -> bool {
        if !matches!(self.phase, Phase::Idle) {
            return false;
        }
        if self.journal.summary.unanswered {
            self.answer_message();
            return true;
        }
        let Some(events) = self.journal.queue.start_next() else { return false };
        self.push_to_session(events);
        self.answer_message();
        true
    }

    fn take_judged(&mut self, query: QueryId, judged: Judged) {
        if let Some(wait) = self.agent_lane.take_waiting(query) {
            match wait {
                AgentWait::Validation(event) => self.log_validated(event, &judged),
                AgentWait::Call(call, wanted) => self.decide_call(call, &wanted, judged),
                AgentWait::Question(call, question) => self.answer_question(call, question, judged),
                AgentWait::Relay(call) => self.decide_relayed(call, judged),
                AgentWait::End(_) => (),
            }
        } else if let Some(wait) = self.command_lane.take_waiting(query) {
            match wait {
                CommandWait::Approve { approval, call, asked, reply } => {
                    self.accept_judged(approval, call, &asked, reply, &judged);
                }
                CommandWait::AcceptSame { call, same } => {
                    self.accept_same_judged(call, same, &judged);
                }
                _ => (),
            }
            self.go_on_with_commands();
        }
    }

    fn take_found(&mut self, query: QueryId, found: Result<Found, String>) {
        let Some(wait) = self.command_lane.take_waiting(query) else { return };
        match found {
            Ok(found) => self.take_command_reply(wait, found),
            Err(why) => {
                if let Some(caller) = wait.caller() {
                    self.refuse_id(caller, Refused::Storage(why));
                }
            }
        }
        self.go_on_with_commands();
    }

    fn go_on_with_commands(&mut self) {
        while !self.command_lane.is_waiting() {
            let Some(command) = self.command_lane.held.pop_front() else { return };
            self.handle(command);
        }
    }

    pub(crate) fn push(&mut self, run: Option<&ResponseId>, event: Event) {
        self.push_at(self.now, run, event);
    }

    pub(crate) fn push_at(&mut self, at: Millis, run: Option<&ResponseId>, event: Event) {
        let active = self.phase.run_mut().filter(|it| Some(&it.id) == run);
        self.journal.push(at, run, event, active.map(|it| &mut it.message));
    }

    /// Logs an event as part of the open run, or of the session if no run is open.
    pub(crate) fn push_here(&mut self, event: Event) {
        let run = self.phase.run().map(|it| it.id.clone());
        self.push(run.as_ref(), event);
    }

    pub(crate) fn push_to_session(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.push(None, event);
        }
    }

    pub(crate) fn push_all(&mut self, events: impl IntoIterator<Item = RunEvent>) {
        for (run, event) in events {
            self.push(run.as_ref(), event);
        }
    }

    pub(crate) fn now_do(&mut self, effect: Effect) {
        self.immediate.push(effect);
    }

    pub(crate) fn after_append(&mut self, effect: Effect) {
        self.after_append.push(effect);
    }

    /// Removes effects that wait for the next append.
    pub(crate) fn cancel_effects(&mut self, is_unwanted: impl Fn(&Effect) -> bool) {
        self.after_append.retain(|it| !is_unwanted(it));
    }

    /// Returns whether an effect that matches `is_it` waits for the next append.
    pub(crate) fn has_effect(&self, is_it: impl Fn(&Effect) -> bool) -> bool {
        self.after_append.iter().any(is_it)
    }

    fn next_query(&mut self) -> QueryId {
        self.last_query.0 += 1;
        self.last_query
    }

    /// Requests the judgement of a tool call for the agent's lane, which waits for it.
    pub(crate) fn judge(
        &mut self,
        call: ProposedCall,
        then: impl FnOnce(ProposedCall) -> AgentWait,
    ) {
        let query = self.next_query();
        self.agent_lane.wait(query, then(call.clone()));
        self.now_do(Effect::Judge { query, call });
    }

    /// Requests the judgement of a tool call for a command, which waits for it.
    pub(crate) fn judge_for_command(
        &mut self,
        call: ProposedCall,
        then: impl FnOnce(ProposedCall) -> CommandWait,
    ) {
        let query = self.next_query();
        self.command_lane.wait(query, then(call.clone()));
        self.now_do(Effect::Judge { query, call });
    }

    /// Requests a look-up in the store for a command, which waits for the result.
    pub(crate) fn find(&mut self, lookup: Lookup, then: CommandWait) {
        let query = self.next_query();
        self.command_lane.wait(query, then);
        self.now_do(Effect::Find { query, lookup });
    }

    /// Requests the program's stderr, with which the run then ends. The agent's lane waits for it.
    pub(crate) fn ask_for_stderr(&mut self, ending: backends::Ending) {
        let query = self.next_query();
        self.agent_lane.wait(query, AgentWait::End(ending));
        self.now_do(Effect::TakeStderr { query });
    }

    /// Replies to a caller once all records so far are committed.
    pub(crate) fn reply<T: AnswerType>(&mut self, to: ReplyTo<T>, value: T) {
        let answer = Ok(value.into_answer());
        self.after_append(Effect::Reply { to: to.id(), answer });
    }

    pub(crate) fn refuse<T>(&mut self, to: ReplyTo<T>, why: Refused) {
        self.refuse_id(to.id(), why);
    }

    pub(crate) fn refuse_id(&mut self, to: ReplyId, why: Refused) {
        self.after_append(Effect::Reply { to, answer: Err(why) });
    }

    pub(crate) fn facts(&self) -> AgentFacts {
        self.settings.agents.get(&self.journal.summary.agent).cloned().unwrap_or_default()
    }
}

/// Returns the outcome of a tool call that did not run, with the error as the reason.
pub(crate) fn not_run(error: ErrorInfo) -> ToolOutcome {
    ToolOutcome { ok: false, result: serde_json::Value::Null, error: Some(error) }
}
