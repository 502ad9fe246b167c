//! Replies to commands. The machine knows a caller by a number; the driver keeps the channel.

use std::fmt;
use std::marker::PhantomData;

use backends::ToolOutcome;
use transcript::ResponseId;

use crate::{Opened, Receipt, Undone};

/// Number of a caller that waits for a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplyId(pub u64);

/// The right to reply once to a caller that expects a `T`.
pub struct ReplyTo<T> {
    id: ReplyId,
    expects: PhantomData<fn(T)>,
}

impl<T> ReplyTo<T> {
    /// Makes the handle of a caller.
    pub fn new(id: ReplyId) -> Self {
        Self { id, expects: PhantomData }
    }

    /// Returns the caller.
    pub fn id(&self) -> ReplyId {
        self.id
    }
}

impl<T> fmt::Debug for ReplyTo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

/// Content of a reply to an accepted command.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The command was carried out.
    Done,
    /// Where a message went.
    Receipt(Receipt),
    /// A run that started.
    Run(ResponseId),
    /// The run that was stopped, if one was open.
    Stopped(Option<ResponseId>),
    /// An exchange that was opened or refused.
    Opened(Opened),
    /// Effect of an undone decision.
    Undone(Undone),
    /// Outcome of a relayed tool call.
    Outcome(ToolOutcome),
}

/// A type that callers can expect, with its variant of [`Answer`].
pub trait AnswerType: Sized {
    /// Wraps the value.
    fn into_answer(self) -> Answer;

    /// Unwraps the value. None if the answer is of another type.
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
