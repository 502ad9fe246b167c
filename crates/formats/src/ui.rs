//! `format=ui`: messages as the AI SDK (5 to 7) keeps them, `UIMessage`.
//!
//! `stream.rs` writes a run as the chunks that its client folds into the same message, `incoming.rs`
//! reads the client's requests. Everything without a part of its own is a data part:
//! `data-steered`, `data-exchange`, `data-notice` and `data-unrecognized`. Left out are what happened
//! outside any run and what sub-agents did. Parts of imported messages go out as they came in
//! (`foreign.rs`).

pub(crate) mod foreign;
pub(crate) mod import;
mod incoming;
mod stream;

use serde_json::{Map, Value, json};
use transcript::{
    Attachment, Call, Content, Decision, Message, MessageRole, Part, PartKind, ResponseId,
    RunMessage, TextRole, UserMessage,
};

pub use import::import;
pub use incoming::{Request, Trigger, request};
pub use stream::Stream;

use crate::{call, sent};

#[cfg(test)]
mod tests;

/// Major version of the AI SDK that a client uses. Requests do not contain it, so every version but
/// the default has to be configured in the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// AI SDK 5, which has no approvals and no reason for the end of a run.
    V5,
    /// AI SDK 6, which has approvals.
    #[default]
    V6,
    /// AI SDK 7, which also gets the decisions of other clients.
    V7,
}

impl Profile {
    fn knows_approvals(self) -> bool {
        self != Self::V5
    }
}

/// Function that returns the URL at which an attached file can be fetched.
pub type FileUrl<'a> = &'a dyn Fn(&Attachment) -> String;

/// Converts a message of the transcript to a `UIMessage`; `None` for events outside any run.
pub fn message(message: &Message, profile: Profile, file_url: FileUrl<'_>) -> Option<Value> {
    let id = message.id();
    match &message.content {
        Content::User(input) => {
            let role = match input.role {
                MessageRole::User => "user",
                MessageRole::System => "system",
            };
            let (metadata, parts) = (input_metadata(message, input), sent::parts(input, file_url));
            Some(json!({ "id": id, "role": role, "metadata": metadata, "parts": parts }))
        }
        Content::Run(answer) => {
            let parts = parts(answer, profile);
            let metadata = metadata(answer);
            Some(json!({ "id": id, "role": "assistant", "metadata": metadata, "parts": parts }))
        }
        Content::Aside(_) => None,
    }
}

/// Returns the metadata of a user or system message. The client's own fields take precedence.
fn input_metadata(message: &Message, input: &UserMessage) -> Value {
    let mut metadata = json!({ "createdAt": message.created_at });
    if let Some(from) = &input.from {
        metadata["from"] = json!(from);
    }
    match input.sent.as_ref().and_then(|it| it.metadata.as_ref()) {
        Some(Value::Object(own)) => {
            own.iter().for_each(|(name, value)| metadata[name] = value.clone());
            metadata
        }
        Some(own) => own.clone(),
        None => metadata,
    }
}

fn parts(answer: &RunMessage, profile: Profile) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut n_steps = 0;
    let mut start_steps = |up_to: usize, parts: &mut Vec<Value>| {
        let passed = answer.steps.get(n_steps..up_to).unwrap_or_default();
        let outer = passed.iter().filter(|step| step.parent.is_none());
        parts.extend(outer.map(|_| json!({ "type": "step-start" })));
        n_steps = n_steps.max(up_to);
    };
    let outer = answer.parts.iter().filter(|part| part.parent.is_none());
    for (idx, part) in outer.enumerate() {
        start_steps(part.step.map_or(0, |step| step + 1), &mut parts);
        parts.push(self::part(answer, idx, part, profile));
    }
    start_steps(answer.steps.len(), &mut parts);
    let mut last_step = parts.rsplit(|it| it["type"] == "step-start");
    let has_calls =
        last_step.next().is_some_and(|it| it.iter().any(|it| it["toolCallId"] != Value::Null));
    // The first releases take no message without parts. Clients that send results by themselves do so
    // whenever the last step is nothing but calls that have ended; a run that is over waits for none.
    if parts.is_empty() || (has_calls && !answer.is_open()) {
        parts.push(json!({ "type": "step-start" }));
    }
    parts
}

fn part(answer: &RunMessage, idx: usize, part: &Part, profile: Profile) -> Value {
    let state = |open| if open { "streaming" } else { "done" };
    let (mut value, discarded) = match &part.kind {
        PartKind::Text(text) => {
            let value = json!({ "type": "text", "text": text.text, "state": state(text.open) });
            (value, text.role == TextRole::Discarded)
        }
        PartKind::Thinking(it) => {
            let (text, state) = (&it.text, state(it.open));
            let value = json!({ "type": "reasoning", "id": it.id, "text": text, "state": state });
            (value, it.discarded)
        }
        PartKind::Call(call) => (tool_part(call, profile), false),
        kind => {
            let brought = foreign::part(kind, profile);
            (brought.unwrap_or_else(|| data(&answer.id, idx, kind)), false)
        }
    };
    for (name, extra) in &part.extras {
        value[name] = extra.clone();
    }
    if discarded {
        value["providerMetadata"]["callboard"] = discarded_mark()["callboard"].take();
    }
    value
}

/// Returns the provider metadata that marks a discarded text, which a client cannot take back once
/// it has shown it.
pub(crate) fn discarded_mark() -> Value {
    json!({ "callboard": { "discarded": true } })
}

fn tool_part(call: &Call, profile: Profile) -> Value {
    let mut part = Map::new();
    let mut set = |name: &str, value: Value| part.insert(name.to_owned(), value);
    set("type", json!(format!("tool-{}", call.label())));
    set("toolCallId", json!(call.id));
    let approval = approval(call).filter(|_| profile.knows_approvals());
    let is_refused = approval.as_ref().is_some_and(|it| it["approved"] == false);
    let state = match &call.outcome {
        Some(outcome) if outcome.ok => {
            set("output", call::output(call));
            "output-available"
        }
        // Even if it failed: clients do not accept an error for a denied call.
        Some(_) if is_refused => "output-denied",
        Some(_) => {
            set("errorText", json!(call::error_text(call)));
            "output-error"
        }
        None if !call.arguments_done => "input-streaming",
        None if approval.as_ref().is_some_and(|it| it.get("approved").is_none()) => {
            "approval-requested"
        }
        None if approval.is_some() => "approval-responded",
        None => "input-available",
    };
    set("state", json!(state));
    if state != "input-streaming" {
        set("input", call::input(call));
    }
    if let Some(approval) = approval {
        set("approval", approval);
    }
    Value::Object(part)
}

pub(crate) fn approval_id(call: &Call) -> String {
    format!("approval_{}", call.id)
}

fn approval(call: &Call) -> Option<Value> {
    let asked = call.approval.as_ref()?;
    let mut approval = json!({ "id": approval_id(call) });
    if let Some(resolved) = &asked.resolved {
        approval["approved"] = json!(resolved.decision == Decision::Accepted);
        if let Some(reason) = reason(call) {
            approval["reason"] = json!(reason);
        }
    }
    Some(approval)
}

/// Returns the reason that a person gave for a decision about a tool call, or the reason why nobody
/// decided.
pub(crate) fn reason(call: &Call) -> Option<String> {
    let resolved = call::resolution(call)?;
    let why = match resolved.decision {
        Decision::Accepted | Decision::Rejected => None,
        Decision::TimedOut => Some("Nobody decided in time.".to_owned()),
        Decision::Withdrawn => Some("The run ended first.".to_owned()),
    };
    resolved.feedback.clone().or(why)
}

/// Returns the chunk of a part that has no type of its own: an imported part, or a data part.
fn aside(run: &ResponseId, idx: usize, kind: &PartKind) -> Value {
    foreign::chunk(kind).unwrap_or_else(|| data(run, idx, kind))
}

pub(crate) fn data(run: &ResponseId, idx: usize, kind: &PartKind) -> Value {
    let numbered = format!("{run}.aside{idx}");
    let (name, id, data) = match kind {
        PartKind::Steered(it) => {
            ("steered", it.id.to_string(), json!({ "text": it.text, "state": it.state }))
        }
        PartKind::Exchange(it) => {
            let mut data = json!({ "direction": it.direction, "agent": it.agent, "text": it.text });
            if let Some(outcome) = &it.outcome {
                data["ok"] = json!(outcome.ok);
                data["result"] = json!(outcome.result);
                data["error"] = json!(outcome.error);
            }
            ("exchange", it.id.to_string(), data)
        }
        PartKind::Notice { level, text } => {
            ("notice", numbered, json!({ "level": level, "text": text }))
        }
        PartKind::Unrecognized { source, raw, lines } => {
            let mut data = json!({ "source": source, "raw": raw });
            if *lines > 1 {
                data["lines"] = json!(lines);
            }
            ("unrecognized", numbered, data)
        }
        PartKind::Text(_) | PartKind::Thinking(_) | PartKind::Call(_) => {
            ("part", numbered, Value::Null)
        }
    };
    json!({ "type": format!("data-{name}"), "id": id, "data": data })
}

/// Returns the metadata of a run's message that is known when the run starts.
fn first_metadata(answer: &RunMessage) -> Map<String, Value> {
    let metadata = json!({
        "createdAt": answer.started_at,
        "agent": answer.agent,
        "model": answer.model,
    });
    without_nulls(metadata)
}

/// Returns the metadata of a run's message that is known when the run has ended.
fn last_metadata(answer: &RunMessage) -> Map<String, Value> {
    let Some(finish) = &answer.finish else { return Map::new() };
    without_nulls(json!({
        "status": finish.status,
        "finishReason": finish_reason(answer),
        "usage": answer.usage(),
        "cost": finish.cost,
        "durationMs": finish.duration_ms,
        "error": finish.error,
    }))
}

fn metadata(answer: &RunMessage) -> Map<String, Value> {
    let mut metadata = first_metadata(answer);
    metadata.extend(last_metadata(answer));
    metadata
}

/// Returns why the model stopped in the last step, as a value that every client accepts. `None` if
/// the step has not finished.
pub(crate) fn finish_reason(answer: &RunMessage) -> Option<&'static str> {
    let mut outer = answer.steps.iter().filter(|step| step.parent.is_none());
    let last = outer.next_back()?.finished.as_ref()?;
    Some(known_reason(&last.reason))
}

pub(crate) fn known_reason(reason: &str) -> &'static str {
    match reason.replace('_', "-").as_str() {
        "stop" => "stop",
        "length" => "length",
        "content-filter" => "content-filter",
        "tool-calls" => "tool-calls",
        "error" => "error",
        _ => "other",
    }
}

fn without_nulls(value: Value) -> Map<String, Value> {
    let fields = value.as_object().cloned().unwrap_or_default();
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}
