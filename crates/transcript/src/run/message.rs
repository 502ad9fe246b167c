//! The model of an assistant message. The reducer in `reducer.rs` builds it.

use serde_json::{Map, Value};

use crate::{
    Call, CallId, CancelReason, Direction, ErrorInfo, Evaluation, ExchangeId, ExchangeMode,
    ExchangeState, Level, MessageId, Millis, PartId, Phase, ResponseId, RunStatus, Seq, SessionId,
    SteerState, Trigger, Usage,
};

/// The assistant message of one run, built from the records of that run alone.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMessage {
    /// Id of the run and of its assistant message.
    pub id: ResponseId,
    /// Id of the agent that the run belongs to.
    pub agent: String,
    /// Name of the model that the agent uses; `None` if unknown.
    pub model: Option<String>,
    /// Why the run started, such as a message from a person or a reply from another agent.
    pub trigger: Trigger,
    /// Id of the exchange whose message or reply started the run; `None` for any other trigger.
    pub exchange_id: Option<ExchangeId>,
    /// Time at which the run started.
    pub started_at: Millis,
    /// All parts of the message in the order in which they started.
    pub parts: Vec<Part>,
    /// All steps of the run in the order in which they started, including those of sub-agents.
    pub steps: Vec<Step>,
    /// Decisions whether the agent continues, in the order in which they were made after steps.
    pub continuations: Vec<Continuation>,
    /// The person or program that first asked to stop the run, and the time of that request; `None`
    /// if nobody did.
    pub cancel_requested: Option<(String, Millis)>,
    /// Why the run was interrupted; `None` if it was not.
    pub cancelled: Option<CancelReason>,
    /// Position in milliseconds at which audio output was cut; `None` if none was cut.
    pub audio_truncated_at_ms: Option<u64>,
    /// The end of the run; `None` while it is open.
    pub finish: Option<Finish>,
    pub(crate) index: super::parts::PartIndex,
    pub(crate) part_traits: super::part_traits::PartTraits,
}

/// A step of a run: one model call.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Number of the step, from 0, counted separately for each sub-agent.
    pub index: u32,
    /// Id of the tool call that started the sub-agent whose step this is. `None` for the agent
    /// itself.
    pub parent: Option<CallId>,
    /// Time at which the step started.
    pub started_at: Millis,
    /// The end of the step; `None` while it has not ended.
    pub finished: Option<StepFinished>,
}

/// The end of a step, as reported by its `step_finish` event.
#[derive(Debug, Clone, PartialEq)]
pub struct StepFinished {
    /// Time at which the step ended.
    pub at: Millis,
    /// The provider's reason for the end of the step, such as `stop`; if the run ended first,
    /// `stop`, `error` or `cancelled`.
    pub reason: String,
    /// Token counts of the step; `None` if unknown.
    pub usage: Option<Usage>,
    /// Cost of the step in US dollars; `None` if unknown.
    pub cost: Option<f64>,
}

/// A decision whether the agent continues after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Continuation {
    /// Time of the decision whether the agent continues.
    pub at: Millis,
    /// Number of steps that the run had started before the decision, without those of sub-agents.
    pub n_steps: usize,
    /// Whether the agent continues with another step.
    pub should_continue: bool,
    /// Why the agent continues or stops, such as `tool_calls`, `completed` or `steps_limit`.
    pub stop_reason: String,
    /// Name of the rule that decided, such as `NoToolCalls` or `StepsLimit`.
    pub resolved_by: String,
    /// Results of the rules that were checked for the decision.
    pub evaluations: Vec<Evaluation>,
}

/// The end of a run, as reported by its `run_finish` event.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// Time at which the run ended.
    pub at: Millis,
    /// How the run ended: completed, failed or cancelled.
    pub status: RunStatus,
    /// The error that ended the run; `None` unless it failed.
    pub error: Option<ErrorInfo>,
    /// Token counts of the whole run; `None` if the run did not report them at its end.
    pub usage: Option<Usage>,
    /// Cost of the whole run in US dollars; `None` if the run did not report it at its end.
    pub cost: Option<f64>,
    /// Duration of the run in milliseconds; `None` if it was not measured.
    pub duration_ms: Option<u64>,
}

/// A part of an assistant message: a text, a thinking block, a tool call, or something else in the
/// same place.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Time at which the part started.
    pub started_at: Millis,
    /// Sequence number of the record that started the part.
    pub first: Seq,
    /// Sequence number of the record that changed the part last.
    pub changed: Seq,
    /// Id of the tool call that the part belongs to: the call that started its sub-agent, or that
    /// sent the message of an exchange. `None` at the top level.
    pub parent: Option<CallId>,
    /// Index into [`RunMessage::steps`] of the step in which the part started; `None` before the
    /// first step.
    pub step: Option<usize>,
    /// Content of the part.
    pub kind: PartKind,
    /// Additional fields of an imported part, in the format of the AI SDK. Callboard keeps them but
    /// does not interpret them.
    pub extras: Map<String, Value>,
}

impl Part {
    /// Returns the id of the part if it is a text, a thinking block or a tool call; `None` for
    /// other parts.
    pub fn id(&self) -> Option<&str> {
        match &self.kind {
            PartKind::Text(text) => Some(text.id.as_str()),
            PartKind::Thinking(thinking) => Some(thinking.id.as_str()),
            PartKind::Call(call) => Some(call.id.as_str()),
            PartKind::Steered(_)
            | PartKind::Exchange(_)
            | PartKind::Notice { .. }
            | PartKind::Unrecognized { .. } => None,
        }
    }

    /// Returns whether the part may still change.
    pub fn is_open(&self) -> bool {
        match &self.kind {
            PartKind::Text(text) => text.open,
            PartKind::Thinking(thinking) => thinking.open,
            PartKind::Call(call) => call.is_open(),
            // The last unrecognized part of a message also counts later lines.
            PartKind::Steered(_) | PartKind::Exchange(_) | PartKind::Unrecognized { .. } => true,
            PartKind::Notice { .. } => false,
        }
    }
}

/// The content of a part of an assistant message, by the kind of part.
#[derive(Debug, Clone, PartialEq)]
pub enum PartKind {
    /// A text that the agent wrote.
    Text(Text),
    /// A thinking block of the agent.
    Thinking(Thinking),
    /// A tool call of the agent.
    Call(Box<Call>),
    /// A message that was steered: given to the run while it was active.
    Steered(Steered),
    /// A message to or from another agent, with its reply.
    Exchange(Box<Exchange>),
    /// A notice to the reader of the conversation; it is not text of the model.
    Notice {
        /// Severity of the notice.
        level: Level,
        /// Text of the notice.
        text: String,
    },
    /// Output of an agent that Callboard could not interpret.
    Unrecognized {
        /// Source of the output: the program or agent, or `part` for an imported part in its own
        /// format.
        source: String,
        /// The first line of the output.
        raw: String,
        /// Number of lines of output that the part represents.
        lines: u64,
    },
}

impl PartKind {
    /// Returns whether the part is a text to show: neither blank, nor discarded, nor leaked tool
    /// arguments.
    pub fn has_visible_text(&self) -> bool {
        match self {
            Self::Text(text) => {
                text.role != TextRole::Discarded && !text.leaked && !text.text.trim().is_empty()
            }
            _ => false,
        }
    }
}

/// A text part of an assistant message.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// Id of the text.
    pub id: PartId,
    /// The text as received so far.
    pub text: String,
    /// Whether the text may still grow.
    pub open: bool,
    /// The provider's classification of the text as commentary or final; `None` if it gave none.
    pub phase: Option<Phase>,
    /// The role of the text in the message.
    pub role: TextRole,
    /// Time at which the role of the text was last decided; `None` while it is undecided.
    pub decided_at: Option<Millis>,
    /// Whether the text only repeats the JSON arguments of a tool call. It is kept but is not part
    /// of the message's content.
    pub leaked: bool,
}

/// The role of a text in its assistant message: commentary of a tool call or final text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextRole {
    /// The role of the text is not decided yet, because a tool call may still take the text as its
    /// commentary.
    Undecided,
    /// The text is commentary: it explains a tool call.
    Commentary {
        /// Id of the tool call that the text explains; `None` if only the provider's phase makes it
        /// commentary.
        call: Option<CallId>,
    },
    /// The text belongs to the content of the message.
    Final,
    /// The text does not count, because the provider restarted its output.
    Discarded,
}

/// A thinking block of an assistant message.
#[derive(Debug, Clone, PartialEq)]
pub struct Thinking {
    /// Id of the thinking block.
    pub id: PartId,
    /// Text of the thinking block as received so far.
    pub text: String,
    /// Whether the thinking block may still grow.
    pub open: bool,
    /// Time at which the thinking block was completed; `None` while it may still grow.
    pub finished_at: Option<Millis>,
    /// Whether the thinking block does not count, because the provider restarted its output.
    pub discarded: bool,
}

/// A message that was steered: given to the run while it was active.
#[derive(Debug, Clone, PartialEq)]
pub struct Steered {
    /// Id of the steered message.
    pub id: MessageId,
    /// Text of the steered message.
    pub text: String,
    /// Whether the agent has the message, the model has read it, or it was returned to the queue.
    pub state: SteerState,
}

/// A message to or from another agent, with its reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Id of the exchange, the same in the logs of both sessions.
    pub id: ExchangeId,
    /// Whether this session sent or received the message that starts the exchange.
    pub direction: Direction,
    /// Id of the tool call that sent the message; `None` if no tool call sent it.
    pub call_id: Option<CallId>,
    /// Whether the sender of the message waits for the reply.
    pub mode: ExchangeMode,
    /// Id of the agent on the other side.
    pub agent: String,
    /// Id of the other side's session; `None` if there is none.
    pub peer_session_id: Option<SessionId>,
    /// Id of the other side's run that answers the message; `None` if there is none.
    pub peer_response_id: Option<ResponseId>,
    /// Text of the message that started the exchange.
    pub text: String,
    /// Progress on the other side, as last reported; `None` before the first report.
    pub state: Option<ExchangeState>,
    /// The end of the exchange, with or without a reply; `None` while the exchange is open.
    pub outcome: Option<ExchangeOutcome>,
}

/// The end of an exchange: a reply or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct ExchangeOutcome {
    /// Time at which the exchange ended.
    pub at: Millis,
    /// Whether the exchange ended with a reply.
    pub ok: bool,
    /// The reply of the other agent as JSON; `None` if there is none.
    pub result: Option<Value>,
    /// The reason why there is no reply; `None` if there is one.
    pub error: Option<ErrorInfo>,
}

impl RunMessage {
    /// Returns the last decision whether the agent continues; `None` if there is none.
    pub fn continuation(&self) -> Option<&Continuation> {
        self.continuations.last()
    }

    /// Returns whether the run has not finished.
    pub fn is_open(&self) -> bool {
        self.finish.is_none()
    }

    /// Returns the final text of the message, without commentary and without the texts of
    /// sub-agents.
    pub fn content(&self) -> String {
        let finals = self.texts().filter(|(part, text)| {
            part.parent.is_none() && text.role == TextRole::Final && !text.leaked
        });
        join(finals.map(|(_, text)| text.text.as_str()))
    }

    /// Returns the commentary of a tool call, trimmed: the text that explains it. `None` if it has
    /// none.
    pub fn commentary(&self, call: &Call) -> Option<String> {
        let texts = call.commentary.iter().filter_map(|&idx| match &self.parts.get(idx)?.kind {
            PartKind::Text(text) if !text.leaked => Some(text.text.as_str()),
            _ => None,
        });
        let joined = join(texts).trim().to_owned();
        (!joined.is_empty()).then_some(joined)
    }

    /// Iterates over all tool calls of the run in the order in which they started.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Call(call) => Some(&**call),
            _ => None,
        })
    }

    /// Returns the tool call with this id; `None` if the run has none.
    pub fn call(&self, id: &CallId) -> Option<&Call> {
        match &self.parts[self.call_index(id)?].kind {
            PartKind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Returns whether the run has any exchanges.
    pub fn has_exchanges(&self) -> bool {
        !self.index.exchanges.is_empty()
    }

    /// Iterates over all exchanges of the run in the order in which they started.
    pub fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Exchange(exchange) => Some(&**exchange),
            _ => None,
        })
    }

    /// Iterates over all texts of the run, each with the part that contains it.
    pub fn texts(&self) -> impl Iterator<Item = (&Part, &Text)> {
        self.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Text(text) => Some((part, text)),
            _ => None,
        })
    }

    /// Returns whether the run was interrupted before it was complete.
    pub fn was_interrupted(&self) -> bool {
        self.cancelled.is_some()
    }
}

/// Joins texts with a blank line between them, leaving out blank texts.
fn join<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut joined = String::new();
    for text in texts.filter(|text| !text.trim().is_empty()) {
        if !joined.is_empty() {
            joined.push_str("\n\n");
        }
        joined.push_str(text);
    }
    joined
}
