//! The model of an assistant message. The reducer in `reducer.rs` builds it.

use serde_json::{Map, Value};

use crate::{
    Call, CallId, CancelReason, Direction, ErrorInfo, Evaluation, ExchangeId, ExchangeMode,
    ExchangeState, Level, MessageId, Millis, PartId, Phase, ResponseId, RunStatus, Seq, SessionId,
    SteerState, Trigger, Usage,
};

/// The assistant message of one run. It depends on the records of that run alone.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMessage {
    /// Id of the run.
    pub id: ResponseId,
    /// Id of the agent.
    pub agent: String,
    /// Model that the agent uses.
    pub model: Option<String>,
    /// Why the run started.
    pub trigger: Trigger,
    /// Exchange that the run answers.
    pub exchange_id: Option<ExchangeId>,
    /// Time at which the run started.
    pub started_at: Millis,
    /// All parts in the order in which they started.
    pub parts: Vec<Part>,
    /// All steps in the order in which they started.
    pub steps: Vec<Step>,
    /// Decisions after each step whether the agent continues.
    pub continuations: Vec<Continuation>,
    /// Who asked to stop the run, and when.
    pub cancel_requested: Option<(String, Millis)>,
    /// Why the run was interrupted.
    pub cancelled: Option<CancelReason>,
    /// Position in milliseconds at which audio output was cut.
    pub audio_truncated_at_ms: Option<u64>,
    /// The end of the run; `None` while it is open.
    pub finish: Option<Finish>,
    pub(crate) index: super::parts::PartIndex,
    pub(crate) part_traits: super::part_traits::PartTraits,
}

/// A model call within a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Number of the step, from 0, among those under the same parent.
    pub index: u32,
    /// Call of the sub-agent that made the step.
    pub parent: Option<CallId>,
    /// Time at which the step started.
    pub started_at: Millis,
    /// The end of the step; `None` while it is open.
    pub finished: Option<StepFinished>,
}

/// The end of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepFinished {
    /// Time of the end.
    pub at: Millis,
    /// The provider's reason.
    pub reason: String,
    /// Token counts of the step.
    pub usage: Option<Usage>,
    /// Cost of the step in US dollars.
    pub cost: Option<f64>,
}

/// A decision whether the agent continues after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Continuation {
    /// Time of the decision.
    pub at: Millis,
    /// Number of steps that the run had started, without those of sub-agents.
    pub n_steps: usize,
    /// Whether the agent continues.
    pub should_continue: bool,
    /// Why the agent continues or stops.
    pub stop_reason: String,
    /// The rule that decided.
    pub resolved_by: String,
    /// Findings that led to the decision.
    pub evaluations: Vec<Evaluation>,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// Time of the end.
    pub at: Millis,
    /// How the run ended.
    pub status: RunStatus,
    /// The error of a failed run.
    pub error: Option<ErrorInfo>,
    /// Token counts of the run.
    pub usage: Option<Usage>,
    /// Cost of the run in US dollars.
    pub cost: Option<f64>,
    /// Duration in milliseconds; `None` if it was not measured.
    pub duration_ms: Option<u64>,
}

/// A part of an assistant message: a text, a thinking block, a call, or something else in the same place.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Time at which the part started.
    pub started_at: Millis,
    /// The record that started the part.
    pub first: Seq,
    /// The record that changed the part last.
    pub changed: Seq,
    /// Call of the sub-agent that this happened under.
    pub parent: Option<CallId>,
    /// Index into [`RunMessage::steps`]; `None` before the first step.
    pub step: Option<usize>,
    /// The content.
    pub kind: PartKind,
    /// Fields of an imported part that Callboard does not interpret, in the form of the AI SDK.
    pub extras: Map<String, Value>,
}

impl Part {
    /// Returns the id of a text, a thinking block or a call.
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

/// The content of a part.
#[derive(Debug, Clone, PartialEq)]
pub enum PartKind {
    /// A text.
    Text(Text),
    /// A thinking block.
    Thinking(Thinking),
    /// A tool call.
    Call(Box<Call>),
    /// A message that was given to the run while it was active.
    Steered(Steered),
    /// A message to or from another agent.
    Exchange(Box<Exchange>),
    /// A message of Callboard to the reader.
    Notice {
        /// Severity.
        level: Level,
        /// The text.
        text: String,
    },
    /// Output that could not be interpreted.
    Unrecognized {
        /// Source of the output.
        source: String,
        /// The first line.
        raw: String,
        /// Number of lines that the part represents.
        lines: u64,
    },
}

impl PartKind {
    /// Returns whether this is a text to show: neither blank, nor discarded, nor leaked arguments.
    pub fn has_visible_text(&self) -> bool {
        match self {
            Self::Text(text) => {
                text.role != TextRole::Discarded && !text.leaked && !text.text.trim().is_empty()
            }
            _ => false,
        }
    }
}

/// A text of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// Id of the part.
    pub id: PartId,
    /// The text so far.
    pub text: String,
    /// Whether the text may still grow.
    pub open: bool,
    /// The provider's classification.
    pub phase: Option<Phase>,
    /// The role of the text in the message.
    pub role: TextRole,
    /// Time at which the role was decided.
    pub decided_at: Option<Millis>,
    /// Whether the text is the JSON of a call's arguments: kept, but never content.
    pub leaked: bool,
}

/// The role of a text in its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextRole {
    /// Not decided, because the step is still open.
    Undecided,
    /// Commentary.
    Commentary {
        /// The call that the text explains; `None` if only the provider's phase makes it commentary.
        call: Option<CallId>,
    },
    /// Part of the content.
    Final,
    /// Dropped, because the provider restarted.
    Discarded,
}

/// A thinking block.
#[derive(Debug, Clone, PartialEq)]
pub struct Thinking {
    /// Id of the part.
    pub id: PartId,
    /// The text so far.
    pub text: String,
    /// Whether the text may still grow.
    pub open: bool,
    /// Time at which the block was closed.
    pub finished_at: Option<Millis>,
    /// Whether it was dropped, because the provider restarted.
    pub discarded: bool,
}

/// A message that was given to the run while it was active.
#[derive(Debug, Clone, PartialEq)]
pub struct Steered {
    /// Id of the message.
    pub id: MessageId,
    /// The text.
    pub text: String,
    /// How far the message got.
    pub state: SteerState,
}

/// A message to or from another agent, with its reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Id of the exchange.
    pub id: ExchangeId,
    /// Whether this session sent or received the message.
    pub direction: Direction,
    /// The call that sent the message.
    pub call_id: Option<CallId>,
    /// Whether the sender waits for the reply.
    pub mode: ExchangeMode,
    /// Id of the other agent.
    pub agent: String,
    /// The other side's session.
    pub peer_session_id: Option<SessionId>,
    /// The other side's run.
    pub peer_response_id: Option<ResponseId>,
    /// The message.
    pub text: String,
    /// Progress on the other side, as last reported; `None` until it has accepted the message.
    pub state: Option<ExchangeState>,
    /// The reply; `None` while the exchange is open.
    pub outcome: Option<ExchangeOutcome>,
}

/// The end of an exchange.
#[derive(Debug, Clone, PartialEq)]
pub struct ExchangeOutcome {
    /// Time of the end.
    pub at: Millis,
    /// Whether there is a reply.
    pub ok: bool,
    /// The reply.
    pub result: Option<Value>,
    /// Why there is no reply.
    pub error: Option<ErrorInfo>,
}

impl RunMessage {
    /// Returns the last decision whether the agent continues.
    pub fn continuation(&self) -> Option<&Continuation> {
        self.continuations.last()
    }

    /// Returns whether the run has not finished.
    pub fn is_open(&self) -> bool {
        self.finish.is_none()
    }

    /// Returns the final text, without the commentary of calls, see [`RunMessage::commentary`].
    pub fn content(&self) -> String {
        let finals = self.texts().filter(|(part, text)| {
            part.parent.is_none() && text.role == TextRole::Final && !text.leaked
        });
        join(finals.map(|(_, text)| text.text.as_str()))
    }

    /// Returns the commentary of a call, trimmed; `None` if it has none.
    pub fn commentary(&self, call: &Call) -> Option<String> {
        let texts = call.commentary.iter().filter_map(|&idx| match &self.parts.get(idx)?.kind {
            PartKind::Text(text) if !text.leaked => Some(text.text.as_str()),
            _ => None,
        });
        let joined = join(texts).trim().to_owned();
        (!joined.is_empty()).then_some(joined)
    }

    /// Iterates over all calls in the order in which they started.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Call(call) => Some(&**call),
            _ => None,
        })
    }

    /// Returns the call with this id.
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

    /// Iterates over all exchanges.
    pub fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Exchange(exchange) => Some(&**exchange),
            _ => None,
        })
    }

    /// Iterates over all texts and their parts.
    pub fn texts(&self) -> impl Iterator<Item = (&Part, &Text)> {
        self.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Text(text) => Some((part, text)),
            _ => None,
        })
    }

    /// Returns whether the run was interrupted.
    pub fn was_interrupted(&self) -> bool {
        self.cancelled.is_some()
    }
}

/// Joins texts with blank lines between them, leaving out blank texts.
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
