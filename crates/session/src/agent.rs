//! The agent of a session: its state machine, and its program where it is one.
//!
//! A model agent lives for one run. A program stays between runs until it has been idle for a while; the next
//! run starts it again and it resumes its own conversation.

use backends::{ModelBackend, ProgramBackend};
use transcript::{Millis, ResponseId};

use crate::{Launched, LaunchedProgram, Session};

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) name: String,
    pub(crate) wake_at: Option<Millis>,
    pub(crate) family: Family,
}

/// State machine of an agent: a model agent or a program agent.
#[derive(Debug)]
pub(crate) enum Family {
    Model(Box<dyn ModelBackend>),
    Program(Program),
}

/// State machine of a program agent, and state of its process.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) backend: Box<dyn ProgramBackend>,
    /// Reserved id of the next run that the program begins by itself. `None` until the backend has
    /// got a new one.
    pub(crate) spare: Option<ResponseId>,
    /// Whether the program was idle before this run and has written no line during it.
    pub(crate) is_silent: bool,
    /// Whether the program was asked to end.
    pub(crate) is_ending: bool,
    /// Whether the program has a conversation of its own, which it resumed or began in this
    /// process.
    pub(crate) remembers: bool,
    idle_limit_ms: u64,
    idle_since: Option<Millis>,
}

impl Agent {
    pub(crate) fn new(name: String, launched: Launched) -> Self {
        let family = match launched {
            Launched::Model(backend) => Family::Model(backend),
            Launched::Program(LaunchedProgram { backend, idle_limit_ms, is_resumed }) => {
                Family::Program(Program {
                    backend,
                    spare: None,
                    is_silent: false,
                    is_ending: false,
                    remembers: is_resumed,
                    idle_limit_ms,
                    idle_since: None,
                })
            }
        };
        Self { name, wake_at: None, family }
    }
}

impl Program {
    /// Returns whether the program was idle before this run and has written nothing since. If such
    /// a program exits, it had probably ended before the run.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_silent && !self.is_ending
    }

    /// Records that a run begins, so that the program is not idle any more.
    pub(crate) fn mark_busy(&mut self) {
        self.is_silent = self.idle_since.take().is_some();
    }

    /// Records that the run has ended, and starts the program's idle time.
    pub(crate) fn mark_idle(&mut self, now: Millis) {
        self.idle_since.get_or_insert(now);
    }

    /// Returns the time at which the idle program is to be ended. `None` while it works on a run.
    pub(crate) fn idle_until(&self) -> Option<Millis> {
        self.idle_since.map(|it| it.plus(self.idle_limit_ms))
    }
}

impl Session {
    /// Returns the backend of a model agent. `None` if there is no agent or it is a program.
    pub(crate) fn model_mut(&mut self) -> Option<&mut Box<dyn ModelBackend>> {
        match &mut self.agent.as_mut()?.family {
            Family::Model(backend) => Some(backend),
            Family::Program(_) => None,
        }
    }

    pub(crate) fn program(&self) -> Option<&Program> {
        match &self.agent.as_ref()?.family {
            Family::Program(program) => Some(program),
            Family::Model(_) => None,
        }
    }

    pub(crate) fn program_mut(&mut self) -> Option<&mut Program> {
        match &mut self.agent.as_mut()?.family {
            Family::Program(program) => Some(program),
            Family::Model(_) => None,
        }
    }
}
