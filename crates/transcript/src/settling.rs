//! Why a call did not run: a program says only that it failed, and the log knows better.

use crate::{Answer, Decision, ErrorCode, Event};

/// Puts the reason that `answer` knows into a result, before it is written.
pub fn settle_result(answer: &Answer, event: &mut Event) {
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
