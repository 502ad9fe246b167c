//! `format=callboard`: a message as the JSON that our own clients read. `content` is the final text
//! alone, `toolCalls` carry the words that led to them, and `parts` has everything in order.

use serde_json::{Map, Value, json};
use transcript::{
    Answer, Body, Call, CallState, Content, Decision, Level, Message, Part, PartKind, Said, SaidBy,
    TextRole, Validation,
};

pub fn message(message: &Message) -> Value {
    let mut fields = object(json!({ "id": message.id(), "createdAt": message.created_at }));
    match &message.content {
        Content::Said(said) => fields.extend(said_fields(said)),
        Content::Answer(answer) => fields.extend(answer_fields(answer)),
        Content::Aside(kind) => fields.extend(aside_fields(kind)),
    }
    if message.superseded {
        fields.insert("superseded".to_owned(), Value::Bool(true));
    }
    without_nulls(fields)
}

fn said_fields(said: &Said) -> Map<String, Value> {
    let role = match said.role {
        SaidBy::User => "user",
        SaidBy::System => "system",
    };
    object(json!({
        "role": role,
        "content": said.text,
        "clientId": said.client_id,
        "attachments": (!said.attachments.is_empty()).then_some(&said.attachments),
        "from": said.from,
    }))
}

fn answer_fields(answer: &Answer) -> Map<String, Value> {
    let calls: Vec<Value> = answer.calls().map(|call| tool_call(answer, call)).collect();
    let finish = answer.finish.as_ref();
    object(json!({
        "role": "assistant",
        "content": answer.content(),
        "agent": answer.agent,
        "model": answer.model,
        "trigger": answer.trigger,
        "parts": answer.parts.iter().map(part).collect::<Vec<_>>(),
        "toolCalls": calls,
        "toolActivity": {
            "isActive": answer.is_open(),
            "currentStep": answer.current_call().map(Call::label),
        },
        "status": finish.map(|it| it.status),
        "interrupted": answer.was_interrupted().then_some(true),
        "cancelReason": answer.cancelled,
        "usage": answer.usage(),
        "cost": finish.and_then(|it| it.cost),
        "durationMs": finish.map(|it| it.duration_ms),
        "error": finish.and_then(|it| it.error.as_ref()),
    }))
}

fn aside_fields(kind: &PartKind) -> Map<String, Value> {
    let mut fields = object(json!({ "role": "system", "parts": [part_fields(kind)] }));
    fields.insert("content".to_owned(), Value::String(aside_text(kind)));
    fields
}

fn aside_text(kind: &PartKind) -> String {
    match kind {
        PartKind::Notice { text, .. } => text.clone(),
        PartKind::Unrecognized { raw, .. } => raw.clone(),
        PartKind::Exchange(exchange) => exchange.text.clone(),
        PartKind::Steered(steered) => steered.text.clone(),
        PartKind::Text(_) | PartKind::Thinking(_) | PartKind::Call(_) => String::new(),
    }
}

fn tool_call(answer: &Answer, call: &Call) -> Value {
    let outcome = call.outcome.as_ref();
    without_nulls(object(json!({
        "id": call.id,
        "providerCallId": call.provider_call_id,
        "name": call.label(),
        "args": parsed_arguments(&call.arguments),
        "argsText": text_of(&call.arguments),
        "argsIncomplete": call.arguments_incomplete.then_some(true),
        "summary": call.summary,
        "state": call.state.as_str(),
        "status": seed_status(call.state),
        "result": outcome.and_then(|it| it.result.as_ref()).map(json_of),
        "output": (!call.stdout.is_empty()).then(|| text_of(&call.stdout)),
        "stderr": (!call.stderr.is_empty()).then(|| text_of(&call.stderr)),
        "error": outcome.and_then(|it| it.error.as_ref()),
        "commentary": answer.commentary(call),
        "validation": validation(call),
        "executor": call.executor,
        "durationMs": outcome.map(|it| it.duration_ms),
        "truncated": outcome.and_then(|it| it.truncated),
        "attempts": (!call.retries.is_empty()).then(|| call.retries.len() + 1),
    })))
}

/// The four words of seed 000.
fn seed_status(state: CallState) -> &'static str {
    match state {
        CallState::StreamingInput | CallState::AwaitingApproval | CallState::Queued => "pending",
        CallState::Running => "running",
        CallState::Succeeded => "completed",
        CallState::Failed | CallState::Denied | CallState::Interrupted => "error",
    }
}

/// Whether a person had to agree, and what became of it.
fn validation(call: &Call) -> &'static str {
    let resolved = call.approval.as_ref().and_then(|it| it.resolved.as_ref());
    match (call.validation, resolved.map(|it| it.decision)) {
        (_, Some(Decision::Accepted)) => "accepted",
        (_, Some(Decision::Rejected | Decision::TimedOut | Decision::Withdrawn)) => "rejected",
        (Some(Validation::Pending), None) => "pending",
        (Some(Validation::NotRequired) | None, None) => "not_required",
    }
}

fn part(part: &Part) -> Value {
    let mut fields = object(part_fields(&part.kind));
    fields.insert("parentCallId".to_owned(), json!(part.parent));
    without_nulls(fields)
}

fn part_fields(kind: &PartKind) -> Value {
    match kind {
        PartKind::Text(text) => {
            let role = match text.role {
                TextRole::Undecided => "undecided",
                TextRole::Commentary { .. } => "commentary",
                TextRole::Final => "final",
                TextRole::Discarded => "discarded",
            };
            json!({
                "type": "text", "id": text.id, "text": text.text, "role": role, "open": text.open,
                "leaked": text.leaked.then_some(true),
            })
        }
        PartKind::Thinking(it) => {
            json!({ "type": "thinking", "id": it.id, "text": it.text, "open": it.open })
        }
        PartKind::Call(call) => json!({ "type": "tool_call", "id": call.id }),
        PartKind::Steered(it) => {
            json!({ "type": "steered", "id": it.id, "text": it.text, "state": it.state })
        }
        PartKind::Exchange(it) => json!({
            "type": "exchange", "id": it.id, "direction": it.direction, "agent": it.agent,
            "sessionId": it.peer_session_id, "responseId": it.peer_response_id, "text": it.text,
            "ok": it.outcome.as_ref().map(|it| it.ok),
            "result": it.outcome.as_ref().and_then(|it| it.result.as_ref()),
            "error": it.outcome.as_ref().and_then(|it| it.error.as_ref()),
        }),
        PartKind::Notice { level, text } => {
            let level = match level {
                Level::Info => "info",
                Level::Error => "error",
            };
            json!({ "type": "notice", "level": level, "text": text })
        }
        PartKind::Unrecognized { source, raw } => {
            json!({ "type": "unrecognized", "source": source, "raw": raw })
        }
    }
}

/// Arguments as an object; absent when they do not parse. Missing ones are none.
fn parsed_arguments(arguments: &Body) -> Option<Value> {
    let text = text_of(arguments);
    if text.trim().is_empty() {
        return Some(json!({}));
    }
    serde_json::from_str(&text).ok().filter(Value::is_object)
}

fn json_of(body: &Body) -> Value {
    let text = text_of(body);
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// The whole text, or as much as the transcript kept of it.
fn text_of(body: &Body) -> String {
    body.whole().unwrap_or_else(|| {
        format!("{}\n… {} bytes left out …\n{}", body.head(), body.omitted(), body.tail())
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn without_nulls(mut fields: Map<String, Value>) -> Value {
    fields.retain(|_, value| !value.is_null());
    Value::Object(fields)
}
