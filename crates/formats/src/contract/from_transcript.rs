//! From the message model to the contract's messages.

use std::collections::HashMap;

use transcript::{
    Answer, Call, CallState, CancelReason, Content, Continuation, Level, Millis, Part, PartKind,
    RunStatus, SaidBy, SteerState, TextRole,
};

use super::{ContinuationInfo, Message, Metadata, Role, StatusType, Statuses, ToolCallInfo};
use crate::call;
use crate::follow::step_number;

/// The messages that one of the transcript's becomes.
pub fn messages(message: &transcript::Message, statuses: Statuses) -> Vec<Message> {
    let all = statuses == Statuses::All;
    match &message.content {
        Content::Said(said) => match said.role {
            SaidBy::User => vec![Message {
                id: said.id.to_string(),
                role: Role::User,
                content: said.text.clone(),
                timestamp: message.created_at,
                metadata: Metadata::default(),
            }],
            SaidBy::System if all => {
                let id = said.id.to_string();
                vec![status(id, said.text.clone(), StatusType::Info, message.created_at)]
            }
            SaidBy::System => Vec::new(),
        },
        Content::Answer(answer) => answer_messages(answer, all),
        Content::Aside(kind) => {
            let told = aside(kind, message.created_at, |_| format!("status_{}", message.id()));
            told.filter(|it| all || is_error(it)).into_iter().collect()
        }
    }
}

fn answer_messages(answer: &Answer, all: bool) -> Vec<Message> {
    let mut messages = Vec::new();
    // Of each kind by itself: what is not told does not change the names of the others.
    let mut numbers = HashMap::new();
    for number in 1..=n_steps(answer) {
        messages.push(step(answer, number));
        messages.extend(step_calls(answer, number).map(|(part, call)| tool(part, call)));
        messages.extend(step_parts(answer, number).filter_map(steered));
        let asides = step_parts(answer, number).filter_map(|part| {
            aside(&part.kind, part.started_at, |kind| {
                let nth = numbers.entry(kind).or_insert(0_usize);
                *nth += 1;
                format!("status_{}_{kind}{nth}", answer.id)
            })
        });
        messages.extend(asides.filter(|it| all || is_error(it)));
        messages.extend(went_on(answer, number).filter(|_| all));
    }
    let is_told = |stop: &Continuation| if all { !stop.should_continue } else { is_lasting(stop) };
    messages.extend(stop(answer).filter(is_told).map(|stop| {
        // A run that was cut off has stopped when it ended.
        let at = answer.finish.as_ref().map_or(stop.at, |it| it.at);
        continuation_status(format!("status_cont_{}", answer.id), &stop, at)
    }));
    messages.extend(failure(answer));
    messages
}

/// Why the run went on after a step.
fn went_on(answer: &Answer, number: usize) -> impl Iterator<Item = Message> {
    let all = answer.continuations.iter().enumerate();
    let after_step = all.filter(move |(_, it)| it.should_continue && it.n_steps.max(1) == number);
    after_step.map(|(idx, it)| {
        continuation_status(format!("status_{}_goes_on{}", answer.id, idx + 1), it, it.at)
    })
}

/// A run that says anything has a step, also where its agent marks none.
pub(super) fn n_steps(answer: &Answer) -> usize {
    let outer = answer.steps.iter().filter(|step| step.parent.is_none()).count();
    outer.max(usize::from(answer.parts.iter().any(|part| part.parent.is_none())))
}

fn step_parts(answer: &Answer, number: usize) -> impl Iterator<Item = &Part> {
    let outer = answer.parts.iter().filter(|part| part.parent.is_none());
    outer.filter(move |part| step_number(answer, part) == number)
}

pub(super) fn step_calls(answer: &Answer, number: usize) -> impl Iterator<Item = (&Part, &Call)> {
    step_parts(answer, number).filter_map(|part| match &part.kind {
        PartKind::Call(call) => Some((part, &**call)),
        _ => None,
    })
}

/// What was said in a step, without what was taken back and what slipped in.
pub(super) fn step_text(answer: &Answer, number: usize) -> String {
    let texts = step_parts(answer, number).filter_map(|part| match &part.kind {
        PartKind::Text(text) if text.role != TextRole::Discarded && !text.leaked => {
            Some(text.text.as_str()).filter(|it| !it.trim().is_empty())
        }
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn step(answer: &Answer, number: usize) -> Message {
    let mut outer = answer.steps.iter().filter(|step| step.parent.is_none());
    let started_at = outer.nth(number - 1).map_or(answer.started_at, |step| step.started_at);
    Message {
        id: format!("{}.{number}", answer.id),
        role: Role::Assistant,
        content: step_text(answer, number),
        timestamp: started_at,
        metadata: Metadata {
            tool_calls: step_calls(answer, number).map(|(_, call)| tool_call(call)).collect(),
            ..Metadata::default()
        },
    }
}

pub(super) fn tool_call(call: &Call) -> ToolCallInfo {
    ToolCallInfo {
        id: Some(call.id.to_string()),
        name: call.label(),
        args: call::input(call).as_object().cloned(),
        args_summary: Some(call::input_summary(call)).filter(|it| !it.is_empty()),
    }
}

fn tool(part: &Part, call: &Call) -> Message {
    let content = match call.state {
        CallState::AwaitingApproval => "Waiting for approval".to_owned(),
        CallState::StreamingInput | CallState::Queued | CallState::Running => "Running".to_owned(),
        _ if call.is_open() => "Ending".to_owned(),
        _ => call::summary(call),
    };
    let outcome = call.outcome.as_ref();
    Message {
        id: format!("tool_{}", call.id),
        role: Role::Tool,
        content,
        timestamp: part.started_at,
        metadata: Metadata {
            tool_call_id: Some(call.id.to_string()),
            tool_name: Some(call.label()),
            tool_result: outcome.filter(|it| it.ok).map(|_| call::output(call)),
            tool_error: call::error_text(call),
            tool_duration_ms: outcome.map(|it| it.duration_ms),
            ..Metadata::default()
        },
    }
}

fn steered(part: &Part) -> Option<Message> {
    let PartKind::Steered(steered) = &part.kind else { return None };
    // What was given back is said in its own turn.
    (steered.state != SteerState::Returned).then(|| Message {
        id: steered.id.to_string(),
        role: Role::User,
        content: steered.text.clone(),
        timestamp: part.started_at,
        metadata: Metadata::default(),
    })
}

fn aside(kind: &PartKind, at: Millis, id: impl FnOnce(&'static str) -> String) -> Option<Message> {
    let (word, text, status_type) = match kind {
        PartKind::Notice { level: Level::Error, text } => ("problem", text, StatusType::Error),
        PartKind::Notice { level: Level::Info, text } => ("notice", text, StatusType::Info),
        PartKind::Unrecognized { raw, .. } => ("unread", raw, StatusType::Info),
        PartKind::Exchange(exchange) => ("exchange", &exchange.text, StatusType::Info),
        PartKind::Thinking(thinking) => ("thought", &thinking.text, StatusType::Thinking),
        PartKind::Text(_) | PartKind::Call(_) | PartKind::Steered(_) => return None,
    };
    Some(status(id(word), text.clone(), status_type, at))
}

/// Why the run went on or stopped, as its agent said. One that was cut off without a word of its
/// agent has stopped all the same.
pub(super) fn stop(answer: &Answer) -> Option<Continuation> {
    let said = answer.continuation().cloned();
    let cut_off = answer.finish.as_ref().is_some_and(|it| it.status != RunStatus::Completed);
    match said {
        Some(said) if !cut_off || !said.should_continue => Some(said),
        _ if cut_off => Some(Continuation {
            at: answer.started_at,
            n_steps: n_steps(answer),
            should_continue: false,
            stop_reason: stop_reason(answer.cancelled).to_owned(),
            resolved_by: "Callboard".to_owned(),
            evaluations: Vec::new(),
        }),
        said => said,
    }
}

fn stop_reason(cancelled: Option<CancelReason>) -> &'static str {
    match cancelled {
        Some(CancelReason::UserCancel) => "user_requested",
        Some(CancelReason::Timeout) => "time_limit",
        Some(CancelReason::Restart | CancelReason::Import) => "stop_requested",
        Some(CancelReason::Error) | None => "error",
    }
}

fn is_error(status: &Message) -> bool {
    status.metadata.status_type == Some(StatusType::Error)
}

fn is_lasting(stop: &Continuation) -> bool {
    !stop.should_continue && stop.stop_reason != "completed"
}

fn continuation_status(id: String, stop: &Continuation, at: Millis) -> Message {
    let verb = if stop.should_continue { "goes on" } else { "stopped" };
    let content = format!("Agent {verb}: {}", stop.stop_reason);
    let mut message = status(id, content, StatusType::Continuation, at);
    message.metadata.continuation = Some(ContinuationInfo {
        should_continue: stop.should_continue,
        stop_reason: stop.stop_reason.clone(),
        resolved_by: stop.resolved_by.clone(),
    });
    message
}

fn failure(answer: &Answer) -> Option<Message> {
    let finish = answer.finish.as_ref()?;
    let text = error_message(answer)?;
    Some(status(format!("status_error_{}", answer.id), text, StatusType::Error, finish.at))
}

/// What a failed run says of itself.
pub(super) fn error_message(answer: &Answer) -> Option<String> {
    let finish = answer.finish.as_ref().filter(|it| it.status == RunStatus::Failed)?;
    let said = finish.error.as_ref().map(|it| it.message.clone());
    Some(said.unwrap_or_else(|| "The run failed.".to_owned()))
}

fn status(id: String, content: String, status_type: StatusType, timestamp: Millis) -> Message {
    let metadata = Metadata { status_type: Some(status_type), ..Metadata::default() };
    Message { id, role: Role::Status, content, timestamp, metadata }
}
