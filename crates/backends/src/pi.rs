//! Pi, a command-line agent: `pi --mode rpc`, of the old package and of the new one.
//!
//! Commands go in and events come out, one JSON object a line. A *prompt* starts Pi's agent: it calls the
//! model, runs the tools that the model wants, and calls it again (`agent_start`, then for each call of the
//! model its message and its tools' executions, then `agent_end`). Properties of the protocol:
//!
//! - Text comes as deltas and then whole. A tool's output comes cumulatively, a tool's result three times.
//! - `agent_end` need not be the end: Pi may retry, or compact the conversation first. The new package sends
//!   `agent_settled` when it is done. The old one does not, so it is asked (`get_state`), as is any package
//!   that stays silent: Pi announces a continuation before it answers.
//! - Pi has no approvals. Our extension (`extension.ts`) asks for them, through a dialog that Pi passes on to
//!   us. While a dialog is open, `abort` does nothing: the dialog has to be cancelled too.
//! - The extension announces itself before Pi reads its first command. A Pi that answers a command without
//!   that would run every tool without asking: it gets no prompt, and is ended.
//! - A conversation is on disk, and can be resumed, once the model has answered in it.
//!
//! The two packages are distinguished by their messages, not by their version.

mod author;
mod bash;
mod command;
pub(crate) mod failure;
mod questions;
mod run;
mod settings;
mod tools;
mod wire;

use std::sync::Arc;

use serde_json::Value;
use transcript::{CallId, Event, MessageId, Millis};

use self::command::Prompt;
use self::questions::Request;
use self::run::Run;
pub use self::settings::{EXTENSION, EXTENSION_FILE, Settings, VERSION, program, version_in};
use self::wire::{Line, Response};
use crate::emitter::Emitter;
use crate::program::{self, Context, ProgramAgent};
use crate::{Exit, Launch, ProgramBackend, ProgramEffect, ProgramInput, Verdict};

/// Backend of a running Pi process.
#[derive(Debug)]
pub struct Pi(ProgramAgent<Adapter>);

type Cx = Context<Request>;

#[derive(Debug)]
struct Adapter {
    settings: Arc<Settings>,
    conversation: Conversation,
    guard: Guard,
    run: Run,
}

/// The conversation of the Pi process.
#[derive(Debug)]
struct Conversation {
    workspace: String,
    version: Option<String>,
    /// Id of the conversation in the log: the one to resume, or the last in an `agent_linked`
    /// event. `None` before the first.
    known: Option<String>,
    id: Option<String>,
}

/// State of Callboard's Pi extension, which asks before Pi runs a tool.
#[derive(Debug, PartialEq, Eq)]
enum Guard {
    /// Pi has answered nothing, and the extension has not announced itself.
    Awaited,
    /// The extension has announced itself, or the agent needs no approvals.
    Settled,
    Missing,
}

impl Pi {
    /// Creates the backend for a Pi process that [`program`] described, and queues the request for
    /// its state.
    pub fn new(settings: Arc<Settings>, launch: &Launch) -> Self {
        let (workspace, version) = (launch.workspace.clone(), settings.version.clone());
        let known = launch.resume.as_ref().map(ToString::to_string);
        let guard = if settings.asks() { Guard::Awaited } else { Guard::Settled };
        let conversation = Conversation { workspace, version, known, id: None };
        let run = Run::new(Arc::clone(&settings));
        let mut agent = ProgramAgent::new(Adapter { settings, conversation, guard, run });
        command::send("state", command::get_state, &mut agent.cx.out);
        Self(agent)
    }
}

impl ProgramBackend for Pi {
    fn on(&mut self, now: Millis, input: ProgramInput) -> Vec<ProgramEffect> {
        self.0.on(now, input)
    }
}

impl Adapter {
    /// Sends the held prompt once the extension has announced itself, or ends the run if the
    /// extension is missing. Does nothing before that.
    fn apply_guard(&mut self, cx: &mut Cx) {
        match self.guard {
            _ if !cx.is_running() => (),
            Guard::Awaited => (),
            Guard::Settled => self.run.prompt(cx),
            Guard::Missing => self.run.refuse(cx),
        }
    }
}

impl program::Adapter for Adapter {
    const SOURCE: &'static str = "pi";
    type Line = Option<Line>;
    type Request = Request;

    fn read(json: &str) -> Option<Line> {
        Line::read(json)
    }

    fn note(&mut self, line: &Option<Line>) {
        match line {
            Some(Line::Dialog(dialog)) if dialog.is_announcement() => self.guard = Guard::Settled,
            Some(Line::Response(_) | Line::AgentStart) if self.guard == Guard::Awaited => {
                self.guard = Guard::Missing;
            }
            _ => (),
        }
        if let Some(Line::Response(Response { data: Some(data), .. })) = line {
            let id = data.session_id.as_ref().filter(|it| !it.is_empty());
            self.conversation.id = id.or(self.conversation.id.as_ref()).cloned();
        }
    }

    fn begins_run(&self, line: &Option<Line>) -> bool {
        matches!(line, Some(Line::AgentStart))
    }

    fn start(&mut self, history: &[Value], cx: &mut Cx) {
        self.run.hold(Prompt::newest(history));
        self.apply_guard(cx);
    }

    fn handle_line(&mut self, line: Option<Line>, raw: &str, cx: &mut Cx) {
        if matches!(&line, Some(Line::MessageEnd(message)) if message.role == "assistant") {
            self.conversation.link(&mut cx.out);
        }
        match line {
            // Pi could not read the command, and so does not know what it answers.
            None | Some(Line::Response(Response { id: None, success: false, .. })) => {
                cx.out.unrecognized(raw);
            }
            Some(line) if cx.is_running() => self.run.handle_line(line, cx),
            // Without a run no person can be asked, and Pi would wait forever.
            Some(Line::Dialog(dialog)) => dialog.decline(&mut cx.out),
            Some(_) => (),
        }
        self.apply_guard(cx);
    }

    fn steer(&mut self, message_id: MessageId, message: &Value, cx: &mut Cx) {
        self.run.steer(message_id, message, cx);
    }

    fn decide(&mut self, call_id: &CallId, request: Request, verdict: Verdict, cx: &mut Cx) {
        self.run.decide(call_id, &request, &verdict, cx);
    }

    fn interrupt(&mut self, cx: &mut Cx) {
        self.run.interrupt(cx);
    }

    fn time_out(&mut self, cx: &mut Cx) {
        self.run.time_out(cx);
    }

    fn exited(&mut self, exit: &Exit, cx: &mut Cx) {
        self.run.exited(exit, self.conversation.known.is_some(), cx);
    }

    fn end_run(&mut self) {
        self.run = Run::new(Arc::clone(&self.settings));
    }
}

impl Conversation {
    fn link(&mut self, out: &mut Emitter) {
        if self.id == self.known || !out.is_running() {
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
