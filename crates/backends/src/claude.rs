//! Claude Code, as a process that is told and asked in lines of JSON (`stream-json` both ways).
//!
//! What a reader needs to know of its protocol:
//!
//! - A `user` line begins a turn; one that comes while a turn runs is read at the next opportunity
//!   within it, or begins the next. `command_lifecycle` says what became of a line, by its uuid.
//! - A turn begins with `system/init`, which names the conversation, and ends with `result`. Agents
//!   in the background outlive it, and when one has finished the program begins a turn by itself: the
//!   run goes on until a `result` comes and no agent is at work.
//! - What the model says comes as its service sent it (`stream_event`), and each block once more,
//!   finished, as `assistant`. What came of a call is a `user` line. Lines of a sub-agent name the
//!   call that it works for.
//! - Each side can ask the other (`control_request`, answered by `control_response`). The program
//!   asks whether a call may run, and waits; we ask it to stop.
//!
//! What is said to be the user's but was not typed by one (the program tells the model to go on, or
//! that it was stopped) is no message of anybody's here.

mod calls;
mod failure;
mod notices;
mod outcome;
mod pieces;
mod questions;
mod run;
mod settings;
mod speaker;
mod stdin;
mod unread;
mod wire;
mod words;

use std::sync::Arc;

use transcript::{ErrorCode, ErrorInfo, Millis, ResponseId, RunStatus};

use self::run::Run;
pub use self::settings::{Settings, program};
use self::wire::{ApiEvent, Line, Task};
use crate::program::Recent;
use crate::surrogates::Surrogates;
use crate::{Backend, Effect, Ending, Input, Launch};

/// Whose words they are that nobody could read.
const SOURCE: &str = "claude";
/// Who has ended says little after it, and soon.
const FORMER_AGENTS: usize = 32;
/// How many agents may be at work in a program that does not list them.
const UNLISTED: usize = 32;

#[derive(Debug)]
pub struct Claude {
    process: Process,
    run: Option<Run>,
    /// For a turn that the program begins by itself.
    spare: Option<ResponseId>,
    /// The process has ended, or is to be ended: nothing it says counts any more.
    is_gone: bool,
    surrogates: Surrogates,
}

/// What is true of the process, from one run to the next.
#[derive(Debug)]
struct Process {
    command: String,
    offers_tools: bool,
    /// The conversation that the log knows of.
    linked: Option<String>,
    /// It says what becomes of our lines.
    reports_lines: bool,
    /// What goes on in the background.
    tasks: Vec<Task>,
    /// It says so itself. Of others, only what they tell of each agent is known.
    lists_tasks: bool,
    requests_made: u32,
    /// The calls of earlier runs in which somebody spoke, by the program's ids.
    former_agents: Recent,
}

impl Claude {
    pub fn new(settings: Arc<Settings>, launch: &Launch) -> Self {
        let process = Process {
            command: settings.command.first().cloned().unwrap_or_default(),
            offers_tools: launch.tools.is_some(),
            linked: None,
            reports_lines: false,
            tasks: Vec::new(),
            lists_tasks: false,
            requests_made: 0,
            former_agents: Recent::keeping(FORMER_AGENTS),
        };
        let surrogates = Surrogates::default();
        Self { process, run: None, spare: None, is_gone: false, surrogates }
    }
}

impl Backend for Claude {
    fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        match input {
            Input::Spare(id) => {
                self.spare = Some(id);
                Vec::new()
            }
            Input::Start { .. } if self.is_gone => vec![ended_before()],
            Input::Start { response_id, history } => {
                self.process.run_begins();
                let run = self.run.insert(Run::new(response_id, &self.process));
                run.set_now(now);
                run.start(&history);
                self.carry_out()
            }
            Input::Line(_) if self.is_gone => Vec::new(),
            Input::Line(raw) => self.hear(now, &raw),
            input => self.tell_run(now, input),
        }
    }
}

impl Claude {
    fn hear(&mut self, now: Millis, raw: &str) -> Vec<Effect> {
        let line = wire::read(&self.surrogates.mend(raw));
        self.process.note(line.as_ref());
        let begins = self.run.is_none() && line.as_ref().is_some_and(begins_turn);
        if begins && let Some(id) = self.spare.take() {
            self.process.run_begins();
            let run = self.run.insert(Run::new(id, &self.process));
            run.begin_by_itself();
        }
        if let Some(run) = &mut self.run {
            run.set_now(now);
        }
        match (&mut self.run, line) {
            (Some(run), Some(line)) => run.hear(line, raw, &mut self.process),
            (Some(run), None) => run.hear_nonsense(raw),
            (None, Some(Line::Request(request))) => return vec![answer_for_nobody(request)],
            (None, _) => (),
        }
        self.carry_out()
    }

    fn tell_run(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        self.is_gone |= matches!(input, Input::Exited(_));
        let Some(run) = &mut self.run else {
            return match input {
                Input::Steer { message_id, .. } => vec![Effect::CannotSteer(message_id)],
                _ => Vec::new(),
            };
        };
        run.set_now(now);
        match input {
            Input::Decided { call_id, verdict } => run.decided(&call_id, verdict),
            Input::Steer { message_id, message } => run.steer(message_id, &message),
            Input::Interrupt => run.interrupt(&mut self.process),
            Input::Wake => run.wake(&mut self.process),
            Input::Exited(exit) => run.exited(self.process.called(), &exit),
            // What only the server or a model service says; lines and starts do not get here.
            Input::Start { .. }
            | Input::Resume { .. }
            | Input::ToolResult { .. }
            | Input::ToolWaits(_)
            | Input::History(_)
            | Input::Tools(_)
            | Input::Head { .. }
            | Input::Bytes(_)
            | Input::Ended(_)
            | Input::Line(_)
            | Input::Spare(_) => (),
        }
        self.carry_out()
    }

    fn carry_out(&mut self) -> Vec<Effect> {
        let Some(run) = &mut self.run else { return Vec::new() };
        let effects = run.take_effects();
        if let Some(Effect::End(_)) = effects.last() {
            for agent in run.take_agents() {
                self.process.former_agents.insert(&agent);
            }
            self.run = None;
            self.is_gone |= effects.contains(&Effect::Quit);
        }
        effects
    }
}

impl Process {
    /// What people know it as. Where it never spoke, it may be something else that was started.
    fn called(&self) -> &str {
        if self.linked.is_some() { "Claude Code" } else { &self.command }
    }

    /// Takes in what a line says of the process, in a run and between runs.
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

    /// Agents that were not listed, and of which nothing says that they are still at work: a run ends when
    /// all have ended, or when they were stopped.
    fn run_begins(&mut self) {
        if !self.lists_tasks {
            self.tasks.clear();
        }
    }

    /// A turn waits for all that it calls, but for what was launched.
    fn turn_ended(&mut self, launched: &[String]) {
        let is_over = |it: &Task| it.tool_use_id.as_ref().is_some_and(|it| !launched.contains(it));
        if !self.lists_tasks {
            self.tasks.retain(|it| !is_over(it));
        }
    }

    /// The program goes on by itself when they have finished; a command may run for ever.
    fn has_agents(&self) -> bool {
        self.tasks.iter().any(Task::is_agent)
    }

    fn next_request(&mut self) -> String {
        self.requests_made = self.requests_made.wrapping_add(1);
        format!("callboard-{}", self.requests_made)
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

/// The program waits for an answer also when there is no run in which anybody could be asked.
fn answer_for_nobody(request: wire::Request) -> Effect {
    let id = request.request_id.clone();
    Effect::Write(match request.about_call() {
        Some(_) => stdin::deny(&id, "Nobody is there to decide about this call. Do without it."),
        None => stdin::refuse(&id),
    })
}

fn ended_before() -> Effect {
    let why = "Claude Code had ended before the run began. Send the message again.";
    let error = Some(ErrorInfo::new(ErrorCode::AgentExited, why));
    Effect::End(Ending { status: RunStatus::Failed, error, usage: None, cost: None })
}
