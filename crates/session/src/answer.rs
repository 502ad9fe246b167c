//! Replies to commands. The machine knows a caller by a number; the driver keeps the channel.

use std::fmt;
use std::marker::PhantomData;

use backends::ToolOutcome;
use transcript::ResponseId;

use crate::{Opened, Receipt, Undone};

/// Id of a caller that waits for the reply to its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplyId(pub u64);

/// Handle to reply once to a caller that expects a `T`.
pub struct ReplyTo<T> {
    id: ReplyId,
    expects: PhantomData<fn(T)>,
}

impl<T> ReplyTo<T> {
    /// Creates the reply handle of the caller with this id.
    pub fn new(id: ReplyId) -> Self {
        Self { id, expects: PhantomData }
    }

    /// Returns the id of the caller.
    pub fn id(&self) -> ReplyId {
        self.id
    }
}

impl<T> fmt::Debug for ReplyTo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

/// Content of the reply to a command that was not refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The command was carried out, and there is nothing else to report.
    Done,
    /// Id and state of a message that was accepted or steered.
    Receipt(Receipt),
    /// Id of a run that was started.
    Run(ResponseId),
    /// Id of the run that was stopped. `None` if no run was open.
    Stopped(Option<ResponseId>),
    /// Result of opening an exchange: the sender to name in its message, or the reason for the
    /// refusal.
    Opened(Opened),
    /// Effect of an undone approval on its tool call.
    Undone(Undone),
    /// Outcome of a relayed tool call.
    Outcome(ToolOutcome),
}

/// A type of reply that callers can expect. Each one has a variant of [`Answer`].
pub trait AnswerType: Sized {
    /// Wraps the value in its variant of [`Answer`].
    fn into_answer(self) -> Answer;

    /// Extracts the value from an answer. Returns `None` if the answer is of another variant.
    fn from_answer(answer: Answer) -> Option<Self>;
}

macro_rules! answer_types {
    ($($type:ty => $variant:ident,)*) => {$(
        impl AnswerType for $type {
            fn into_answer(self) -> Answer {
                Answer::$variant(self)
            }

            fn from_answer(answer: Answer) -> Option<Self> {
                match answer {
                    Answer::$variant(value) => Some(value),
                    _ => None,
                }
            }
        }
    )*};
}

answer_types! {
    Receipt => Receipt,
    ResponseId => Run,
    Option<ResponseId> => Stopped,
    Opened => Opened,
    Undone => Undone,
    ToolOutcome => Outcome,
}

impl AnswerType for () {
    fn into_answer(self) -> Answer {
        Answer::Done
    }

    fn from_answer(answer: Answer) -> Option<Self> {
        matches!(answer, Answer::Done).then_some(())
    }
}
