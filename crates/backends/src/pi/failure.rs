//! Errors of Pi and of the model service behind it, explained with what to do about them.

use serde_json::Value;
use transcript::{ErrorCode, ErrorInfo};

use crate::Exit;

/// Returns the error for an error message of Pi or its model service.
pub(super) fn reported(message: &str) -> ErrorInfo {
    let (status, _) = split(message);
    explained(cause(status, &message.to_ascii_lowercase()), &words(message))
}

/// Returns the readable part of an error message, which may hold the JSON of a model service.
pub(crate) fn words(message: &str) -> String {
    let (status, body) = split(message);
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let texts = [&json["error"]["message"], &json["message"], &json["error"]];
    let said = shortened(texts.into_iter().find_map(Value::as_str).unwrap_or(body));
    match status {
        _ if !said.is_empty() => said,
        Some(status) => status.to_string(),
        None => "it did not say why".to_owned(),
    }
}

/// Splits an error message into an HTTP status and the rest, often JSON of the model service. The
/// status is `None` if the message does not begin with one.
fn split(message: &str) -> (Option<u16>, &str) {
    let message = message.trim();
    let (first, rest) = message.split_once(' ').unwrap_or((message, ""));
    match first.parse::<u16>() {
        Ok(status) if (400..600).contains(&status) => (Some(status), rest),
        _ => (None, message),
    }
}

/// Returns the error of a run that was refused because Callboard's extension is missing, so Pi
/// would not ask for approvals.
pub(super) fn unguarded() -> ErrorInfo {
    let message = "Pi has not loaded Callboard's extension, so it would run every tool without asking. \
                   Callboard has not sent it the message and ends it. Check Pi's output at startup and \
                   the extension options in this agent's args, or set its permission_mode to auto to \
                   run without approvals.";
    ErrorInfo::new(ErrorCode::AgentExited, message)
}

/// Returns the error of a run during which the Pi process ended.
pub(super) fn exited(exit: &Exit) -> ErrorInfo {
    let (how, last) = (exit.how(), exit.stderr_tail());
    let message = if last.contains("No session found") {
        format!("Pi no longer has this conversation ({last}). Start a new session.")
    } else if last.is_empty() {
        format!("Pi stopped before it had answered ({how}). Send the message again.")
    } else {
        format!("Pi stopped before it had answered ({how}). It wrote: {last}")
    };
    ErrorInfo::new(ErrorCode::AgentExited, message)
}

fn cause(status: Option<u16>, text: &str) -> ErrorCode {
    let says = |words: &[&str]| words.iter().any(|it| text.contains(it));
    let about_keys = ["authentication", "api key", "api-key", "unauthorized", "/login"];
    let about_context = [
        "prompt is too long",
        "context length",
        "context window",
        "context_length",
        "too many tokens",
    ];
    match status {
        Some(401 | 403) => ErrorCode::UpstreamAuth,
        Some(413) => ErrorCode::ContextTooLong,
        _ if says(&about_context) => ErrorCode::ContextTooLong,
        Some(402 | 429) => ErrorCode::RateLimitUpstream,
        _ if says(&["rate_limit", "rate limit", "overloaded", "quota"]) => {
            ErrorCode::RateLimitUpstream
        }
        Some(408 | 504 | 524) => ErrorCode::UpstreamTimeout,
        None if says(&about_keys) => ErrorCode::UpstreamAuth,
        None if says(&["timed out", "timeout"]) => ErrorCode::UpstreamTimeout,
        _ => ErrorCode::UpstreamError,
    }
}

fn explained(code: ErrorCode, said: &str) -> ErrorInfo {
    let message = match code {
        ErrorCode::UpstreamAuth => format!(
            "Pi has no valid key for the model service ({said}). Run pi in a terminal and use \
             /login, or set the service's key in the agent's env."
        ),
        ErrorCode::ContextTooLong => format!(
            "The conversation no longer fits into the model's context ({said}). Start a new session, \
             or use a model with a larger context."
        ),
        ErrorCode::RateLimitUpstream => {
            format!("The model service asks to slow down ({said}). Try again later.")
        }
        ErrorCode::UpstreamTimeout => {
            format!("The model service did not answer in time ({said}). Try again.")
        }
        _ => format!("Pi could not get an answer from the model service ({said})."),
    };
    ErrorInfo::new(code, message)
}

/// Shortens an error message to 300 characters on one line: some services answer with a whole page.
pub(super) fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.trim_end_matches('.').to_owned(),
    }
}
