//! The family of agents behind an API, whose tools the driver runs.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use transcript::{CallId, Millis, PartKind, RunMessage};

use crate::{RunEffect, RunInput, ToolOutcome};

/// The backend of a model agent. It lives for one run: it gets no input after the end of the run.
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
    /// Handles an input at the time `now`, and returns its effects in order.
    fn on(&mut self, now: Millis, input: ModelInput) -> Vec<ModelEffect>;
}

/// An input that the driver gives the backend of a model agent.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelInput {
    /// An input about the run, of a kind that all backends get.
    Run(RunInput),
    /// Continues a run that began before the server was restarted, in place of [`RunInput::Start`].
    /// The tool calls of `answer` without a result are to be run.
    Resume {
        /// Content of the run so far, from its records.
        answer: Box<RunMessage>,
        /// Chat messages of the conversation, as in [`RunInput::Start`].
        history: Vec<Value>,
    },
    /// Descriptions of the available tools, in the format of the OpenAI API: `{"type": "function",
    /// ...}`. An agent that needs them gets them before every `Start`, `Resume` and `History`, as
    /// the tools may change between two steps.
    Tools(Vec<Value>),
    /// Result of a tool call. It comes once for each [`ModelEffect::RunTool`], unless the run ends
    /// first.
    ToolResult {
        /// Id of the tool call that has ended.
        call_id: CallId,
        /// Result of the tool call.
        outcome: ToolOutcome,
    },
    /// Reports that a tool call waits for a person or a client before it runs. It does not count as
    /// running meanwhile.
    ToolWaits(CallId),
    /// Chat messages of the conversation as in [`RunInput::Start`], including this run so far. They
    /// answer a [`ModelEffect::ReadHistory`].
    History(Vec<Value>),
    /// A part of the HTTP response to the last [`ModelEffect::Request`].
    Response(ResponsePart),
}

/// A part of an HTTP response: status and headers, any number of chunks of the body, and one end. A
/// response that never began has only an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponsePart {
    /// Beginning of the HTTP response.
    Head {
        /// HTTP status code of the response.
        status: u16,
        /// HTTP headers of the response in order, with names in lower case.
        headers: Vec<(String, String)>,
    },
    /// A chunk of the HTTP response body, split at any byte.
    Bytes(Vec<u8>),
    /// End of the HTTP response: it is complete, or it was lost.
    Ended(Result<(), Lost>),
}

/// Reason for which an HTTP response is missing or incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Kind of the connection's failure.
    pub how: HowLost,
    /// Description of the connection's failure, for a person.
    pub message: String,
}

/// Kind of failure of an HTTP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowLost {
    /// No connection to the server was made.
    NeverConnected,
    /// No data arrived within the time limit.
    TimedOut,
    /// The connection was lost before the response was complete.
    BrokeOff,
}

/// An effect that the backend of a model agent asks the driver to carry out.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEffect {
    /// An effect on the run, of a kind that all backends have.
    Run(RunEffect),
    /// Runs a tool call. The driver writes the call's approval, `tool_running`, `tool_retry`,
    /// `tool_output_delta` and `tool_result`, and decides about its `validation`.
    RunTool(ReadyCall),
    /// Asks for the chat messages of the conversation. The driver answers with
    /// [`ModelInput::History`].
    ReadHistory,
    /// Sends an HTTP request, whose response comes as [`ModelInput::Response`]. A new request, and
    /// the end of the run, cancel the previous request.
    Request(Request),
}

/// A tool call whose arguments are complete, so that it can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyCall {
    /// Id of the tool call.
    pub call_id: CallId,
    /// Name of the tool to call.
    pub tool_name: String,
    /// Arguments of the tool call as raw JSON text.
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

/// An HTTP request with a JSON body, to a model service.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// HTTP method of the request.
    pub method: &'static str,
    /// URL of the request.
    pub url: String,
    /// HTTP headers of the request in order; their values may be secret keys.
    pub headers: Vec<(String, String)>,
    /// JSON body of the request.
    pub body: Arc<str>,
    /// Time in milliseconds without data after which the connection counts as lost.
    pub idle_timeout_ms: u64,
}

/// Omits the headers, which hold keys, and the body, which holds messages.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Returns the highest number in the ids of the run's parts and tool calls, from which further ids
/// are numbered. Zero if it has none.
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

/// Returns the tool calls of the run that have no result and are to be run.
pub(crate) fn open_calls(answer: &RunMessage) -> impl Iterator<Item = ReadyCall> {
    answer.calls().filter(|call| call.is_open()).map(|call| ReadyCall {
        call_id: call.id.clone(),
        tool_name: call.name.clone(),
        arguments: call.arguments.whole().unwrap_or_default(),
    })
}
