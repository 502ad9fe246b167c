//! The phase of a session: what may happen next depends on it.

use transcript::RunMessage;

use crate::run::Run;
use crate::{Answer, ReplyId};

#[derive(Debug)]
pub(crate) enum Phase {
    /// No run is open.
    Idle,
    /// A run is in the log, and the agent does not know of it yet.
    Starting {
        run: Run,
        /// The message so far, if the run continues one that an earlier server left open.
        resumes: Option<Box<RunMessage>>,
    },
    /// The agent works on the run.
    Running(Run),
    /// The agent was asked to stop.
    Stopping {
        run: Run,
        /// Callers that wait for the end, with their replies.
        waiting: Vec<(ReplyId, Answer)>,
    },
    /// The session was deleted, or the server stops.
    Closed,
}

impl Phase {
    pub(crate) fn run(&self) -> Option<&Run> {
        match self {
            Self::Starting { run, .. } | Self::Running(run) | Self::Stopping { run, .. } => {
                Some(run)
            }
            Self::Idle | Self::Closed => None,
        }
    }

    pub(crate) fn run_mut(&mut self) -> Option<&mut Run> {
        match self {
            Self::Starting { run, .. } | Self::Running(run) | Self::Stopping { run, .. } => {
                Some(run)
            }
            Self::Idle | Self::Closed => None,
        }
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(self, Self::Starting { .. })
    }

    /// Whether the run was left open by an earlier server, and its agent does not know of it yet.
    pub(crate) fn is_resuming(&self) -> bool {
        matches!(self, Self::Starting { resumes: Some(_), .. })
    }

    /// Moves a run that has started to the state in which the agent knows of it.
    pub(crate) fn mark_running(&mut self) {
        *self = match std::mem::replace(self, Self::Idle) {
            Self::Starting { run, .. } => Self::Running(run),
            other => other,
        };
    }

    /// Moves the run back to the state in which a new agent has to be told of it.
    pub(crate) fn mark_starting(&mut self) {
        *self = match std::mem::replace(self, Self::Idle) {
            Self::Running(run) => Self::Starting { run, resumes: None },
            other => other,
        };
    }

    /// Adds a caller that waits for the end of the run.
    pub(crate) fn mark_stopping(&mut self, caller: ReplyId, answer: Answer) {
        *self = match std::mem::replace(self, Self::Idle) {
            Self::Starting { run, .. } | Self::Running(run) => {
                Self::Stopping { run, waiting: vec![(caller, answer)] }
            }
            Self::Stopping { run, mut waiting } => {
                waiting.push((caller, answer));
                Self::Stopping { run, waiting }
            }
            other => other,
        };
    }

    /// Ends the run, and returns the callers that waited for that.
    pub(crate) fn mark_idle(&mut self) -> Vec<(ReplyId, Answer)> {
        match std::mem::replace(self, Self::Idle) {
            Self::Stopping { waiting, .. } => waiting,
            Self::Closed => {
                *self = Self::Closed;
                Vec::new()
            }
            Self::Idle | Self::Starting { .. } | Self::Running(_) => Vec::new(),
        }
    }
}
