//! Errors in OpenAI's form.

use axum::Json;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::HttpError;
use crate::openapi::{DescribeOutput, Operation};

/// A refusal of a request in OpenAI's error format.
pub(crate) struct V1Error(HttpError);

/// Body of an error response in OpenAI's format.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OpenAiError")]
pub(crate) struct OpenAiErrorBody {
    error: ErrorDetails,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OpenAiErrorDetails")]
struct ErrorDetails {
    /// Description of the error and how to fix it.
    message: String,
    #[serde(rename = "type")]
    kind: ErrorKind,
    /// Name of the request's field or header that caused the error; null if it is not known.
    param: Option<String>,
    /// Callboard's error code, as in docs/errors.md.
    code: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OpenAiErrorKind")]
#[serde(rename_all = "snake_case")]
enum ErrorKind {
    InvalidRequestError,
    ServerError,
}

impl<E: Into<HttpError>> From<E> for V1Error {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for V1Error {
    fn into_response(self) -> Response {
        let HttpError { code, message, param, .. } = self.0;
        let kind = match code.status().is_server_error() {
            true => ErrorKind::ServerError,
            false => ErrorKind::InvalidRequestError,
        };
        let error = ErrorDetails { message, kind, param, code: Some(code.as_str().to_owned()) };
        (code.status(), Json(OpenAiErrorBody { error })).into_response()
    }
}

impl<T: DescribeOutput> DescribeOutput for Result<T, V1Error> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
        operation.refuses_with::<OpenAiErrorBody>();
    }
}
