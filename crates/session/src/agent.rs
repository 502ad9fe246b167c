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
    /// Whether the program has a conversation of its own, which it resumed or began in this
    /// process.
    pub(crate) remembers: bool,
    idle_limit_ms: u64,
    pub(crate) activity: Activity,
}

/// Activity of a program's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// The program works on a run.
    Busy,
    /// The program was given a run after it had been idle, and has written no line since. If it
    /// exits, it had probably ended before the run.
    Silent,
    /// The program has no run.
    Idle { since: Millis },
    /// The program was asked to end.
    Ending,
}

impl Agent {
    pub(crate) fn new(name: String, launched: Launched) -> Self {
        let family = match launched {
            Launched::Model(backend) => Family::Model(backend),
            Launched::Program(LaunchedProgram { backend, idle_limit_ms, is_resumed }) => {
                Family::Program(Program {
                    backend,
                    spare: None,
                    remembers: is_resumed,
                    idle_limit_ms,
                    activity: Activity::Busy,
                })
            }
        };
        Self { name, wake_at: None, family }
    }
}

impl Program {
    /// Records that a run begins, so that the program is not idle any more.
    pub(crate) fn mark_busy(&mut self) {
        if let Activity::Idle { .. } = self.activity {
            self.activity = Activity::Silent;
        }
    }

    /// Records that the program has written a line.
    pub(crate) fn mark_heard(&mut self) {
        if self.activity == Activity::Silent {
            self.activity = Activity::Busy;
        }
    }

    /// Returns the time at which the idle program is to be ended. `None` if it is not idle.
    pub(crate) fn idle_until(&self) -> Option<Millis> {
        match self.activity {
            Activity::Idle { since } => Some(since.plus(self.idle_limit_ms)),
            Activity::Busy | Activity::Silent | Activity::Ending => None,
        }
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
