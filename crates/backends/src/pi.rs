//! Pi, a command-line agent: `pi --mode rpc`, of the old package and of the new one.
//!
//! Commands go in and events come out, one JSON object a line. A *prompt* starts Pi's agent: it calls
//! the model, runs the tools that the model wants, and calls it again (`agent_start`, then for each
//! call of the model its message and its tools' executions, then `agent_end`). What to know:
//!
//! - Words come as deltas and then whole. A tool's output comes cumulatively, a tool's result three
//!   times.
//! - `agent_end` need not be the end: Pi may try again, or shorten the conversation first. The new
//!   package says `agent_settled` when it is done. The old one says nothing, so it is asked
//!   (`get_state`), as is any that lets us wait: whatever goes on by itself has been announced before the
//!   answer comes.
//! - Pi asks nobody before it runs a tool. Our extension (`extension.ts`) does, through a dialog that
//!   Pi passes on to us. While a dialog is open, `abort` does nothing: it has to be cancelled too.
//! - The extension says that it is there before Pi reads its first command. A Pi that answers one without
//!   that would ask about nothing: it gets nothing to do, and is ended.
//! - A conversation is on disk, and can be gone on with, once the model has answered in it.
//!
//! The two packages are not told apart by their version, but by what they say.

mod bash;
mod command;
pub(crate) mod failure;
mod program;
mod questions;
mod run;
mod speaker;
mod tools;
mod wire;

use std::sync::Arc;

use transcript::{Event, Millis, ResponseId};

use self::command::Prompt;
pub use self::program::{EXTENSION, EXTENSION_FILE, Settings, VERSION, program, version_in};
use self::run::Run;
use self::wire::{Line, Response};
use crate::emitter::Emitter;
use crate::surrogates::Surrogates;
use crate::{Backend, Effect, Input, Launch};

/// The `source` of lines that could not be read.
const SOURCE: &str = "pi";

#[derive(Debug)]
pub struct Pi {
    settings: Arc<Settings>,
    conversation: Conversation,
    guard: Guard,
    /// For the next run that Pi starts by itself.
    spare: Option<ResponseId>,
    run: Option<Run>,
    out: Emitter,
    surrogates: Surrogates,
}

/// Pi's own record of what was said.
#[derive(Debug)]
struct Conversation {
    workspace: String,
    version: Option<String>,
    /// What was handed over to go on with, and then what was told to be gone on with.
    known: Option<String>,
    id: Option<String>,
}

/// Whether somebody is asked before Pi runs a tool.
#[derive(Debug, PartialEq, Eq)]
enum Guard {
    /// Our extension has not been heard of yet, and Pi has answered nothing.
    Awaited,
    /// It is there, or nobody is to be asked.
    Settled,
    Missing,
}

impl Pi {
    pub fn new(settings: Arc<Settings>, launch: &Launch) -> Self {
        let (workspace, version) = (launch.workspace.clone(), settings.version.clone());
        let known = launch.resume.as_ref().map(ToString::to_string);
        let guard = if settings.asks() { Guard::Awaited } else { Guard::Settled };
        let mut out = Emitter::new(SOURCE);
        command::send("state", command::get_state, &mut out);
        Self {
            settings,
            guard,
            conversation: Conversation { workspace, version, known, id: None },
            spare: None,
            run: None,
            out,
            surrogates: Surrogates::default(),
        }
    }

    fn hear(&mut self, text: &str) {
        let line = Line::read(&self.surrogates.mend(text));
        self.note_guard(line.as_ref());
        match &line {
            Some(Line::Response(Response { data: Some(data), .. })) => {
                let id = data.session_id.as_ref().filter(|it| !it.is_empty());
                self.conversation.id = id.or(self.conversation.id.as_ref()).cloned();
            }
            Some(Line::AgentStart) if self.run.is_none() => self.begin_by_itself(),
            Some(Line::MessageEnd(message)) if message.role == "assistant" => {
                self.conversation.link(&mut self.out);
            }
            _ => (),
        }
        match (&mut self.run, line) {
            // It could not read what we wrote, and so does not know to what it answers.
            (Some(_), Some(Line::Response(Response { id: None, success: false, .. }))) => {
                self.out.unrecognized(text.to_owned());
            }
            (Some(run), Some(line)) => run.hear(line, &mut self.out),
            (Some(_), None) => self.out.unrecognized(text.to_owned()),
            // Nobody is there to answer; who asks would wait for ever.
            (None, Some(Line::Dialog(dialog))) => dialog.decline(&mut self.out),
            (None, _) => (),
        }
        self.tell_guard();
    }

    fn note_guard(&mut self, line: Option<&Line>) {
        match line {
            Some(Line::Dialog(dialog)) if dialog.is_announcement() => self.guard = Guard::Settled,
            Some(Line::Response(_) | Line::AgentStart) if self.guard == Guard::Awaited => {
                self.guard = Guard::Missing;
            }
            _ => (),
        }
    }

    /// The run has its prompt as soon as the extension is there, and its end if it is not.
    fn tell_guard(&mut self) {
        let is_over = matches!(self.out.last(), Some(Effect::End(_)));
        let Some(run) = self.run.as_mut().filter(|_| !is_over) else { return };
        match self.guard {
            Guard::Awaited => (),
            Guard::Settled => run.prompt(&mut self.out),
            Guard::Missing => run.refuse(&mut self.out),
        }
    }

    fn begin_by_itself(&mut self) {
        if let Some(id) = self.spare.take() {
            self.out.push(Effect::Begin);
            self.out.begin_run(id);
            self.run = Some(Run::by_itself(Arc::clone(&self.settings)));
        }
    }
}

impl Backend for Pi {
    fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        self.out.set_now(now);
        match (input, &mut self.run) {
            (Input::Start { response_id, history }, _) => {
                let prompt = Prompt::newest(&history);
                let settings = Arc::clone(&self.settings);
                self.out.begin_run(response_id);
                self.run = Some(Run::prompted(settings, prompt));
                self.tell_guard();
            }
            (Input::Spare(id), _) => self.spare = Some(id),
            (Input::Line(line), _) => self.hear(&line),
            (Input::Steer { message_id, message }, Some(run)) => {
                run.steer(message_id, &message, &mut self.out);
            }
            (Input::Steer { message_id, .. }, None) => {
                self.out.push(Effect::CannotSteer(message_id));
            }
            (Input::Decided { call_id, verdict }, Some(run)) => {
                run.decided(&call_id, &verdict, &mut self.out);
            }
            (Input::Interrupt, Some(run)) => run.interrupt(&mut self.out),
            (Input::Wake, Some(run)) => run.wake(&mut self.out),
            (Input::Exited(exit), Some(run)) => {
                run.exited(&exit, self.conversation.known.is_some(), &mut self.out);
            }
            (Input::Decided { .. } | Input::Interrupt | Input::Wake | Input::Exited(_), None) => (),
            // What only models behind an API get.
            (
                Input::Resume { .. }
                | Input::ToolResult { .. }
                | Input::ToolWaits(_)
                | Input::History(_)
                | Input::Tools(_)
                | Input::Head { .. }
                | Input::Bytes(_)
                | Input::Ended(_),
                _,
            ) => (),
        }
        let effects = self.out.take_effects();
        if let Some(Effect::End(_)) = effects.last() {
            self.run = None;
        }
        effects
    }
}

impl Conversation {
    fn link(&mut self, out: &mut Emitter) {
        if self.id == self.known {
            return;
        }
        self.known.clone_from(&self.id);
        if let Some(id) = &self.id {
            out.emit(Event::AgentLinked {
                cli_session_id: id.clone(),
                cwd: Some(self.workspace.clone()),
                version: self.version.clone(),
            });
        }
    }
}
