//! Errors at the edge: one shape, `{"error": {"code", "message"}}`, made in one place.
//!
//! Codes of the log's own closed list are used where they fit; the few others here are about
//! requests, not about sessions.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::{Json, body::Bytes};
use serde::de::DeserializeOwned;
use serde_json::json;
use store::AppendError;
use transcript::{ErrorCode, SessionId};

use super::BODY_MAX;
use super::pages::html_response;
use crate::session::Refused;

/// A body must have come by then.
const BODY_WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct HttpError {
    pub(super) status: StatusCode,
    pub(super) code: String,
    pub(super) message: String,
}

impl HttpError {
    pub(super) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    pub(super) fn no_session(id: &str) -> Self {
        let message =
            format!("there is no session {id:?}; GET /api/sessions lists those there are");
        Self::new(StatusCode::NOT_FOUND, "session_not_found", message)
    }

    /// For a person, where a page was asked for.
    pub(super) fn into_page(self) -> Response {
        let title = match self.status {
            StatusCode::UNAUTHORIZED => "You are not signed in",
            StatusCode::FORBIDDEN => "Not from here",
            StatusCode::NOT_FOUND => "There is nothing here",
            _ => "That did not work",
        };
        let html = render::error_page(title, &self.message);
        (self.status, html_response(html)).into_response()
    }

    /// Worth trying again later without a change.
    pub(super) fn retryable(&self) -> bool {
        self.status.is_server_error() || self.status == StatusCode::CONFLICT
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message } });
        (self.status, Json(body)).into_response()
    }
}

impl From<Refused> for HttpError {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        let (status, code) = match &refused {
            Refused::NoSession => (StatusCode::NOT_FOUND, "session_not_found"),
            Refused::Exists => (StatusCode::CONFLICT, "session_exists"),
            Refused::Busy => (StatusCode::CONFLICT, ErrorCode::AgentBusy.as_str()),
            Refused::Nothing(_) => (StatusCode::CONFLICT, "nothing_to_do"),
            Refused::NoAgent(_) => (StatusCode::BAD_REQUEST, ErrorCode::AgentNotFound.as_str()),
            Refused::QueueFull(_) => (StatusCode::TOO_MANY_REQUESTS, ErrorCode::QueueFull.as_str()),
            Refused::Storage(_) => (StatusCode::INSUFFICIENT_STORAGE, ErrorCode::Storage.as_str()),
            Refused::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        };
        Self::new(status, code, message)
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
        let message = "the log cannot be read; the server's own log says why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Storage.as_str(), message)
    }
}

pub(super) async fn no_such_path() -> HttpError {
    HttpError::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this address")
}

pub(super) async fn no_such_method() -> HttpError {
    let message = "this address does not take this method";
    HttpError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

/// A JSON body, refused in our words.
pub(super) struct Input<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Input<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpError> {
        let body = read_body(request, state).await?;
        match serde_json::from_slice(&body) {
            Ok(value) => Ok(Self(value)),
            Err(error) => Err(HttpError::invalid(format!("the body cannot be read: {error}"))),
        }
    }
}

/// A body of any kind.
pub(super) struct RawBody(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpError> {
        read_body(request, state).await.map(Self)
    }
}

/// A form's fields.
pub(super) struct FormText(pub(super) HashMap<String, String>);

impl<S: Send + Sync> FromRequest<S> for FormText {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpError> {
        let body = read_body(request, state).await?;
        let fields = form_urlencoded::parse(&body).into_owned().collect();
        Ok(Self(fields))
    }
}

async fn read_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, HttpError> {
    // One that says it will be too large need not come at all.
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    if announced.and_then(|it| it.parse().ok()).is_some_and(|it: u64| it > BODY_MAX as u64) {
        let message = format!("the body is larger than {} MiB", BODY_MAX >> 20);
        return Err(HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
    }
    let read = Bytes::from_request(request, state);
    match tokio::time::timeout(BODY_WITHIN, read).await {
        Ok(body) => body.map_err(refuse_body),
        Err(_) => {
            let message = format!("the body did not come within {BODY_WITHIN:?}");
            Err(HttpError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message))
        }
    }
}

fn refuse_body(rejection: BytesRejection) -> HttpError {
    let status = rejection.status();
    let code =
        if status == StatusCode::PAYLOAD_TOO_LARGE { "too_large" } else { "invalid_request" };
    HttpError::new(status, code, rejection.body_text())
}

/// Query parameters, refused in our words.
pub(super) struct Params<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let query = Query::from_request_parts(parts, state).await;
        query.map(|Query(value)| Self(value)).map_err(|it| HttpError::invalid(it.body_text()))
    }
}

/// The session that a path names. One that cannot exist is refused here.
pub(super) struct Named(pub(super) SessionId);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let Path(id) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|it| HttpError::invalid(it.body_text()))?;
        SessionId::parse(&id).map(Self).ok_or_else(|| HttpError::no_session(&id))
    }
}

#[cfg(test)]
mod tests;
