//! The family of agents behind an API, whose tools the driver runs.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use transcript::{CallId, Millis, PartKind, RunMessage};

use crate::{RunEffect, RunInput, ToolOutcome};

/// The backend of a model agent. It lives for one run: it gets no input after the end.
///
/// ```
/// use backends::{Demo, ModelBackend, ModelEffect, Pace, RunEffect, RunInput};
/// use transcript::{Event, Millis, ResponseId};
///
/// let mut demo = Demo::new(Pace::Instant);
/// let history = vec![serde_json::json!({ "role": "user", "content": "Hello" })];
/// let start = RunInput::Start { response_id: ResponseId::new("run-1"), history };
/// let effects = demo.on(Millis(0), start.into());
/// assert!(matches!(
///     effects.first(),
///     Some(ModelEffect::Run(RunEffect::Emit(Event::StepStart { .. })))
/// ));
/// assert!(matches!(effects.last(), Some(ModelEffect::Run(RunEffect::End(_)))));
/// ```
pub trait ModelBackend: fmt::Debug + Send {
    /// Takes an input at the time `now`, and returns its effects in order.
    fn on(&mut self, now: Millis, input: ModelInput) -> Vec<ModelEffect>;
}

/// An event that the driver reports to a model agent.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelInput {
    /// An input about the run.
    Run(RunInput),
    /// Continues a run that began before the server was restarted, in place of [`RunInput::Start`]. `answer`
    /// is the run so far; its calls without a result are to be run.
    Resume {
        /// The run so far.
        answer: Box<RunMessage>,
        /// The conversation as in [`RunInput::Start`].
        history: Vec<Value>,
    },
    /// Available tools, in the format of the OpenAI API: `{"type": "function", ...}`. An agent that needs
    /// descriptions gets them before every `Start`, `Resume` and `History`, as the tools may change between
    /// two steps.
    Tools(Vec<Value>),
    /// The result of a call, once for each [`ModelEffect::RunTool`] unless the run ends first.
    ToolResult {
        /// The call.
        call_id: CallId,
        /// Its result.
        outcome: ToolOutcome,
    },
    /// A call waits for a person or a client before it runs. It does not count as running meanwhile.
    ToolWaits(CallId),
    /// The conversation as in [`RunInput::Start`], including this run so far. It answers a
    /// [`ModelEffect::ReadHistory`].
    History(Vec<Value>),
    /// A part of the response to the last [`ModelEffect::Request`].
    Response(ResponsePart),
}

/// A part of an HTTP response: a head, any number of pieces of the body, and one end. A response that never
/// began has only an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponsePart {
    /// The response begins. Header names are in lower case.
    Head {
        /// Status code.
        status: u16,
        /// Headers in order.
        headers: Vec<(String, String)>,
    },
    /// Bytes of the body, split at any position.
    Bytes(Vec<u8>),
    /// The response is complete, or the connection was lost.
    Ended(Result<(), Lost>),
}

/// Reason for which a response ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Kind of the failure.
    pub how: HowLost,
    /// Description for a person.
    pub message: String,
}

/// Kind of a failed connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowLost {
    /// No connection was made.
    NeverConnected,
    /// No data came within the time limit.
    TimedOut,
    /// The connection was lost.
    BrokeOff,
}

/// An order of a model agent to the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEffect {
    /// An effect on the run.
    Run(RunEffect),
    /// Runs a tool. The driver writes the call's approval, `tool_running`, `tool_retry`, `tool_output_delta`
    /// and `tool_result`, and decides about its `validation`.
    RunTool(ReadyCall),
    /// Reads the conversation, answered by [`ModelInput::History`].
    ReadHistory,
    /// Sends an HTTP request, answered by [`ModelInput::Response`]. A new request, and the end of the run,
    /// cancel the one before.
    Request(Request),
}

/// A call that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyCall {
    /// The call.
    pub call_id: CallId,
    /// Name of the tool.
    pub tool_name: String,
    /// Raw text of the arguments.
    pub arguments: String,
}

impl From<RunInput> for ModelInput {
    fn from(input: RunInput) -> Self {
        Self::Run(input)
    }
}

impl From<ResponsePart> for ModelInput {
    fn from(part: ResponsePart) -> Self {
        Self::Response(part)
    }
}

impl From<RunEffect> for ModelEffect {
    fn from(effect: RunEffect) -> Self {
        Self::Run(effect)
    }
}

/// An HTTP request with a JSON body.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// HTTP method.
    pub method: &'static str,
    /// Address.
    pub url: String,
    /// Headers in order; may hold keys.
    pub headers: Vec<(String, String)>,
    /// JSON body.
    pub body: Arc<str>,
    /// Time without data after which the connection counts as lost.
    pub idle_timeout_ms: u64,
}

/// Omits headers, which hold keys, and bodies, which hold messages.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Returns the number of ids that a run has given to its parts and calls.
pub(crate) fn ids_given(answer: &RunMessage) -> u32 {
    let ids = answer.parts.iter().filter_map(|part| match &part.kind {
        PartKind::Text(text) => Some(text.id.as_str()),
        PartKind::Thinking(thinking) => Some(thinking.id.as_str()),
        PartKind::Call(call) => Some(call.id.as_str()),
        _ => None,
    });
    let number = |id: &str| id.rsplit_once('.').and_then(|(_, n)| n.parse().ok());
    ids.filter_map(number).max().unwrap_or(0)
}

/// Returns the calls without a result, which are to be run.
pub(crate) fn open_calls(answer: &RunMessage) -> impl Iterator<Item = ReadyCall> {
    answer.calls().filter(|call| call.is_open()).map(|call| ReadyCall {
        call_id: call.id.clone(),
        tool_name: call.name.clone(),
        arguments: call.arguments.whole().unwrap_or_default(),
    })
}
