//! Refusals in the format of the API to which the path belongs.
//!
//! All refusals under `/v1`, including those of the authorization layer, have OpenAI's form,
//! because its clients cannot read any other. Clients of the other compatibility APIs show the body
//! unchanged.

mod openai;

use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};

use crate::error::{HttpError, RequestCode};
use crate::html::PageError;
use crate::openapi::{DescribeOutput, Operation};

pub(crate) use openai::{OpenAiErrorBody, V1Error};

/// A refusal of a compatibility API as plain text, because its clients show the body unchanged.
pub(crate) struct PlainError(HttpError);

impl<E: Into<HttpError>> From<E> for PlainError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for PlainError {
    fn into_response(self) -> Response {
        let HttpError { code, message, .. } = self.0;
        (code.status(), [(CONTENT_TYPE, "text/plain; charset=utf-8")], message).into_response()
    }
}

impl<T: DescribeOutput> DescribeOutput for Result<T, PlainError> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
        operation.refuses_as(&["text/plain"]);
    }
}

pub(crate) async fn no_such_path(request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let error = HttpError::new(RequestCode::NotFound, "there is nothing at this address");
    match wants_page(&parts) {
        true => PageError(error).into_response(),
        false => error_response(&parts.uri, error),
    }
}

pub(crate) async fn no_such_method(uri: Uri) -> Response {
    let message = "this address does not support this method";
    error_response(&uri, HttpError::new(RequestCode::MethodNotAllowed, message))
}

/// Returns the response for an error, in the format of the API to which the path belongs.
pub(crate) fn error_response(uri: &Uri, error: HttpError) -> Response {
    if is_openai(uri) {
        V1Error::from(error).into_response()
    } else if is_plain_text(uri) {
        PlainError::from(error).into_response()
    } else {
        error.into_response()
    }
}

/// Returns whether the client asks for an HTML page, as browsers do for typed addresses and links.
/// Routes under `/v1` serve programs only.
pub(crate) fn wants_page(request: &Parts) -> bool {
    let accept = request.headers.get(ACCEPT).and_then(|it| it.to_str().ok());
    request.method == Method::GET
        && accept.is_some_and(|it| it.contains("text/html"))
        && !is_openai(&request.uri)
}

/// Returns whether a path belongs to a compatibility API whose refusals are plain text.
fn is_plain_text(uri: &Uri) -> bool {
    let is_below = |folder: &str| {
        let rest = uri.path().strip_prefix(folder);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is_below("/api/chat") || is_below("/api/agui")
}

/// Returns whether a path belongs to the OpenAI-compatible API, even if it has no route.
fn is_openai(uri: &Uri) -> bool {
    uri.path().starts_with("/v1/")
}
