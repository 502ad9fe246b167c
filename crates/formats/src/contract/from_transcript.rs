//! From the message model to the contract's messages.

use std::collections::HashMap;

use transcript::{
    Call, CallOutcome, CallState, CancelReason, Content, Continuation, Level, MessageRole, Millis,
    Part, PartKind, RunMessage, RunStatus, Seq, SteerState,
};

use super::{ContinuationInfo, Message, Metadata, Role, StatusType, Statuses, ToolCallInfo};
use crate::call;
use crate::follow::step_number;
use crate::import::step_id;

/// Converts a message of the transcript to messages of `format=contract`.
pub fn messages(message: &transcript::Message, statuses: Statuses) -> Vec<Message> {
    let all = statuses == Statuses::All;
    match &message.content {
        Content::User(input) => match input.role {
            MessageRole::User => vec![Message {
                id: input.id.to_string(),
                role: Role::User,
                content: input.text.clone(),
                timestamp: message.created_at,
                metadata: Metadata::default(),
            }],
            MessageRole::System if all => {
                let id = input.id.to_string();
                vec![status(id, input.text.clone(), StatusType::Info, message.created_at)]
            }
            MessageRole::System => Vec::new(),
        },
        Content::Run(answer) => answer_messages(answer, all),
        Content::Aside(kind) => {
            let status = aside(kind, message.created_at, |_| format!("status_{}", message.id()));
            status.filter(|it| all || is_error(it)).into_iter().collect()
        }
    }
}

/// Converts a run to messages, in the order of the sequence numbers with which they began.
fn answer_messages(answer: &RunMessage, all: bool) -> Vec<Message> {
    let mut placed: Vec<((Seq, bool), Message)> = Vec::new();
    // Counted for each kind, so that left out placed do not change the names of the others.
    let mut numbers = HashMap::new();
    for (idx, parts) in parts_by_step(answer).into_iter().enumerate() {
        let mut step = step(answer, idx + 1, &parts);
        // Without all statuses, results follow their calls and nothing stands between them.
        let calls = parts.iter().filter(|part| !all && call_of(part).is_some());
        let last_call = calls.map(|part| part.first).max().unwrap_or(Seq(0));
        for part in parts {
            let mut add = |message: Option<Message>| {
                placed.extend(message.map(|it| ((part.first, false), it)))
            };
            let after_calls = (part.first.max(last_call), part.first < last_call);
            match &part.kind {
                PartKind::Text(_) if part.kind.has_visible_text() => add(step.take()),
                PartKind::Text(_) => (),
                PartKind::Call(call) => {
                    add(step.take());
                    add(all.then(|| call_status(part, call)));
                    add(Some(tool(part, call)));
                    let result = call.outcome.as_ref();
                    placed.extend(
                        result.filter(|_| all).map(|it| ((it.seq, false), result_status(call, it))),
                    );
                }
                PartKind::Steered(_) => {
                    placed.extend(steered(part).map(|it| (after_calls, it)));
                }
                kind => {
                    let status = aside(kind, part.started_at, |kind| {
                        let nth = numbers.entry(kind).or_insert(0_usize);
                        *nth += 1;
                        format!("status_{}_{kind}{nth}", answer.id)
                    });
                    let status = status.filter(|it| all || is_error(it));
                    placed.extend(status.map(|it| (after_calls, it)));
                }
            }
        }
    }
    placed.sort_by_key(|(place, _)| *place);
    let mut messages: Vec<Message> = Vec::new();
    for (_, mut message) in placed {
        // A step may have begun while results of the one before it still came.
        if let Some(before) = messages.last().filter(|_| message.role == Role::Assistant) {
            message.timestamp = message.timestamp.max(before.timestamp);
        }
        messages.push(message);
    }
    for status in went_on(answer).filter(|_| all) {
        let place = messages.partition_point(|it| it.timestamp <= status.timestamp);
        messages.insert(place, status);
    }
    let is_shown = |stop: &Continuation| if all { !stop.should_continue } else { is_lasting(stop) };
    messages.extend(stop(answer).filter(is_shown).map(|stop| {
        // A run that was cut off has stopped when it ended.
        let at = answer.finish.as_ref().map_or(stop.at, |it| it.at);
        continuation_status(format!("status_cont_{}", answer.id), &stop, at)
    }));
    messages.extend(failure(answer));
    messages
}

/// Returns the parts of each step, without those of sub-agents. Parts before the first step belong
/// to it.
fn parts_by_step(answer: &RunMessage) -> Vec<Vec<&Part>> {
    let mut n_outer = 0;
    let numbers: Vec<usize> = answer
        .steps
        .iter()
        .map(|step| {
            n_outer += usize::from(step.parent.is_none());
            n_outer.max(1)
        })
        .collect();
    let mut steps = vec![Vec::new(); n_steps(answer)];
    for part in answer.parts.iter().filter(|part| part.parent.is_none()) {
        let number = part.step.and_then(|it| numbers.get(it)).copied().unwrap_or(1);
        steps[number - 1].push(part);
    }
    steps
}

/// Returns a status message for each time that the run continued after a step.
fn went_on(answer: &RunMessage) -> impl Iterator<Item = Message> {
    let all = answer.continuations.iter().enumerate();
    all.filter(|(_, it)| it.should_continue).map(|(idx, it)| {
        continuation_status(format!("status_{}_goes_on{}", answer.id, idx + 1), it, it.at)
    })
}

/// Returns the number of steps, without those of sub-agents. A run with any part has at least one
/// step, even if its agent reports none.
pub(super) fn n_steps(answer: &RunMessage) -> usize {
    let outer = answer.steps.iter().filter(|step| step.parent.is_none()).count();
    outer.max(usize::from(answer.parts.iter().any(|part| part.parent.is_none())))
}

fn step_parts(answer: &RunMessage, number: usize) -> impl Iterator<Item = &Part> {
    let outer = answer.parts.iter().filter(|part| part.parent.is_none());
    outer.filter(move |part| step_number(answer, part) == number)
}

pub(super) fn step_calls(
    answer: &RunMessage,
    number: usize,
) -> impl Iterator<Item = (&Part, &Call)> {
    step_parts(answer, number).filter_map(|part| Some((part, call_of(part)?)))
}

/// Returns the text of a step, without discarded and leaked texts.
pub(super) fn step_text(answer: &RunMessage, number: usize) -> String {
    text_of(step_parts(answer, number))
}

fn text_of<'a>(parts: impl Iterator<Item = &'a Part>) -> String {
    let texts =
        parts.filter(|part| part.kind.has_visible_text()).filter_map(|part| match &part.kind {
            PartKind::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Returns the assistant message of a step; `None` if the step has neither visible text nor tool
/// calls.
fn step(answer: &RunMessage, number: usize, parts: &[&Part]) -> Option<Message> {
    let is_of_message =
        |part: &&&Part| part.kind.has_visible_text() || matches!(part.kind, PartKind::Call(_));
    let first = parts.iter().find(is_of_message)?;
    // A step that begins with a call is known from its start, which the tool message may be later than.
    let begins_with_call = parts.first().is_some_and(|part| call_of(part).is_some());
    let step = answer.steps.get(first.step.unwrap_or_default()).filter(|_| begins_with_call);
    let calls = parts.iter().filter_map(|part| call_of(part));
    Some(Message {
        id: step_id(&answer.id, number),
        role: Role::Assistant,
        content: text_of(parts.iter().copied()),
        timestamp: step.map_or(first.started_at, |it| it.started_at.min(first.started_at)),
        metadata: Metadata { tool_calls: calls.map(tool_call).collect(), ..Metadata::default() },
    })
}

fn call_of(part: &Part) -> Option<&Call> {
    match &part.kind {
        PartKind::Call(call) => Some(call),
        _ => None,
    }
}

pub(super) fn tool_call(call: &Call) -> ToolCallInfo {
    ToolCallInfo {
        id: Some(call.id.to_string()),
        name: call.label(),
        args: (!call.input().is_empty()).then(|| call::input(call).as_object().cloned()).flatten(),
        args_summary: Some(call::input_summary(call)).filter(|it| !it.is_empty()),
    }
}

/// Content of the tool message of a call that waits for an approval.
pub(super) const WAITING: &str = "Waiting for approval";
pub(super) const RUNNING: &str = "Running";
pub(super) const ENDING: &str = "Ending";

fn tool(part: &Part, call: &Call) -> Message {
    let content = match call.state {
        CallState::AwaitingApproval => WAITING,
        CallState::StreamingInput | CallState::Queued | CallState::Running => RUNNING,
        _ if call.is_open() => ENDING,
        _ => call::summary(call),
    };
    let content = content.to_owned();
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
            tool_duration_ms: outcome.and_then(|it| it.duration_ms),
            ..Metadata::default()
        },
    }
}

/// Prefixes of the ids of status messages about tool calls. An import skips these messages, because
/// the tool messages contain the same information.
pub(super) const CALL_STATUSES: [&str; 2] = ["status_call_", "status_result_"];

fn call_status(part: &Part, call: &Call) -> Message {
    let content = format!("{}({})", call.label(), call::input_summary(call));
    let id = format!("{}{}", CALL_STATUSES[0], call.id);
    status(id, content, StatusType::ToolCall, part.started_at)
}

fn result_status(call: &Call, outcome: &CallOutcome) -> Message {
    let content = format!("{}: {}", call.label(), outcome.summary);
    let id = format!("{}{}", CALL_STATUSES[1], call.id);
    status(id, content, StatusType::ToolResult, outcome.at)
}

fn steered(part: &Part) -> Option<Message> {
    let PartKind::Steered(steered) = &part.kind else { return None };
    // A returned message is sent again later, as a message of its own.
    (steered.state != SteerState::Returned).then(|| Message {
        id: steered.id.to_string(),
        role: Role::User,
        content: steered.text.clone(),
        timestamp: part.started_at,
        metadata: Metadata::default(),
    })
}

fn aside(kind: &PartKind, at: Millis, id: impl FnOnce(&'static str) -> String) -> Option<Message> {
    let counted;
    let (word, text, status_type) = match kind {
        PartKind::Notice { level: Level::Error, text } => ("problem", text, StatusType::Error),
        PartKind::Notice { level: Level::Info, text } => ("notice", text, StatusType::Info),
        PartKind::Unrecognized { raw, lines: 1, .. } => ("unread", raw, StatusType::Info),
        PartKind::Unrecognized { raw, lines, .. } => {
            counted = format!("{lines} lines could not be read. The first: {raw}");
            ("unread", &counted, StatusType::Info)
        }
        PartKind::Exchange(exchange) => ("exchange", &exchange.text, StatusType::Info),
        PartKind::Thinking(thinking) => ("thought", &thinking.text, StatusType::Thinking),
        PartKind::Text(_) | PartKind::Call(_) | PartKind::Steered(_) => return None,
    };
    Some(status(id(word), text.clone(), status_type, at))
}

/// Returns the agent's last decision to continue or stop. For a run that was cut off without a
/// decision to stop, returns a stop with the reason.
pub(super) fn stop(answer: &RunMessage) -> Option<Continuation> {
    let decision = answer.continuation().cloned();
    let cut_off = answer.finish.as_ref().is_some_and(|it| it.status != RunStatus::Completed);
    match decision {
        Some(stop) if !cut_off || !stop.should_continue => Some(stop),
        _ if cut_off => Some(Continuation {
            at: answer.started_at,
            n_steps: n_steps(answer),
            should_continue: false,
            stop_reason: stop_reason(answer.cancelled).to_owned(),
            resolved_by: "Callboard".to_owned(),
            evaluations: Vec::new(),
        }),
        decision => decision,
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

fn failure(answer: &RunMessage) -> Option<Message> {
    let finish = answer.finish.as_ref()?;
    let text = error_message(answer)?;
    Some(status(format!("status_error_{}", answer.id), text, StatusType::Error, finish.at))
}

/// Returns the error message of a failed run; `None` for other runs.
pub(super) fn error_message(answer: &RunMessage) -> Option<String> {
    let finish = answer.finish.as_ref().filter(|it| it.status == RunStatus::Failed)?;
    let message = finish.error.as_ref().map(|it| it.message.clone());
    Some(message.unwrap_or_else(|| "The run failed.".to_owned()))
}

fn status(id: String, content: String, status_type: StatusType, timestamp: Millis) -> Message {
    let metadata = Metadata { status_type: Some(status_type), ..Metadata::default() };
    Message { id, role: Role::Status, content, timestamp, metadata }
}
