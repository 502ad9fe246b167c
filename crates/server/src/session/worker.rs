//! An agent at work: its state machine, and its program where it is one.
//!
//! One without a program works for one run. A program stays between runs, until it has been idle for
//! a while; then the next run starts it anew and it goes on with its own conversation.

use std::time::Duration;

use backends::{Backend, Effect, Input};
use tokio::time::{Instant, sleep_until};
use transcript::{Millis, ResponseId};

use super::lines::Line;
use super::process::{Heard, Leaving, Process};
use crate::clock;
use crate::passes::Pass;

pub(super) struct Worker {
    /// Whose it is.
    pub(super) agent: String,
    backend: Box<dyn Backend>,
    pub(super) program: Option<Program>,
    wake_at: Option<Instant>,
}

/// What goes with a process.
pub(super) struct Program {
    pub(super) process: Process,
    /// By which it may call our tools.
    _pass: Option<Pass>,
    /// For the next run that the agent begins by itself. None until it has been told.
    spare: Option<ResponseId>,
    /// It has worked before, and has said nothing yet in this run.
    is_silent: bool,
    /// It has been told to end.
    is_ending: bool,
    /// It has a conversation of its own: resumed, or begun by this process.
    remembers: bool,
    /// How long it may be idle, and since when it is.
    patience: Duration,
    idle_since: Option<Instant>,
}

/// Something that the agent itself does.
pub(super) enum Deed {
    Line(Line),
    Exited(Option<i32>),
    Wake,
    /// It has had nothing to do for long enough.
    Idle,
}

impl Worker {
    pub(super) fn for_one_run(agent: String, backend: Box<dyn Backend>) -> Self {
        Self { agent, backend, program: None, wake_at: None }
    }

    pub(super) fn with_process(
        agent: String,
        backend: Box<dyn Backend>,
        process: Process,
        patience: Duration,
        pass: Option<Pass>,
        is_resumed: bool,
    ) -> Self {
        let program = Program {
            process,
            _pass: pass,
            spare: None,
            is_silent: false,
            is_ending: false,
            remembers: is_resumed,
            patience,
            idle_since: None,
        };
        Self { agent, backend, program: Some(program), wake_at: None }
    }

    /// Hands the agent one input; the effects are to be carried out in order.
    pub(super) fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        self.backend.on(now, input)
    }

    pub(super) fn wake_at(&mut self, at: Millis) {
        self.wake_at = Some(instant(at));
    }

    /// The spare id that the agent has yet to be told.
    pub(super) fn new_spare(&mut self) -> Option<ResponseId> {
        let program = self.program.as_mut().filter(|it| it.spare.is_none())?;
        program.spare = Some(clock::new_response_id());
        program.spare.clone()
    }

    pub(super) fn take_spare(&mut self) -> Option<ResponseId> {
        self.program.as_mut()?.spare.take()
    }

    pub(super) fn write(&self, line: String) {
        if let Some(program) = &self.program {
            program.process.write(line);
        }
    }

    pub(super) fn close_input(&mut self) {
        if let Some(program) = &mut self.program {
            program.process.close_input();
        }
    }

    /// The program is of no more use.
    pub(super) fn quit(&mut self) {
        if let Some(program) = &mut self.program {
            program.is_ending = true;
            program.process.stop();
        }
    }

    pub(super) fn is_of_use(&self) -> bool {
        self.program.as_ref().is_some_and(|it| !it.is_ending)
    }

    /// It had ended before the run began, and nobody had noticed.
    pub(super) fn is_stale(&self) -> bool {
        self.program.as_ref().is_some_and(|it| it.is_silent && !it.is_ending)
    }

    /// Marks the beginning of a run.
    pub(super) fn mark_busy(&mut self) {
        if let Some(program) = &mut self.program {
            program.is_silent = program.idle_since.take().is_some();
            program.process.begin_run();
        }
    }

    /// The handle is done when nothing is left of the commands that the program has begun in this run.
    pub(super) fn end_commands(&self) -> Option<Leaving> {
        self.program.as_ref().map(|it| it.process.end_commands())
    }

    /// What its program has written to its stderr in this run, once. `lives`: it is still there.
    pub(super) fn take_last_words(&mut self, lives: bool) -> String {
        let program = self.program.as_mut();
        program.map(|it| it.process.take_last_words(lives)).unwrap_or_default()
    }

    /// Marks that the program has opened its conversation, and so remembers what is said from now on.
    pub(super) fn mark_started(&mut self) {
        if let Some(program) = &mut self.program {
            program.process.mark_started();
            program.remembers = true;
        }
    }

    /// Whether its program knows what was said before.
    pub(super) fn remembers(&self) -> bool {
        self.program.as_ref().is_some_and(|it| it.remembers)
    }

    /// Marks that the program has written a line in this run.
    pub(super) fn mark_spoken(&mut self) {
        if let Some(program) = &mut self.program {
            program.is_silent = false;
        }
    }

    /// Marks the end of a run, from which on the idle time counts.
    pub(super) fn mark_idle(&mut self) {
        if let Some(program) = &mut self.program {
            program.idle_since.get_or_insert_with(Instant::now);
        }
    }

    /// Ends the program. The handle is done when nothing of it is left.
    pub(super) fn end(self) -> Option<Leaving> {
        self.program.map(|it| it.process.end())
    }

    pub(super) async fn next(&mut self) -> Deed {
        let idle_until = self.program.as_ref().and_then(Program::idle_until);
        let wake_at = self.wake_at;
        tokio::select! {
            // The alarm first: it must be heard in a flood of lines too.
            biased;
            () = sleep_if(wake_at) => {
                self.wake_at = None;
                Deed::Wake
            }
            heard = next_of(&mut self.program) => heard.into(),
            () = sleep_if(idle_until) => Deed::Idle,
        }
    }

    /// What has come in meanwhile, if anything has.
    pub(super) fn try_next(&mut self) -> Option<Deed> {
        self.program.as_mut()?.process.try_next().map(Deed::from)
    }
}

impl Program {
    fn idle_until(&self) -> Option<Instant> {
        self.idle_since.map(|it| it + self.patience)
    }
}

impl From<Heard> for Deed {
    fn from(heard: Heard) -> Self {
        match heard {
            Heard::Line(line) => Self::Line(line),
            Heard::Exited(code) => Self::Exited(code),
        }
    }
}

/// Nothing is heard of a program that is not there.
async fn next_of(program: &mut Option<Program>) -> Heard {
    match program {
        Some(program) => program.process.next().await,
        None => std::future::pending().await,
    }
}

pub(super) fn instant(at: Millis) -> Instant {
    Instant::now() + Duration::from_millis(at.since(clock::now()))
}

/// For ever, if there is no such moment.
pub(super) async fn sleep_if(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
