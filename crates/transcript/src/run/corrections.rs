//! Corrections to an agent's events before they are written to the log.

use crate::{Decision, ErrorCode, Event, Executor, RunMessage};

/// The record to write before `event`, if `event` speaks of something that never began. Not every
/// program says when a text starts, and some give it whole.
pub fn implied_start(answer: &RunMessage, event: &Event) -> Option<Event> {
    match event {
        Event::TextDelta { part_id, parent_call_id, .. }
        | Event::TextDone { part_id, parent_call_id, .. } => {
            (!answer.knows_text(part_id)).then(|| Event::TextStart {
                part_id: part_id.clone(),
                parent_call_id: parent_call_id.clone(),
            })
        }
        Event::ThinkingDelta { part_id, parent_call_id, .. }
        | Event::ThinkingDone { part_id, parent_call_id, .. } => (!answer.knows_thinking(part_id))
            .then(|| Event::ThinkingStart {
                part_id: part_id.clone(),
                parent_call_id: parent_call_id.clone(),
            }),
        Event::ToolArgumentsDelta { call_id, .. } | Event::ToolOutputDelta { call_id, .. } => {
            answer.call(call_id).is_none().then(|| Event::ToolCallStart {
                call_id: call_id.clone(),
                provider_call_id: None,
                tool_name: String::new(),
                arguments: None,
                parent_call_id: None,
                executor: Executor::Agent,
            })
        }
        _ => None,
    }
}

/// Puts the reason that `answer` knows into a result, before it is written.
pub fn correct_result_code(answer: &RunMessage, event: &mut Event) {
    let Event::ToolResult { call_id, ok: false, error: Some(error), .. } = event else {
        return;
    };
    let approval = answer.call(call_id).and_then(|it| it.approval.as_ref());
    match approval.and_then(|it| it.resolved.as_ref()).map(|it| it.decision) {
        Some(Decision::Rejected) => error.code = ErrorCode::ToolDenied,
        Some(Decision::TimedOut) => error.code = ErrorCode::ApprovalTimeout,
        Some(Decision::Withdrawn) => error.code = ErrorCode::ToolInterrupted,
        Some(Decision::Accepted) | None => (),
    }
}
