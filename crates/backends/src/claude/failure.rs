//! Errors of the program, explained with what to do about them.

use transcript::{ErrorCode, ErrorInfo};

use super::text::shortened;
use super::wire::TurnResult;
use crate::Exit;

/// Returns the error of a turn that failed. `kind` is Claude Code's name for the error of its model
/// service.
pub(super) fn of_turn(result: &TurnResult, kind: Option<&str>) -> ErrorInfo {
    let errors = result.errors.iter().flatten().map(String::as_str);
    let said = match &result.result {
        Some(text) if !text.trim().is_empty() => text.clone(),
        _ => errors.collect::<Vec<_>>().join("; "),
    };
    let said = shortened(said.trim_start_matches("API Error: ").trim_end_matches('.'));
    let status = result.api_error_status.unwrap_or(0);
    let is_too_long = result.terminal_reason.as_deref() == Some("prompt_too_long");
    let (code, message) = match (kind.unwrap_or_default(), status) {
        _ if is_too_long => (
            ErrorCode::ContextTooLong,
            format!(
                "The conversation no longer fits into the model's context ({said}). Send /compact, \
                 or start a new session."
            ),
        ),
        ("authentication_failed" | "oauth_org_not_allowed", _) | (_, 401 | 403) => (
            ErrorCode::UpstreamAuth,
            format!(
                "Claude Code could not log in ({said}). Run claude in a terminal and log in, or \
                 set ANTHROPIC_API_KEY for this agent."
            ),
        ),
        ("billing_error", _) | (_, 402) => (
            ErrorCode::RateLimitUpstream,
            format!("The account of Claude Code has no credit left ({said}). Check its billing."),
        ),
        ("rate_limit", _) | (_, 429 | 529) => (
            ErrorCode::RateLimitUpstream,
            format!("The model service asks Claude Code to slow down ({said}). Try again later."),
        ),
        ("max_output_tokens", _) => (
            ErrorCode::UpstreamError,
            format!("The answer became too long ({said}). Ask for it in parts."),
        ),
        (_, 404) => (
            ErrorCode::UpstreamError,
            format!("The model service does not know the model ({said}). Choose another."),
        ),
        (_, 400..500) => (
            ErrorCode::UpstreamError,
            format!("The model service refused the request of Claude Code ({said})."),
        ),
        _ if result.subtype == "error_max_turns" => (
            ErrorCode::ToolIterationLimit,
            format!(
                "Claude Code stopped at its limit of turns ({said}). Send a message to continue."
            ),
        ),
        _ if result.subtype.starts_with("error") => (
            ErrorCode::AgentExited,
            format!("Claude Code could not go on ({said}). If this persists, start a new session."),
        ),
        _ => (
            ErrorCode::UpstreamError,
            format!("The model service failed ({said}). Try again in a while."),
        ),
    };
    ErrorInfo::new(code, message)
}

/// Returns the error of a run during which the Claude Code process ended.
pub(super) fn exited(who: &str, exit: &Exit) -> ErrorInfo {
    let how = exit.how();
    let message = match exit.stderr_tail().as_str() {
        "" => format!(
            "{who} ended in the middle of the run ({how}) and did not say why. Send the \
             message again to go on."
        ),
        stderr_tail => format!("{who} ended in the middle of the run ({how}): {stderr_tail}"),
    };
    ErrorInfo::new(ErrorCode::AgentExited, message)
}
