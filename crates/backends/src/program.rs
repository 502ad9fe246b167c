//! The part of a program agent that does not depend on the program: a state machine, generic over an adapter.
//!
//! A [`ProgramAgent`] takes the driver's inputs, keeps what every program needs ([`Context`]), and calls its
//! [`Adapter`]. An adapter knows the program's wire format: it interprets lines, and writes them. The next
//! program needs an adapter and nothing else.

mod approvals;
mod mcp;
mod prompt;
mod recent;
mod stderr_tail;

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use transcript::{CallId, ErrorCode, ErrorInfo, MessageId, Millis, ResponseId, RunStatus, Usage};

use self::approvals::Approvals;
pub(crate) use self::approvals::Ask;
pub(crate) use self::mcp::{SECONDS, TOKEN_ENV, TOOL_SERVER, plain_name};
pub(crate) use self::prompt::{NUDGE, newest};
pub(crate) use self::recent::Recent;
use crate::emitter::Emitter;
use crate::steering::Steering;
use crate::surrogates::Surrogates;
use crate::{
    Ending, Exit, ProgramBackend, ProgramEffect, ProgramInput, RunEffect, RunInput, Verdict,
};

/// Maximum number of tool calls, and of texts, of a program that are open at the same time. The
/// oldest count as abandoned if a program begins more.
pub(crate) const MAX_OPEN: usize = 128;
/// Maximum number of a program's own sub-agents that are tracked.
pub(crate) const MAX_AGENTS: usize = 64;

/// Backend of a program agent, for any program: the [`Adapter`] knows the program's wire format.
#[derive(Debug)]
pub(crate) struct ProgramAgent<A: Adapter> {
    adapter: A,
    pub(crate) cx: Context<A::Request>,
    surrogates: Surrogates,
}

/// Interprets the lines of one kind of program, and writes the lines that the program understands.
///
/// A run is open from [`Adapter::begin_run`] to [`Adapter::end_run`]. The methods `start`, `steer`,
/// `decide`, `interrupt`, `time_out` and `exited` are called only while a run is open.
pub(crate) trait Adapter: fmt::Debug + Send {
    /// The `source` of `unrecognized` events with lines of the program that cannot be read.
    const SOURCE: &'static str;
    /// A line of the program's stdout, as the adapter parses it.
    type Line;
    /// The adapter's data about a program's request for a decision, needed to answer the request.
    type Request: fmt::Debug + Send;

    fn read(json: &str) -> Self::Line;

    /// Updates the adapter's state of the process from a line. Called before
    /// [`Adapter::handle_line`].
    fn note(&mut self, _line: &Self::Line) {}

    /// Returns whether the program begins a run by itself with this line, if no run is open.
    fn begins_run(&self, _line: &Self::Line) -> bool {
        false
    }

    /// Prepares the adapter for a run that has begun. Called before the run's other inputs.
    fn begin_run(&mut self, _cx: &mut Context<Self::Request>) {}

    /// Sends the newest message to the program. `history` holds the chat messages, oldest first.
    fn start(&mut self, history: &[Value], cx: &mut Context<Self::Request>);

    /// Handles a line of the program, in a run or between runs. `raw` is the unparsed line.
    fn handle_line(&mut self, line: Self::Line, raw: &str, cx: &mut Context<Self::Request>);

    fn steer(&mut self, message_id: MessageId, _message: &Value, cx: &mut Context<Self::Request>) {
        cx.out.push(RunEffect::CannotSteer(message_id));
    }

    /// Answers the program's request for a decision about a tool call.
    fn decide(
        &mut self,
        _call_id: &CallId,
        _request: Self::Request,
        _verdict: Verdict,
        _cx: &mut Context<Self::Request>,
    ) {
    }

    fn interrupt(&mut self, cx: &mut Context<Self::Request>);

    /// Handles the end of the deadline in [`Context::deadline`].
    fn time_out(&mut self, cx: &mut Context<Self::Request>);

    fn exited(&mut self, exit: &Exit, cx: &mut Context<Self::Request>);

    /// Drops the adapter's state of a run that has ended or was abandoned.
    fn end_run(&mut self);
}

/// The state that every adapter needs, with the emitter of its effects. `R` is
/// [`Adapter::Request`].
#[derive(Debug)]
pub(crate) struct Context<R> {
    pub(crate) out: Emitter,
    pub(crate) steering: Steering,
    pub(crate) approvals: Approvals<R>,
    /// Time at which [`Adapter::time_out`] is called. `None` without a deadline.
    pub(crate) deadline: Option<Millis>,
    /// Id for the next run that the program begins by itself. `None` if it is used up.
    spare: Option<ResponseId>,
    is_gone: bool,
}

impl<A: Adapter> ProgramAgent<A> {
    pub(crate) fn new(adapter: A) -> Self {
        let cx = Context {
            out: Emitter::new(A::SOURCE),
            steering: Steering::default(),
            approvals: Approvals::default(),
            deadline: None,
            spare: None,
            is_gone: false,
        };
        Self { adapter, cx, surrogates: Surrogates::default() }
    }

    fn begin_run(&mut self, response_id: ResponseId) {
        if self.cx.is_running() {
            self.adapter.end_run();
        }
        self.cx.clear_run();
        self.cx.out.begin_run(response_id);
        self.adapter.begin_run(&mut self.cx);
    }

    fn handle_line(&mut self, raw: &str) {
        let line = A::read(&self.surrogates.repair(raw));
        self.adapter.note(&line);
        if !self.cx.is_running()
            && self.adapter.begins_run(&line)
            && let Some(id) = self.cx.spare.take()
        {
            self.cx.out.push(ProgramEffect::Begin);
            self.begin_run(id);
        }
        self.adapter.handle_line(line, raw, &mut self.cx);
    }

    fn wake(&mut self) {
        match self.cx.deadline {
            Some(at) if self.cx.out.now() < at => self.cx.out.push(RunEffect::WakeAt(at)),
            Some(_) => {
                self.cx.deadline = None;
                self.adapter.time_out(&mut self.cx);
            }
            None => (),
        }
    }

    fn take_effects(&mut self) -> Vec<ProgramEffect> {
        let effects = self.cx.out.take_effects();
        for effect in &effects {
            if let ProgramEffect::Run(RunEffect::End(_)) | ProgramEffect::Outdated = effect {
                self.adapter.end_run();
                self.cx.clear_run();
            }
            self.cx.is_gone |= matches!(effect, ProgramEffect::Quit | ProgramEffect::Outdated);
        }
        effects
    }
}

impl<A: Adapter> ProgramBackend for ProgramAgent<A> {
    fn on(&mut self, now: Millis, input: ProgramInput) -> Vec<ProgramEffect> {
        self.cx.out.set_now(now);
        let is_running = self.cx.is_running();
        let was_gone = self.cx.is_gone;
        self.cx.is_gone |= matches!(input, ProgramInput::Exited(_));
        let (adapter, cx) = (&mut self.adapter, &mut self.cx);
        match input {
            ProgramInput::Spare(id) => cx.spare = Some(id),
            ProgramInput::Line(_) if was_gone => (),
            ProgramInput::Line(raw) => self.handle_line(&raw),
            ProgramInput::Run(RunInput::Start { response_id, history }) => {
                self.begin_run(response_id);
                self.adapter.start(&history, &mut self.cx);
            }
            ProgramInput::Run(RunInput::Steer { message_id, .. }) if !is_running => {
                cx.out.push(RunEffect::CannotSteer(message_id));
            }
            // The other inputs are about an open run.
            _ if !is_running => (),
            ProgramInput::Run(RunInput::Steer { message_id, message }) => {
                adapter.steer(message_id, &message, cx);
            }
            ProgramInput::Run(RunInput::Interrupt) => adapter.interrupt(cx),
            ProgramInput::Run(RunInput::Wake) => self.wake(),
            ProgramInput::Decided { call_id, verdict } => {
                if let Some(request) = cx.approvals.take(&call_id) {
                    adapter.decide(&call_id, request, verdict, cx);
                }
            }
            ProgramInput::Exited(exit) => adapter.exited(&exit, cx),
        }
        self.take_effects()
    }
}

impl<R> Context<R> {
    pub(crate) fn is_running(&self) -> bool {
        self.out.is_running()
    }

    fn clear_run(&mut self) {
        self.steering = Steering::default();
        self.approvals = Approvals::default();
        self.deadline = None;
    }

    /// Returns whether the process has ended, or is to be ended. Lines of the program are ignored
    /// from then on.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub(crate) fn end_run(
        &mut self,
        status: RunStatus,
        error: Option<ErrorInfo>,
        usage: Option<Usage>,
        cost: Option<f64>,
    ) {
        self.out.end_run(Ending { status, error, usage, cost });
    }

    pub(crate) fn wake_at(&mut self, at: Millis) {
        self.deadline = Some(at);
        self.out.push(RunEffect::WakeAt(at));
    }

    pub(crate) fn wake_after(&mut self, ms: u64) {
        self.wake_at(self.out.now().plus(ms));
    }
}

/// Formats the settings of a program agent without arguments and environment, which may hold keys.
pub(crate) fn fmt_settings(
    f: &mut fmt::Formatter<'_>,
    command: &[String],
    model: &Option<String>,
    permission_mode: &dyn fmt::Debug,
) -> fmt::Result {
    f.debug_struct("Settings")
        .field("command", &command)
        .field("model", model)
        .field("permission_mode", permission_mode)
        .finish_non_exhaustive()
}

/// Returns the error of a tool call that was abandoned because too many others began.
pub(crate) fn abandoned() -> ErrorInfo {
    let why = "The program never reported the end of this call, and many calls began after it.";
    ErrorInfo::new(ErrorCode::ToolInterrupted, why)
}

/// Deserializes a field as `None` if its value has another type, so that the rest of the line is
/// still read.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}
