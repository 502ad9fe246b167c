//! The message model: what a reader sees, as data. Filled in by the reducer, see `transcript.rs`.

use std::ops::Add;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    ApprovalOptions, AsSent, Attachment, Body, CallId, CancelReason, ClientId, Decision, Direction,
    ErrorCode, ErrorInfo, Evaluation, ExchangeId, ExchangeMode, ExchangeState, Executor, Level,
    Link, MessageId, Millis, PartId, Phase, ResponseId, RunStatus, SaidBy, Scope, Sender, Seq,
    SessionId, SteerState, Trigger, Truncated, Usage, Validation,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The record that made it.
    pub first: Seq,
    /// The record that changed it last.
    pub changed: Seq,
    pub created_at: Millis,
    /// The history was rewound to before it: shown behind a link, absent from history.
    pub superseded: bool,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Said(Said),
    Answer(Box<Answer>),
    /// Something that happened outside any run, in its place.
    Aside(PartKind),
}

/// From a person, or from another agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub id: MessageId,
    pub client_id: Option<ClientId>,
    pub role: SaidBy,
    pub text: String,
    pub attachments: Vec<Attachment>,
    pub from: Option<Sender>,
    pub sent: Option<AsSent>,
}

impl Said {
    /// Files that are elsewhere.
    pub fn links(&self) -> impl Iterator<Item = Link<'_>> {
        self.sent.iter().flat_map(AsSent::links)
    }
}

/// One run of an agent. A function of its own run's records and of nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
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
    pub(crate) index: crate::place::Index,
    pub(crate) tally: crate::tally::Tally,
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
    /// Into [`Answer::steps`]; none before the first.
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
    pub fn has_words(&self) -> bool {
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

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub id: CallId,
    pub provider_call_id: Option<String>,
    /// Empty where the provider gave none; see [`Call::label`].
    pub name: String,
    /// From 1, in the order of the message's calls.
    pub number: u32,
    pub executor: Executor,
    pub arguments: Body,
    /// `tool_arguments_done` has come.
    pub arguments_done: bool,
    /// The arguments broke off; they were never run.
    pub arguments_incomplete: bool,
    pub summary: String,
    pub validation: Option<Validation>,
    pub provider_data: Option<Value>,
    pub approval: Option<Approval>,
    /// The earlier decision because of which nobody was asked.
    pub granted: Option<Granted>,
    /// The arguments as a person changed them before it was allowed; see [`Call::input`].
    pub edited: Option<Body>,
    /// The arguments that count as a value, in which long texts and lists are cut; none while they come, and
    /// where they cannot be read.
    pub input_value: Option<Value>,
    pub running_since: Option<Millis>,
    pub stdout: Body,
    pub stderr: Body,
    pub retries: Vec<Retry>,
    pub outcome: Option<Outcome>,
    pub state: CallState,
    /// Indexes of the texts that led to it.
    pub commentary: Vec<usize>,
}

/// The one state machine of a tool call. Other vocabularies are views of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    StreamingInput,
    AwaitingApproval,
    Queued,
    Running,
    Succeeded,
    Failed,
    Denied,
    Interrupted,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    pub options: Option<ApprovalOptions>,
    pub requested_at: Millis,
    pub resolved: Option<Resolution>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    pub at: Millis,
    pub decision: Decision,
    pub scope: Option<Scope>,
    /// What ran instead of what was proposed.
    pub arguments: Option<String>,
    pub feedback: Option<String>,
    /// Its scope, if that is more than this call; see [`crate::Covers`].
    pub covers: Option<String>,
    pub by: String,
}

/// A decision for more than once that a later call was allowed by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    pub scope: Scope,
    pub covers: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    pub at: Millis,
    pub attempt: u32,
    pub max_attempts: u32,
    pub error: ErrorInfo,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The record that told of it.
    pub seq: Seq,
    pub at: Millis,
    pub ok: bool,
    /// The result's JSON text; none where there was none.
    pub result: Option<Body>,
    /// The same as a value, in which long texts and lists are cut.
    pub result_value: Option<Value>,
    /// Those that the result names.
    pub files: Vec<Attachment>,
    pub error: Option<ErrorInfo>,
    /// One-line summary for people: the given one, else one made from the result.
    pub summary: String,
    /// None where it is not known.
    pub duration_ms: Option<u64>,
    pub truncated: Option<Truncated>,
}

impl Message {
    /// A user message's messageId, an assistant message's responseId.
    pub fn id(&self) -> String {
        match &self.content {
            Content::Said(said) => said.id.to_string(),
            Content::Answer(answer) => answer.id.to_string(),
            Content::Aside(_) => format!("n{}", self.first),
        }
    }

    pub fn answer(&self) -> Option<&Answer> {
        match &self.content {
            Content::Answer(answer) => Some(answer),
            Content::Said(_) | Content::Aside(_) => None,
        }
    }
}

impl Answer {
    /// The last word about whether it goes on.
    pub fn continuation(&self) -> Option<&Continuation> {
        self.continuations.last()
    }

    pub fn is_open(&self) -> bool {
        self.finish.is_none()
    }

    /// The final text alone: what came before calls is theirs, see [`Answer::commentary`].
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

    /// In US dollars; known as [`Answer::usage`] is.
    pub fn cost(&self) -> Option<f64> {
        let finished = self.finish.as_ref().and_then(|it| it.cost);
        finished.or_else(|| {
            self.steps.iter().filter_map(|step| step.finished.as_ref()?.cost).reduce(f64::add)
        })
    }
}

impl Call {
    /// The name, or "Call #N" where there is none.
    pub fn label(&self) -> String {
        if self.is_nameless() {
            format!("Call #{}", self.number)
        } else {
            self.name.trim().to_owned()
        }
    }

    /// A name of nothing but blanks is none.
    pub fn is_nameless(&self) -> bool {
        self.name.trim().is_empty()
    }

    /// What the tool gets: the arguments as a person changed them, else as the agent wrote them.
    pub fn input(&self) -> &Body {
        self.edited.as_ref().unwrap_or(&self.arguments)
    }

    pub fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    pub fn waits_for_approval(&self) -> bool {
        self.is_open() && self.approval.as_ref().is_some_and(|it| it.resolved.is_none())
    }

    /// It is with the client, which has not said what came of it. One that is only written is not yet:
    /// the model may still call others beside it.
    pub fn waits_for_client(&self) -> bool {
        let is_handed_over = self.arguments_done && self.state == CallState::Running;
        is_handed_over && self.executor == Executor::Client
    }
}

impl CallState {
    /// The state that a result leads to. Nothing is guessed from words.
    pub(crate) fn after(ok: bool, error: Option<&ErrorInfo>) -> Self {
        match error.map(|it| &it.code) {
            _ if ok => Self::Succeeded,
            Some(ErrorCode::ToolDenied | ErrorCode::ApprovalTimeout) => Self::Denied,
            Some(ErrorCode::ToolInterrupted) => Self::Interrupted,
            _ => Self::Failed,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::StreamingInput => "streaming_input",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Usage {
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            _ => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            cached_tokens: sum(self.cached_tokens, other.cached_tokens),
            reasoning_tokens: sum(self.reasoning_tokens, other.reasoning_tokens),
        }
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
