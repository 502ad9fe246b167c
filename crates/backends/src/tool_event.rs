//! Reports of a running tool.

use serde_json::Value;
use transcript::{ErrorInfo, Event, OutputStream};

/// A report of a running call. `C` confirms that an event is in the log.
#[derive(Debug)]
pub enum ToolEvent<C> {
    /// New output.
    Output {
        /// The stream that was written to.
        stream: OutputStream,
        /// Bytes of the stream before the new text.
        offset: u64,
        /// The new text.
        delta: String,
    },
    /// The call failed in a way that may pass, and is tried again.
    Retry {
        /// Number of the next attempt, from 2.
        attempt: u32,
        /// Maximum number of attempts.
        max_attempts: u32,
        /// Why the attempt before it failed.
        error: ErrorInfo,
    },
    /// An event for the log of the call's run.
    Emit {
        /// The event to append.
        event: Box<Event>,
        /// Confirmation for the tool, which waits until the event is in the log.
        written: C,
    },
    /// The call has ended.
    Done(ToolOutcome),
}

impl<C> ToolEvent<C> {
    /// Replaces the confirmation.
    pub fn map<D>(self, written_as: impl FnOnce(C) -> D) -> ToolEvent<D> {
        match self {
            Self::Output { stream, offset, delta } => ToolEvent::Output { stream, offset, delta },
            Self::Retry { attempt, max_attempts, error } => {
                ToolEvent::Retry { attempt, max_attempts, error }
            }
            Self::Emit { event, written } => {
                ToolEvent::Emit { event, written: written_as(written) }
            }
            Self::Done(outcome) => ToolEvent::Done(outcome),
        }
    }
}

/// Result of a tool call. `error` is the reason when `ok` is false.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// Whether the call succeeded.
    pub ok: bool,
    /// Result for the model.
    pub result: Value,
    /// Reason of a failure.
    pub error: Option<ErrorInfo>,
}
