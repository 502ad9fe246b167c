//! The message model: what a reader sees, as data. Filled in by the reducer, see `transcript.rs`.

use std::ops::Add;

use serde_json::{Map, Value};

use crate::{
    Call, CallId, CancelReason, Direction, ErrorInfo, Evaluation, ExchangeId, ExchangeMode,
    ExchangeState, Level, MessageId, Millis, PartId, Phase, ResponseId, RunStatus, Seq, SessionId,
    SteerState, Trigger, Usage,
};

/// One run of an agent. A function of its own run's records and of nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMessage {
    pub id: ResponseId,
    pub agent: String,
    pub model: Option<String>,
    pub trigger: Trigger,
    pub exchange_id: Option<ExchangeId>,
    pub started_at: Millis,
    /// Everything in the order it began.
    pub parts: Vec<Part>,
    pub steps: Vec<Step>,
    /// Why it went on after a step, and at last why it stopped.
    pub continuations: Vec<Continuation>,
    /// Somebody asked to stop, and when.
    pub cancel_requested: Option<(String, Millis)>,
    pub cancelled: Option<CancelReason>,
    pub audio_truncated_at_ms: Option<u64>,
    pub finish: Option<Finish>,
    pub(crate) index: super::parts::PartIndex,
    pub(crate) tally: super::tally::Tally,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub index: u32,
    pub parent: Option<CallId>,
    pub started_at: Millis,
    pub finished: Option<StepFinished>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StepFinished {
    pub at: Millis,
    pub reason: String,
    pub usage: Option<Usage>,
    pub cost: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Continuation {
    pub at: Millis,
    /// How many steps the run had begun by itself.
    pub n_steps: usize,
    pub should_continue: bool,
    pub stop_reason: String,
    pub resolved_by: String,
    pub evaluations: Vec<Evaluation>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    pub at: Millis,
    pub status: RunStatus,
    pub error: Option<ErrorInfo>,
    pub usage: Option<Usage>,
    pub cost: Option<f64>,
    /// None where it is not known.
    pub duration_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub started_at: Millis,
    /// The record that it begins with, and the one that changed it last.
    pub first: Seq,
    pub changed: Seq,
    /// The call of a sub-agent that this happened under.
    pub parent: Option<CallId>,
    /// Into [`RunMessage::steps`]; none before the first.
    pub step: Option<usize>,
    pub kind: PartKind,
    /// What others wrote down about it and nothing here reads, in the AI SDK's words.
    pub extras: Map<String, Value>,
}

impl Part {
    /// Its own, or its call's.
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
}

impl Part {
    /// More may come of it.
    pub fn is_open(&self) -> bool {
        match &self.kind {
            PartKind::Text(text) => text.open,
            PartKind::Thinking(thinking) => thinking.open,
            PartKind::Call(call) => call.is_open(),
            // The last unrecognized part of an answer stands for all that follow.
            PartKind::Steered(_) | PartKind::Exchange(_) | PartKind::Unrecognized { .. } => true,
            PartKind::Notice { .. } => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum PartKind {
    Text(Text),
    Thinking(Thinking),
    Call(Box<Call>),
    Steered(Steered),
    Exchange(Box<Exchange>),
    Notice {
        level: Level,
        text: String,
    },
    /// `lines`: how many it stands for; `raw` is the first of them.
    Unrecognized {
        source: String,
        raw: String,
        lines: u64,
    },
}

impl PartKind {
    /// Text that counts: neither blank, nor discarded, nor a call's arguments that leaked into the text.
    pub fn has_visible_text(&self) -> bool {
        match self {
            Self::Text(text) => {
                text.role != TextRole::Discarded && !text.leaked && !text.text.trim().is_empty()
            }
            _ => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    pub id: PartId,
    pub text: String,
    pub open: bool,
    pub phase: Option<Phase>,
    pub role: TextRole,
    /// When its role was decided.
    pub decided_at: Option<Millis>,
    /// It is the JSON of a call's arguments that slipped into the text: kept, but never content.
    pub leaked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextRole {
    /// Its step is still open.
    Undecided,
    /// The words that led to a call; to none, where only the provider says it is commentary.
    Commentary {
        call: Option<CallId>,
    },
    Final,
    /// The provider started again.
    Discarded,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Thinking {
    pub id: PartId,
    pub text: String,
    pub open: bool,
    pub finished_at: Option<Millis>,
    pub discarded: bool,
}

/// A message that was put into this run while it was going on.
#[derive(Debug, Clone, PartialEq)]
pub struct Steered {
    pub id: MessageId,
    pub text: String,
    pub state: SteerState,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    pub id: ExchangeId,
    pub direction: Direction,
    /// The call that asks.
    pub call_id: Option<CallId>,
    pub mode: ExchangeMode,
    pub agent: String,
    pub peer_session_id: Option<SessionId>,
    pub peer_response_id: Option<ResponseId>,
    pub text: String,
    /// As last heard; none until the other side has taken the message.
    pub state: Option<ExchangeState>,
    pub outcome: Option<ExchangeOutcome>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExchangeOutcome {
    pub at: Millis,
    pub ok: bool,
    pub result: Option<Value>,
    pub error: Option<ErrorInfo>,
}

impl RunMessage {
    /// The last word about whether it goes on.
    pub fn continuation(&self) -> Option<&Continuation> {
        self.continuations.last()
    }

    pub fn is_open(&self) -> bool {
        self.finish.is_none()
    }

    /// The final text alone: what came before calls is theirs, see [`RunMessage::commentary`].
    pub fn content(&self) -> String {
        let finals = self.texts().filter(|(part, text)| {
            part.parent.is_none() && text.role == TextRole::Final && !text.leaked
        });
        join(finals.map(|(_, text)| text.text.as_str()))
    }

    /// The words that led to a call, trimmed; none where there were none.
    pub fn commentary(&self, call: &Call) -> Option<String> {
        let texts = call.commentary.iter().filter_map(|&idx| match &self.parts.get(idx)?.kind {
            PartKind::Text(text) if !text.leaked => Some(text.text.as_str()),
            _ => None,
        });
        let joined = join(texts).trim().to_owned();
        (!joined.is_empty()).then_some(joined)
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Call(call) => Some(&**call),
            _ => None,
        })
    }

    pub fn call(&self, id: &CallId) -> Option<&Call> {
        match &self.parts[self.call_index(id)?].kind {
            PartKind::Call(call) => Some(call),
            _ => None,
        }
    }

    pub fn has_exchanges(&self) -> bool {
        !self.index.exchanges.is_empty()
    }

    pub fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Exchange(exchange) => Some(&**exchange),
            _ => None,
        })
    }

    pub fn texts(&self) -> impl Iterator<Item = (&Part, &Text)> {
        self.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Text(text) => Some((part, text)),
            _ => None,
        })
    }

    pub fn was_interrupted(&self) -> bool {
        self.cancelled.is_some()
    }

    /// As the run said at its end; before that, and where it did not say, the sum of its steps.
    pub fn usage(&self) -> Option<Usage> {
        let finished = self.finish.as_ref().and_then(|it| it.usage);
        finished.or_else(|| {
            self.steps.iter().filter_map(|step| step.finished.as_ref()?.usage).reduce(Usage::plus)
        })
    }

    /// In US dollars; known as [`RunMessage::usage`] is.
    pub fn cost(&self) -> Option<f64> {
        let finished = self.finish.as_ref().and_then(|it| it.cost);
        finished.or_else(|| {
            self.steps.iter().filter_map(|step| step.finished.as_ref()?.cost).reduce(f64::add)
        })
    }
}

/// Texts of different parts that meet are joined by a blank line; blank ones add nothing.
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
