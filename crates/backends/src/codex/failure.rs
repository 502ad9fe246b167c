//! Errors of Codex, explained with what to do about them.

use serde_json::Value;
use transcript::{ErrorCode, ErrorInfo};

use crate::Exit;

/// Returns the error for an error object of Codex: `{message, codexErrorInfo, additionalDetails}`.
/// `codexErrorInfo` is a string, or an object with one key.
pub(super) fn of_turn(error: &Value) -> ErrorInfo {
    let info = &error["codexErrorInfo"];
    let (word, details) = match info.as_object().and_then(|it| it.iter().next()) {
        Some((word, details)) => (word.as_str(), details),
        None => (info.as_str().unwrap_or_default(), &Value::Null),
    };
    let message = error["message"].as_str().unwrap_or("it did not say why");
    let mut said = innermost(message);
    if let Some(more) = error["additionalDetails"].as_str().filter(|it| !said.contains(*it)) {
        said = format!("{}: {more}", said.trim_end_matches('.'));
    }
    let status = details["httpStatusCode"].as_u64().or_else(|| status_in(&said));
    of(word, status, &said)
}

/// Returns the error for a message of Codex that is only text.
pub(super) fn of_text(message: &str) -> ErrorInfo {
    let said = innermost(message);
    let status = status_in(&said);
    of("", status, &said)
}

/// Returns the error of a run during which the Codex process ended. `had_answered`: the process had
/// answered a request before.
pub(super) fn of_exit(exit: &Exit, had_answered: bool) -> ErrorInfo {
    let (how, stderr_tail) = (exit.how(), exit.stderr_tail());
    let mut message = format!("Codex ended in the middle of its work ({how}).");
    if !stderr_tail.is_empty() {
        message += &format!(" It wrote: {stderr_tail}");
    }
    if !had_answered {
        message += " If 'codex app-server' does not work in a terminal either, update Codex.";
    }
    ErrorInfo::new(ErrorCode::AgentExited, message)
}

fn of(word: &str, status: Option<u64>, said: &str) -> ErrorInfo {
    let lower = said.to_ascii_lowercase();
    let is_about_context =
        ["prompt is too long", "context window", "context length", "too many tokens"]
            .iter()
            .any(|it| lower.contains(it));
    let said = said.trim_end_matches('.');
    let (code, message) = match (word, status) {
        ("unauthorized", _) | (_, Some(401 | 403)) => (
            ErrorCode::UpstreamAuth,
            format!(
                "The model service refused Codex's key ({said}). Run 'codex login', or check the key \
                 that Codex's configuration names."
            ),
        ),
        ("contextWindowExceeded", _) | (_, Some(413)) => too_long(said),
        _ if is_about_context => too_long(said),
        ("usageLimitExceeded" | "sessionBudgetExceeded", _) => (
            ErrorCode::RateLimitUpstream,
            format!("Codex's usage limit is reached ({said}). Wait until it is reset."),
        ),
        ("serverOverloaded", _) | (_, Some(429)) => (
            ErrorCode::RateLimitUpstream,
            format!("The model service asks Codex to slow down ({said}). Try again later."),
        ),
        (_, Some(408 | 504 | 524)) => (
            ErrorCode::UpstreamTimeout,
            format!("The model service did not answer Codex in time ({said}). Try again."),
        ),
        ("internalServerError", _) | (_, Some(500..)) => (
            ErrorCode::UpstreamError,
            format!("The model service failed ({said}). Try again later."),
        ),
        _ if said.contains("already has an active writer") => (
            ErrorCode::AgentBusy,
            format!(
                "This conversation is open in another Codex ({said}). Close it there, then try again."
            ),
        ),
        _ if said.contains("max_output_tokens") => (
            ErrorCode::UpstreamError,
            format!("The answer became too long ({said}). Ask for it in parts."),
        ),
        _ => (ErrorCode::UpstreamError, format!("Codex could not go on: {said}.")),
    };
    ErrorInfo::new(code, message)
}

fn too_long(said: &str) -> (ErrorCode, String) {
    let message = format!(
        "The conversation no longer fits into the model's context ({said}). Start a new session, or \
         use a model with a larger context."
    );
    (ErrorCode::ContextTooLong, message)
}

/// Returns the readable text of an error message, which may be the JSON of the model service.
fn innermost(message: &str) -> String {
    let json: Value = serde_json::from_str(message).unwrap_or_default();
    let inner = json["error"]["message"].as_str().or(json["message"].as_str());
    inner.unwrap_or(message).trim().to_owned()
}

/// Finds an HTTP status in an error message: `unexpected status 401 Unauthorized: ...` or `... last
/// status: 429 Too Many Requests`.
fn status_in(message: &str) -> Option<u64> {
    let (_, after) = message.split_once("status")?;
    let digits = after.trim_start_matches([':', ' ']);
    digits.get(..3)?.parse().ok().filter(|it| (400..600).contains(it))
}
