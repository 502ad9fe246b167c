//! The agent of a session: its state machine, and its program where it is one.
//!
//! A model agent lives for one run. A program stays between runs until it has been idle for a while; the next
//! run starts it again and it resumes its own conversation.

use backends::{Backend, Effect, Input};
use transcript::{Millis, ResponseId};

use crate::{Launched, LaunchedProgram};

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) name: String,
    backend: Box<dyn Backend>,
    pub(crate) wake_at: Option<Millis>,
    pub(crate) program: Option<Program>,
}

/// State of a program's process.
#[derive(Debug)]
pub(crate) struct Program {
    /// Id for the next run that the agent begins by itself. None until the backend has it.
    spare: Option<ResponseId>,
    /// It was idle before this run and has written nothing in it.
    is_silent: bool,
    /// It was asked to end.
    is_ending: bool,
    /// It has a conversation of its own: resumed, or begun by this process.
    remembers: bool,
    idle_limit_ms: u64,
    idle_since: Option<Millis>,
}

impl Agent {
    pub(crate) fn new(name: String, launched: Launched) -> Self {
        let program =
            launched.program.map(|LaunchedProgram { idle_limit_ms, is_resumed }| Program {
                spare: None,
                is_silent: false,
                is_ending: false,
                remembers: is_resumed,
                idle_limit_ms,
                idle_since: None,
            });
        Self { name, backend: launched.backend, wake_at: None, program }
    }

    /// Gives the backend one input and returns its effects.
    pub(crate) fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        self.backend.on(now, input)
    }

    /// Whether the agent is a program that can take further runs.
    pub(crate) fn is_reusable(&self) -> bool {
        self.program.as_ref().is_some_and(|it| !it.is_ending)
    }

    /// Whether the program ended before the run began, and nobody noticed.
    pub(crate) fn is_stale(&self) -> bool {
        self.program.as_ref().is_some_and(|it| it.is_silent && !it.is_ending)
    }

    /// Whether the program knows what was said before.
    pub(crate) fn remembers(&self) -> bool {
        self.program.as_ref().is_some_and(|it| it.remembers)
    }

    /// Whether the backend needs a spare run id.
    pub(crate) fn needs_spare(&self) -> bool {
        self.program.as_ref().is_some_and(|it| it.spare.is_none())
    }

    pub(crate) fn set_spare(&mut self, id: ResponseId) {
        if let Some(program) = &mut self.program {
            program.spare = Some(id);
        }
    }

    pub(crate) fn take_spare(&mut self) -> Option<ResponseId> {
        self.program.as_mut()?.spare.take()
    }

    /// Marks the beginning of a run.
    pub(crate) fn mark_busy(&mut self) {
        if let Some(program) = &mut self.program {
            program.is_silent = program.idle_since.take().is_some();
        }
    }

    /// Marks the end of a run, from which on the idle time counts.
    pub(crate) fn mark_idle(&mut self, now: Millis) {
        if let Some(program) = &mut self.program {
            program.idle_since.get_or_insert(now);
        }
    }

    /// Marks that the program has written a line in this run.
    pub(crate) fn mark_spoken(&mut self) {
        if let Some(program) = &mut self.program {
            program.is_silent = false;
        }
    }

    /// Marks that the program has opened its conversation.
    pub(crate) fn mark_started(&mut self) {
        if let Some(program) = &mut self.program {
            program.remembers = true;
        }
    }

    /// Marks that the program was asked to end.
    pub(crate) fn mark_ending(&mut self) {
        if let Some(program) = &mut self.program {
            program.is_ending = true;
        }
    }

    /// Returns when an idle program is to be ended.
    pub(crate) fn idle_until(&self) -> Option<Millis> {
        let program = self.program.as_ref()?;
        program.idle_since.map(|it| it.plus(program.idle_limit_ms))
    }
}
