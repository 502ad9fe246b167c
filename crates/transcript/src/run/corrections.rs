//! Corrections to an agent's events before they are written to the log.

use crate::{Decision, ErrorCode, Event, Executor, RunMessage};

/// Returns the start event to write before `event`, if the part or tool call of `event` was never
/// started. Not every program reports the start of a text.
pub fn implied_start(run: &RunMessage, event: &Event) -> Option<Event> {
    match event {
        Event::TextDelta { part_id, parent_call_id, .. }
        | Event::TextDone { part_id, parent_call_id, .. } => (!run.has_text(part_id)).then(|| {
            Event::TextStart { part_id: part_id.clone(), parent_call_id: parent_call_id.clone() }
        }),
        Event::ThinkingDelta { part_id, parent_call_id, .. }
        | Event::ThinkingDone { part_id, parent_call_id, .. } => {
            (!run.has_thinking(part_id)).then(|| Event::ThinkingStart {
                part_id: part_id.clone(),
                parent_call_id: parent_call_id.clone(),
            })
        }
        Event::ToolArgumentsDelta { call_id, .. } | Event::ToolOutputDelta { call_id, .. } => {
            run.call(call_id).is_none().then(|| Event::ToolCallStart {
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

/// Sets the error code of a failed tool result according to the outcome of the approval request:
/// denied, timed out or withdrawn. Other events stay unchanged.
pub fn correct_result_code(run: &RunMessage, event: &mut Event) {
    let Event::ToolResult { call_id, ok: false, error: Some(error), .. } = event else {
        return;
    };
    let approval = run.call(call_id).and_then(|it| it.approval.as_ref());
    match approval.and_then(|it| it.resolved.as_ref()).map(|it| it.decision) {
        Some(Decision::Rejected) => error.code = ErrorCode::ToolDenied,
        Some(Decision::TimedOut) => error.code = ErrorCode::ApprovalTimeout,
        Some(Decision::Withdrawn) => error.code = ErrorCode::ToolInterrupted,
        Some(Decision::Accepted) | None => (),
    }
}
