//! The phase of a session: what may happen next depends on it.

use transcript::RunMessage;

use crate::run::Run;
use crate::{Answer, ReplyId};

#[derive(Debug)]
pub(crate) enum Phase {
    /// The session has no open run.
    Idle,
    /// A run is open, and the agent does not know of it yet.
    Starting {
        run: Run,
        /// Message of the run so far, if the run continues one that an earlier server left open.
        /// `None` for a new run.
        resumes: Option<Box<RunMessage>>,
    },
    /// The agent works on the open run.
    Running(Run),
    /// The agent was asked to stop the open run.
    Stopping {
        run: Run,
        /// Callers that wait for the end of the run, with the replies that they will get.
        waiting: Vec<(ReplyId, Answer)>,
    },
    /// The session's work has ended for good: it was deleted, the server stops, or the log cannot
    /// be written.
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

    /// Returns whether the open run was left open by an earlier server, and the agent does not know
    /// of it yet.
    pub(crate) fn is_resuming(&self) -> bool {
        matches!(self, Self::Starting { resumes: Some(_), .. })
    }

    /// Marks a starting run as known to the agent.
    pub(crate) fn mark_running(&mut self) {
        *self = match std::mem::replace(self, Self::Idle) {
            Self::Starting { run, .. } => Self::Running(run),
            other => other,
        };
    }

    /// Marks a running run as unknown to the agent, because a new agent will work on it.
    pub(crate) fn mark_starting(&mut self) {
        *self = match std::mem::replace(self, Self::Idle) {
            Self::Running(run) => Self::Starting { run, resumes: None },
            other => other,
        };
    }

    pub(crate) fn is_stopping(&self) -> bool {
        matches!(self, Self::Stopping { .. })
    }

    /// Marks the open run as being stopped, and adds a caller that waits for its end.
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

    /// Ends the open run, and returns the callers that waited for the end.
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
