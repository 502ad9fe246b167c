//! What each agent says and wants, as state machines without I/O.
//!
//! A [`Backend`] is told what happened and answers with what to do. It reads no clock, draws no
//! random number and cannot fail: what goes wrong ends the run, as an [`Effect`] like any other.
//!
//! # The contract with the driver
//!
//! - One input at a time. The driver carries out all effects of an answer, in their order, before
//!   it gives the next input.
//! - The first input is [`Input::Start`]. After [`Effect::End`], which is the last effect of its
//!   answer, nothing more is called.
//! - `now` is the only time there is. A [`Effect::WakeAt`] replaces the one before it.
//! - Every [`Effect::RunTool`] gets exactly one [`Input::ToolResult`], unless the run ends first.
//! - The driver writes `run_start`, `run_finish`, and for the calls that it runs `tool_running`,
//!   `tool_output_delta` and `tool_result`. The backend emits everything else.
//! - A run may end while a step, a part or a call is open. The driver closes what is open.
//! - Ids of parts and calls are `{responseId}.{n}`, counted by the backend.
//!
//! Write, Request, Bytes, Decision and Steer come with the backends that need them.

mod arguments_summary;
mod demo;
pub mod openai;

use serde_json::Value;
use transcript::{CallId, ErrorInfo, Event, Millis, ResponseId, RunStatus, Usage};

pub use crate::arguments_summary::arguments_summary;
pub use crate::demo::{Demo, Pace};

/// An agent, seen from the server.
pub trait Backend: Send {
    fn on(&mut self, now: Millis, input: Input) -> Vec<Effect>;
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// `history` holds OpenAI chat messages, oldest first. What stands after the last user message
    /// was said and done by an earlier run that broke off.
    Start {
        response_id: ResponseId,
        history: Vec<Value>,
    },
    ToolResult {
        call_id: CallId,
        outcome: ToolOutcome,
    },
    /// Somebody wants the run to stop.
    Interrupt,
    /// The moment of the last [`Effect::WakeAt`] has come.
    Wake,
}

/// How a tool call ended. `error` says why when `ok` is false.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    pub ok: bool,
    pub result: Value,
    pub error: Option<ErrorInfo>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Emit(Event),
    /// `arguments` is the raw text, as the agent wrote it.
    RunTool {
        call_id: CallId,
        tool_name: String,
        arguments: String,
    },
    WakeAt(Millis),
    End(Ending),
}

/// How the run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub status: RunStatus,
    pub error: Option<ErrorInfo>,
    pub usage: Option<Usage>,
}
