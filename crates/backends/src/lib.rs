//! Backends: state machines without I/O that interpret the agents.
//!
//! A backend gets inputs and returns effects. It reads no clock, draws no random number and cannot fail: a
//! failure ends the run, which is an effect too. There are two families: a [`ModelBackend`] interprets the
//! responses of a model and lives for one run, a [`ProgramBackend`] interprets the output of a program and
//! lives as long as its process. Each has its own inputs and effects; those about the run are shared
//! ([`RunInput`], [`RunEffect`]).
//!
//! # The contract with the driver
//!
//! - One input at a time. The driver carries out all effects of an answer, in their order, before
//!   it gives the next input.
//! - `now` is the only clock.
//! - The driver writes `run_start`, `run_finish` and the approvals, and for the calls that it runs the events
//!   named at [`ModelEffect::RunTool`]. The backend emits everything else.
//! - A run may end while a step, a part or a call is open. The driver closes what is open.
//! - Ids of parts and calls are `{responseId}.{n}`, counted by the backend.

#![warn(missing_docs)]

pub mod claude;
pub mod codex;
mod demo;
mod emitter;
mod ending;
pub mod import;
mod model_backend;
pub mod openai;
pub mod pi;
mod program;
mod program_backend;
mod program_kind;
mod resume_id;
mod steering;
mod surrogates;
mod tool_event;

use serde_json::Value;
pub use transcript::arguments_summary;
use transcript::{Event, MessageId, Millis, ResponseId};

pub use crate::claude::Claude;
pub use crate::demo::{Demo, Pace};
pub use crate::ending::Ending;
pub use crate::model_backend::{
    HowLost, Lost, ModelBackend, ModelEffect, ModelInput, ReadyCall, Request, ResponsePart,
};
pub use crate::openai::OpenAi;
pub use crate::pi::Pi;
pub use crate::program_backend::{
    Exit, Launch, Program, ProgramBackend, ProgramEffect, ProgramInput, ToolServer, Verdict,
};
pub use crate::program_kind::ProgramKind;
pub use crate::resume_id::ResumeId;
pub use crate::surrogates::replace_lone_surrogates;
pub use crate::tool_event::{ToolEvent, ToolOutcome};

/// An input about the run that a backend of either family gets from the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum RunInput {
    /// Begins a run. `history` holds OpenAI chat messages, oldest first. Messages after the last
    /// user message are from an earlier run that broke off.
    Start {
        /// Id of the run to begin.
        response_id: ResponseId,
        /// Chat messages of the conversation. The message to answer is the last user message.
        history: Vec<Value>,
    },
    /// A message for the active run. Answered with a `message_steered` when the agent has it and
    /// another one when the model has, or with [`RunEffect::CannotSteer`]: immediately, when the
    /// run ends before its next step, or when the agent has given it back.
    Steer {
        /// Id of the steered message.
        message_id: MessageId,
        /// The steered message as one chat message, as in [`RunInput::Start`].
        message: Value,
    },
    /// A request to stop the active run.
    Interrupt,
    /// The time of the last [`RunEffect::WakeAt`] has come.
    Wake,
}

/// An effect on the run that a backend of either family gives the driver to carry out.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEffect {
    /// Appends an event of the open run to the log.
    Emit(Event),
    /// Returns a steered message to the queue for the next run, even if it was handed over: no
    /// model has seen it, and none will see it in this run.
    CannotSteer(MessageId),
    /// Asks for a [`RunInput::Wake`] at this time, replacing the previous request.
    WakeAt(Millis),
    /// Ends the run. It is the last effect that the backend returns for an input.
    End(Ending),
}
