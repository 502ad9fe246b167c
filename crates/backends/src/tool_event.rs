//! Reports of a running tool.

use serde_json::Value;
use transcript::{ErrorInfo, Event, OutputStream};

/// An event that a running tool call reports. `C` confirms to the tool that an event is in the log.
#[derive(Debug)]
pub enum ToolEvent<C> {
    /// The tool has written output.
    Output {
        /// Stream that the tool has written to.
        stream: OutputStream,
        /// Number of bytes of the stream before the new text.
        offset: u64,
        /// New text of the stream.
        delta: String,
    },
    /// The tool call failed in a way that may pass, and is tried again.
    Retry {
        /// Number of the next attempt, from 2.
        attempt: u32,
        /// Maximum number of attempts of the tool call.
        max_attempts: u32,
        /// Error of the previous attempt.
        error: ErrorInfo,
    },
    /// The tool appends an event to the log of its run.
    Emit {
        /// Event to append to the log.
        event: Box<Event>,
        /// Confirmation for the tool, which waits until the event is in the log.
        written: C,
    },
    /// The tool call has ended with this result.
    Done(ToolOutcome),
}

impl<C> ToolEvent<C> {
    /// Converts the confirmation of an `Emit` event, and leaves other events unchanged.
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

/// Result of a tool call. `error` is the reason if `ok` is false.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// Whether the tool call succeeded.
    pub ok: bool,
    /// Result of the tool call for the model.
    pub result: Value,
    /// Error of a failed tool call. `None` if it succeeded.
    pub error: Option<ErrorInfo>,
}
