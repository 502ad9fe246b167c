//! Errors of a model service and of the connection to it, explained with what to do about them.

use transcript::{ErrorCode, ErrorInfo, Millis};

use super::decoder::read_error;
use super::{ServiceError, Settings, retry};
use crate::{HowLost, Lost};

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ErrorInfo,
    /// Whether the same request may succeed when it is sent again.
    pub(super) may_pass: bool,
    /// Time in milliseconds that the model service asks to wait before a retry. `None` if it does
    /// not.
    pub(super) wait_ms: Option<u64>,
}

/// Cause of a model service's error, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cause {
    Key,
    Model,
    Context,
    Rate,
    Quota,
    Timeout,
    Busy,
    Other,
}

impl Failure {
    pub(super) fn lost(settings: &Settings, lost: &Lost) -> Self {
        let (service, why) = (service(settings), settings.without_secrets(&lost.message));
        let (code, message) = match lost.how {
            HowLost::NeverConnected => (
                ErrorCode::UpstreamError,
                format!(
                    "{service} cannot be reached: {why}. Is it running, and is base_url right?"
                ),
            ),
            HowLost::TimedOut => {
                (ErrorCode::UpstreamTimeout, format!("{service} did not answer in time: {why}."))
            }
            HowLost::BrokeOff => {
                (ErrorCode::UpstreamError, format!("The connection to {service} broke off: {why}."))
            }
        };
        Self { error: ErrorInfo::new(code, capitalised(&message)), may_pass: true, wait_ms: None }
    }

    /// Returns the failure for a response with an error status.
    pub(super) fn refused(
        settings: &Settings,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
        now: Millis,
    ) -> Self {
        let error = read_error(body);
        let cause = cause(status, &error);
        let message = shortened(&settings.without_secrets(&error.message));
        let said =
            if message.is_empty() { status.to_string() } else { format!("{status}: {message}") };
        let mut failure = Self::because(settings, cause, &said);
        if (300..400).contains(&status) {
            let to = header(headers, "location").unwrap_or("somewhere else");
            let message = format!(
                "{} redirects to {to}. Redirects are not followed, to protect the key: set base_url \
                 to the right address.",
                capitalised(&service(settings))
            );
            failure.error = ErrorInfo::new(ErrorCode::UpstreamError, message);
        }
        failure.wait_ms = wait_ms(headers, now);
        failure
    }

    /// Returns the failure for an error that the model service reports within an answer.
    pub(super) fn reported(settings: &Settings, error: &ServiceError) -> Self {
        let status = error.codes.iter().find_map(|it| it.parse().ok()).unwrap_or(0);
        let message = shortened(&settings.without_secrets(&error.message));
        Self::because(settings, cause(status, error), &message)
    }

    pub(super) fn stopped_with_error(settings: &Settings) -> Self {
        Self::because(settings, Cause::Busy, "it stopped with an error and gave no details")
    }

    pub(super) fn broke_off(settings: &Settings) -> Self {
        Self::because(settings, Cause::Busy, "the answer broke off")
    }

    pub(super) fn unreadable(settings: &Settings) -> Self {
        let said = "the response could not be read; check base_url";
        Self::because(settings, Cause::Busy, said)
    }

    /// Returns the error, with the time that the service asked to wait if that is the reason to
    /// give up.
    pub(super) fn after(self, waits: Option<u64>) -> ErrorInfo {
        let mut error = self.error;
        if let Some(waits) = waits {
            error.message += &format!(" It asks to wait {}.", retry::in_seconds(waits));
        }
        error
    }

    fn because(settings: &Settings, cause: Cause, said: &str) -> Self {
        let service = service(settings);
        let model = &settings.model;
        let (code, message) = match cause {
            Cause::Key => {
                let what_to_do = match &settings.api_key_env {
                    Some(name) => format!("Check that the variable {name} holds a valid key."),
                    None => "Name the variable that holds the key in api_key_env.".to_owned(),
                };
                (
                    ErrorCode::UpstreamAuth,
                    format!("{service} refused the key ({said}). {what_to_do}"),
                )
            }
            Cause::Model => (
                ErrorCode::UpstreamError,
                format!("{service} does not know the model '{model}' ({said}). Choose another."),
            ),
            Cause::Context => (
                ErrorCode::ContextTooLong,
                format!(
                    "The conversation no longer fits into the model's context ({said}). Start a new \
                     session, or use a model with a larger context."
                ),
            ),
            Cause::Rate => {
                (ErrorCode::RateLimitUpstream, format!("{service} asks us to slow down ({said})."))
            }
            Cause::Quota => (
                ErrorCode::RateLimitUpstream,
                format!("{service} says that the quota is used up ({said})."),
            ),
            Cause::Timeout => {
                (ErrorCode::UpstreamTimeout, format!("{service} did not answer in time ({said})."))
            }
            Cause::Busy => (ErrorCode::UpstreamError, format!("{service} failed ({said}).")),
            Cause::Other => {
                (ErrorCode::UpstreamError, format!("{service} refused the request ({said})."))
            }
        };
        let may_pass = matches!(cause, Cause::Rate | Cause::Timeout | Cause::Busy);
        Self { error: ErrorInfo::new(code, capitalised(&message)), may_pass, wait_ms: None }
    }
}

fn cause(status: u16, error: &ServiceError) -> Cause {
    let text = error.message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|it| text.contains(it));
    let has_code = |words: &[&str]| {
        error.codes.iter().any(|code| words.iter().any(|word| code.contains(word)))
    };
    let about_context = [
        "context length",
        "context size",
        "context window",
        "maximum context",
        "context_length",
        "prompt is too long",
        "too many tokens",
        "input is too long",
        "exceeds the model",
    ];
    match status {
        401 | 403 => Cause::Key,
        _ if has_code(&["authentication", "invalid_api_key", "unauthorized"]) => Cause::Key,
        413 => Cause::Context,
        _ if has_code(&["context_length", "context_size"]) || says(&about_context) => {
            Cause::Context
        }
        _ if has_code(&["insufficient_quota", "billing"]) => Cause::Quota,
        402 => Cause::Quota,
        429 => Cause::Rate,
        _ if has_code(&["rate_limit", "overloaded", "too_many_requests"]) => Cause::Rate,
        404 => Cause::Model,
        _ if has_code(&["model_not_found"]) => Cause::Model,
        _ if says(&["model"]) && says(&["not found", "does not exist", "unknown"]) => Cause::Model,
        408 | 504 | 524 => Cause::Timeout,
        // An error within a stream (status 0) is not caused by the request.
        0 | 500.. => Cause::Busy,
        _ => Cause::Other,
    }
}

/// Returns the time in milliseconds that the service asks to wait: the value of `retry-after-ms`,
/// or of `retry-after` as seconds or a date.
fn wait_ms(headers: &[(String, String)], now: Millis) -> Option<u64> {
    if let Some(ms) = header(headers, "retry-after-ms").and_then(|it| it.trim().parse().ok()) {
        return Some(ms);
    }
    let value = header(headers, "retry-after")?.trim();
    match value.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 => Some((seconds * 1000.0) as u64),
        Ok(_) => None,
        Err(_) => Millis::parse_http_date(value).map(|it| it.since(now)),
    }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
}

fn service(settings: &Settings) -> String {
    let address = settings.base_url.split('?').next().unwrap_or_default();
    format!("the model service at {}", address.trim_end_matches('/'))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |it| it.to_uppercase().chain(letters).collect())
}

/// Shortens an error message to 300 characters: some services answer with a whole page.
fn shortened(message: &str) -> String {
    const MAX_CHARS: usize = 300;
    let message = message.trim().trim_end_matches('.');
    match message.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}
