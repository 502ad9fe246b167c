//! Claude Code, as a process that reads and writes lines of JSON (`stream-json` both ways).
//!
//! Properties of the protocol:
//!
//! - A `user` line begins a turn; one that comes while a turn runs is read at the next opportunity within it,
//!   or begins the next. `command_lifecycle` reports what became of a line, by its uuid.
//! - A turn begins with `system/init`, which names the conversation, and ends with `result`. Agents in the
//!   background outlive it, and when one has finished the program begins a turn by itself: the run goes on
//!   until a `result` comes and no agent is at work.
//! - The model's messages come as its service sent them (`stream_event`), and each block once more, finished,
//!   as `assistant`. The result of a call is a `user` line. Lines of a sub-agent name the call that it works
//!   for.
//! - Each side can send requests to the other (`control_request`, answered by `control_response`). The
//!   program asks whether a call may run, and waits; we ask it to stop.
//!
//! Lines in the user's name that no user has typed (the program asks the model to continue, or reports that
//! it was stopped) are not shown as messages.

mod author;
mod blocks;
mod calls;
mod failure;
mod notices;
mod outcome;
mod questions;
mod run;
mod settings;
mod stdin;
mod text;
mod wire;

use std::sync::Arc;

use serde_json::Value;
use transcript::{CallId, ErrorCode, ErrorInfo, MessageId, Millis, RunStatus};

use self::questions::Request;
use self::run::Run;
pub use self::settings::{Settings, program};
use self::wire::{ApiEvent, Line, Task};
use crate::program::{self, Context, ProgramAgent, Recent};
use crate::{Exit, Launch, ProgramBackend, ProgramEffect, ProgramInput, Verdict};

/// Number of ended Claude Code sub-agents that are remembered. An agent sends few lines after its
/// end, all of them soon.
const FORMER_AGENTS: usize = 32;
/// Maximum number of background agents that are tracked for a Claude Code version that does not
/// list its tasks.
const UNLISTED: usize = 32;

/// Backend of a running Claude Code process.
#[derive(Debug)]
pub struct Claude(ProgramAgent<Adapter>);

type Cx = Context<Request>;

#[derive(Debug)]
struct Adapter {
    process: Process,
    run: Run,
}

/// State of a Claude Code process that is kept from one run to the next.
#[derive(Debug)]
struct Process {
    command: String,
    offers_tools: bool,
    /// Id of the Claude Code conversation in the last `agent_linked` event. `None` before the
    /// first.
    linked: Option<String>,
    /// Whether Claude Code reports what it did with each line from Callboard.
    reports_lines: bool,
    /// Agents and commands that Claude Code runs in the background.
    tasks: Vec<Task>,
    /// Whether Claude Code lists its background tasks itself. Otherwise only its reports on each
    /// agent are known.
    lists_tasks: bool,
    /// Tool calls of earlier runs that had a sub-agent, by the model service's ids.
    former_agents: Recent,
}

impl Claude {
    /// Creates the backend for a Claude Code process that [`program`] described.
    pub fn new(settings: Arc<Settings>, launch: &Launch) -> Self {
        let process = Process {
            command: settings.command.first().cloned().unwrap_or_default(),
            offers_tools: launch.tools.is_some(),
            linked: None,
            reports_lines: false,
            tasks: Vec::new(),
            lists_tasks: false,
            former_agents: Recent::keeping(FORMER_AGENTS),
        };
        let run = Run::new(&process);
        Self(ProgramAgent::new(Adapter { process, run }))
    }
}

impl ProgramBackend for Claude {
    fn on(&mut self, now: Millis, input: ProgramInput) -> Vec<ProgramEffect> {
        self.0.on(now, input)
    }
}

impl program::Adapter for Adapter {
    const SOURCE: &'static str = "claude";
    type Line = Option<Line>;
    type Request = Request;

    fn read(json: &str) -> Option<Line> {
        wire::read(json)
    }

    fn note(&mut self, line: &Option<Line>) {
        self.process.note(line.as_ref());
    }

    fn begins_run(&self, line: &Option<Line>) -> bool {
        line.as_ref().is_some_and(begins_turn)
    }

    fn begin_run(&mut self, _cx: &mut Cx) {
        self.process.run_begins();
        self.run = Run::new(&self.process);
    }

    fn start(&mut self, history: &[Value], cx: &mut Cx) {
        if cx.is_gone() {
            let why = "Claude Code had ended before the run began. Send the message again.";
            let error = ErrorInfo::new(ErrorCode::AgentExited, why);
            return cx.end_run(RunStatus::Failed, Some(error), None, None);
        }
        self.run.start(history, cx);
    }

    fn handle_line(&mut self, line: Option<Line>, raw: &str, cx: &mut Cx) {
        match line {
            Some(line) if cx.is_running() => self.run.handle_line(line, raw, &mut self.process, cx),
            None => cx.out.unrecognized(raw),
            Some(Line::Request(request)) => cx.out.write(reject_orphan_request(request)),
            Some(_) => (),
        }
    }

    fn steer(&mut self, message_id: MessageId, message: &Value, cx: &mut Cx) {
        self.run.steer(message_id, message, cx);
    }

    fn decide(&mut self, _call_id: &CallId, request: Request, verdict: Verdict, cx: &mut Cx) {
        self.run.decide(&request, verdict, cx);
    }

    fn interrupt(&mut self, cx: &mut Cx) {
        self.run.interrupt(&mut self.process, cx);
    }

    fn time_out(&mut self, cx: &mut Cx) {
        self.run.time_out(&self.process, cx);
    }

    fn exited(&mut self, exit: &Exit, cx: &mut Cx) {
        self.run.exited(self.process.called(), exit, cx);
    }

    fn end_run(&mut self) {
        let run = std::mem::replace(&mut self.run, Run::new(&self.process));
        for agent in run.into_agents() {
            self.process.former_agents.insert(&agent);
        }
    }
}

impl Process {
    /// Returns the name of the program for error messages: its command until it identifies itself
    /// as Claude Code.
    fn called(&self) -> &str {
        if self.linked.is_some() { "Claude Code" } else { &self.command }
    }

    /// Updates the state of the process from a line of Claude Code, in a run and between runs.
    fn note(&mut self, line: Option<&Line>) {
        match line {
            Some(Line::Lifecycle(_)) => self.reports_lines = true,
            Some(Line::Background(background)) => {
                self.tasks.clone_from(&background.tasks);
                self.lists_tasks = true;
            }
            Some(Line::TaskStarted(it)) if !self.lists_tasks => {
                self.task_ended(it.task_id.as_ref());
                self.tasks.extend(it.task().filter(Task::is_agent));
                let too_many = self.tasks.len().saturating_sub(UNLISTED);
                self.tasks.drain(..too_many);
            }
            Some(Line::User(said)) if !self.lists_tasks => {
                let has_ended = |it: &Task| it.tool_use_id.as_ref().is_some_and(|it| said.ends(it));
                self.tasks.retain(|task| !has_ended(task));
            }
            Some(Line::TaskEnded(it)) => self.task_ended(it.task_id.as_ref()),
            Some(Line::TaskUpdated(it)) => self.task_ended(it.ended()),
            _ => (),
        }
    }

    fn task_ended(&mut self, id: Option<&String>) {
        if !self.lists_tasks {
            self.tasks.retain(|task| Some(&task.task_id) != id);
        }
    }

    /// Forgets the background agents when a run begins, if Claude Code does not list them: no agent
    /// outlives the previous run.
    fn run_begins(&mut self) {
        if !self.lists_tasks {
            self.tasks.clear();
        }
    }

    /// Forgets the background tasks of tool calls that are not in `launched`: they ended with the
    /// turn. Does nothing if Claude Code lists its tasks.
    fn turn_ended(&mut self, launched: &[String]) {
        let is_over = |it: &Task| it.tool_use_id.as_ref().is_some_and(|it| !launched.contains(it));
        if !self.lists_tasks {
            self.tasks.retain(|it| !is_over(it));
        }
    }

    /// Returns whether a background agent is active, after whose end Claude Code continues by
    /// itself. Commands do not count, as they may run forever.
    fn has_agents(&self) -> bool {
        self.tasks.iter().any(Task::is_agent)
    }
}

fn begins_turn(line: &Line) -> bool {
    match line {
        Line::Init(_) => true,
        Line::Stream(it) => {
            it.parent_tool_use_id.is_none() && matches!(it.event, ApiEvent::MessageStart { .. })
        }
        _ => false,
    }
}

/// Returns the line that refuses a request that Claude Code sends between runs, because it waits
/// for an answer.
fn reject_orphan_request(request: wire::Request) -> String {
    let id = request.request_id.clone();
    match request.about_call() {
        Some(_) => stdin::deny(&id, "Nobody can decide about this call now. Continue without it."),
        None => stdin::refuse(&id),
    }
}
