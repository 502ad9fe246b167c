//! Errors of requests: one shape, `{"error": {"code", "message"}}`, built in one place.
//! The module `refusal` translates it to the formats of compatibility APIs.
//!
//! The codes are one closed list with their statuses; `docs/errors.md` is generated from it. A code
//! that also exists for errors in logs has the same meaning.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use store::AppendError;
use transcript::Millis;

use runtime::live::record_stream::Lost;
use session::Refused;

macro_rules! request_codes {
    ($($name:ident $code:literal $status:ident $meaning:literal)*) => {
        /// Reason why a request was refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
        pub(crate) enum RequestCode {
            $(#[doc = $meaning] #[serde(rename = $code)] $name,)*
        }

        impl RequestCode {
            /// All error codes of requests, in the order of the documentation.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$name),*];

            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            pub(crate) fn status(self) -> StatusCode {
                match self {
                    $(Self::$name => StatusCode::$status,)*
                }
            }

            pub(crate) fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }
        }
    };
}

request_codes! {
    InvalidRequest "invalid_request" BAD_REQUEST "The request is malformed or has invalid values."
    AgentNotFound "agent_not_found" BAD_REQUEST "No agent of that name is configured."
    Unauthorized "unauthorized" UNAUTHORIZED "The token, the cookie or the password is missing or wrong."
    ForbiddenHost "forbidden_host" FORBIDDEN "The request was not sent to a name of this server."
    ForbiddenOrigin "forbidden_origin" FORBIDDEN "The request comes from a page of another site."
    NotFound "not_found" NOT_FOUND "There is nothing at this address."
    SessionNotFound "session_not_found" NOT_FOUND "There is no such session."
    MessageNotFound "message_not_found" NOT_FOUND "The session has no such message, or the message cannot be changed."
    ModelNotFound "model_not_found" NOT_FOUND "No agent of that name answers under `/v1`."
    CallNotFound "call_not_found" NOT_FOUND "The session has no such tool call, or the call does not wait for a decision."
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED "The address does not support this method."
    TooSlow "too_slow" REQUEST_TIMEOUT "The body was not received within 30 seconds."
    SessionExists "session_exists" CONFLICT "A session of that id exists already."
    NothingToDo "nothing_to_do" CONFLICT "There is no answer to continue or to retry."
    AlreadyDecided "already_decided" CONFLICT "The call is already decided; `by` and `at` say by whom and when."
    AwaitingDecision "awaiting_decision" CONFLICT "The run waits for a decision and was not stopped, because the request said `unlessAsking`."
    NothingToUndo "nothing_to_undo" CONFLICT "The decision was for one call only, or is already revoked."
    NotSupported "not_supported" CONFLICT "The session's agent cannot do that."
    CannotSteer "cannot_steer" CONFLICT "There is no active run to steer."
    AgentBusy "agent_busy" CONFLICT "The agent is working and cannot take this now."
    TooLarge "too_large" PAYLOAD_TOO_LARGE "The body or the frame is larger than 8 MiB, or a file to import than 256 MiB or 1,500,000 JSON objects."
    TooManyAttempts "too_many_attempts" TOO_MANY_REQUESTS "The password was wrong too often; wait a minute."
    QueueFull "queue_full" TOO_MANY_REQUESTS "Too many messages are waiting already."
    InternalError "internal_error" INTERNAL_SERVER_ERROR "A fault of Callboard itself; its log says more."
    Stopping "stopping" SERVICE_UNAVAILABLE "The server is stopping."
    Storage "storage" INSUFFICIENT_STORAGE "The log could not be written, for instance because the disk is full."
}

#[derive(Debug)]
pub(crate) struct HttpError {
    pub(crate) code: RequestCode,
    pub(crate) message: String,
    /// Name of the invalid field of the request, for error formats that report it; `None` if it is
    /// not known.
    pub(crate) param: Option<String>,
    decided: Option<Box<Decided>>,
}

/// Earlier decision about a tool call: who made it, and when.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Decided {
    by: String,
    at: Millis,
}

/// JSON body of an error response.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct ErrorBody {
    error: ErrorDetails,
}

#[derive(Serialize, JsonSchema)]
struct ErrorDetails {
    code: RequestCode,
    /// Description of the problem and its solution, for people to read.
    message: String,
    #[serde(flatten)]
    decided: Option<Decided>,
}

impl HttpError {
    pub(crate) fn new(code: RequestCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), param: None, decided: None }
    }

    /// Sets the name of the request's invalid field in the error.
    pub(crate) fn about(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(RequestCode::InvalidRequest, message)
    }

    pub(crate) fn no_session(id: &str) -> Self {
        let message = format!("there is no session {id:?}; it may have been deleted");
        Self::new(RequestCode::SessionNotFound, message)
    }

    /// Returns the error message as a complete sentence, for an error page or the sign-in page.
    pub(crate) fn sentence(&self) -> String {
        let mut letters = self.message.trim_end_matches('.').chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters).chain(['.']).collect()
    }

    /// Returns whether the request that failed with this error may succeed later.
    pub(crate) fn retryable(&self) -> bool {
        let status = self.code.status();
        let is_final = matches!(
            self.code,
            RequestCode::AlreadyDecided | RequestCode::NothingToUndo | RequestCode::NotSupported
        );
        status.is_server_error() || status == StatusCode::CONFLICT && !is_final
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let Self { code, message, decided, .. } = self;
        let decided = decided.map(|it| *it);
        let error = ErrorDetails { code, message, decided };
        (code.status(), Json(ErrorBody { error })).into_response()
    }
}

impl From<Refused> for HttpError {
    fn from(refused: Refused) -> Self {
        let code = match &refused {
            Refused::NoSession | Refused::PendingDeletion => RequestCode::SessionNotFound,
            Refused::Exists => RequestCode::SessionExists,
            Refused::Busy => RequestCode::AgentBusy,
            Refused::Nothing(_) => RequestCode::NothingToDo,
            Refused::NoMessage(_) => RequestCode::MessageNotFound,
            Refused::NoCall(_) | Refused::NotAwaited(_) => RequestCode::CallNotFound,
            Refused::Decided { .. } => RequestCode::AlreadyDecided,
            Refused::BadArguments(_) | Refused::OnlyOnce => RequestCode::InvalidRequest,
            Refused::NoAgent { .. } => RequestCode::AgentNotFound,
            Refused::QueueFull(_) => RequestCode::QueueFull,
            Refused::Asking => RequestCode::AwaitingDecision,
            Refused::NothingToUndo => RequestCode::NothingToUndo,
            Refused::NoGrant(_) => RequestCode::NotFound,
            Refused::NothingRuns => RequestCode::CannotSteer,
            Refused::Storage(_) => RequestCode::Storage,
            Refused::Stopping => RequestCode::Stopping,
        };
        let message = refused.to_string();
        let decided = match refused {
            Refused::Decided { by, at } => Some(Box::new(Decided { by, at })),
            _ => None,
        };
        Self { code, message, param: None, decided }
    }
}

impl From<Lost> for HttpError {
    fn from(lost: Lost) -> Self {
        let code = match lost {
            Lost::Deleted => RequestCode::SessionNotFound,
            Lost::Storage(_) => RequestCode::Storage,
        };
        Self::new(code, lost.to_string())
    }
}

impl From<AppendError> for HttpError {
    fn from(error: AppendError) -> Self {
        Refused::Storage(error.to_string()).into()
    }
}

impl From<store::Error> for HttpError {
    fn from(error: store::Error) -> Self {
        tracing::error!(%error, "cannot read the log");
        let message = match &error {
            // The message names the file and the solution.
            store::Error::Corrupt { .. } => error.to_string(),
            _ => "the log cannot be read; the server's own log says why".to_owned(),
        };
        Self::new(RequestCode::InternalError, message)
    }
}

#[cfg(test)]
mod tests;
