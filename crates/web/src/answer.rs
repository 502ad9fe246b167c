//! Response types of handlers, which describe themselves in the OpenAPI document.

use std::marker::PhantomData;

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, NoContent, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::HttpError;
use crate::openapi::{DescribeOutput, Operation};

/// JSON response with the status 201 Created.
pub(crate) struct Created<T>(pub(crate) T);

/// JSON response with the status 202 Accepted: work was started, and its result will be in the log.
pub(crate) struct Accepted<T>(pub(crate) T);

/// Response with serialised JSON that has the schema of `T`.
pub(crate) struct Written<T>(String, PhantomData<T>);

impl<T> Written<T> {
    pub(crate) fn new(json: String) -> Self {
        Self(json, PhantomData)
    }
}

impl<T: Serialize> Written<T> {
    /// Serialises a response body now, not when the response is sent.
    pub(crate) fn of(value: &T) -> Self {
        // Serialisation fails only for maps whose keys are not strings, and no response contains
        // one.
        Self::new(serde_json::to_string(value).unwrap_or_default())
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

impl<T: Serialize> IntoResponse for Accepted<T> {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, Json(self.0)).into_response()
    }
}

impl<T> IntoResponse for Written<T> {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

impl<T: JsonSchema> DescribeOutput for Json<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives_json::<T>(StatusCode::OK);
    }
}

impl<T: JsonSchema> DescribeOutput for Written<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives_json::<T>(StatusCode::OK);
    }
}

impl<T: JsonSchema> DescribeOutput for Created<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives_json::<T>(StatusCode::CREATED);
    }
}

impl<T: JsonSchema> DescribeOutput for Accepted<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives_json::<T>(StatusCode::ACCEPTED);
    }
}

impl DescribeOutput for NoContent {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives(StatusCode::NO_CONTENT, None);
    }
}

/// Adds nothing to the OpenAPI document: such a response is built by the handler and described by
/// its route.
impl DescribeOutput for Response {
    fn describe(_: &mut Operation<'_>) {}
}

impl<T: DescribeOutput> DescribeOutput for Result<T, HttpError> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
    }
}
