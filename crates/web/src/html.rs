//! HTML pages as responses, and errors that are shown as a page.

use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use schemars::json_schema;

use crate::error::{HttpError, RequestCode};
use crate::openapi::{DescribeOutput, Operation};

/// Response with a complete HTML page.
pub(crate) struct Html {
    text: String,
    pictures_from_elsewhere: bool,
}

impl Html {
    /// Creates an HTML page that loads resources only from this server.
    pub(crate) fn new(text: String) -> Self {
        Self { text, pictures_from_elsewhere: false }
    }

    /// Sets whether the page may load pictures from other servers.
    pub(crate) fn with_remote_pictures(self, is_allowed: bool) -> Self {
        Self { pictures_from_elsewhere: is_allowed, ..self }
    }

    /// Returns the content security policy of the page: nothing inline, and remote pictures only if
    /// the reader allows them.
    fn policy(&self) -> String {
        let pictures = if self.pictures_from_elsewhere { " https: http:" } else { "" };
        format!(
            "default-src 'none'; script-src 'self'; style-src 'self'; \
             img-src 'self' data:{pictures}; connect-src 'self'; form-action 'self'; \
             base-uri 'none'; frame-ancestors 'none'"
        )
    }
}

impl IntoResponse for Html {
    fn into_response(self) -> Response {
        let headers = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CONTENT_SECURITY_POLICY, &*self.policy()),
            (REFERRER_POLICY, "no-referrer"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CACHE_CONTROL, "no-store"),
        ];
        (headers, self.text).into_response()
    }
}

impl DescribeOutput for Html {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives(StatusCode::OK, Some(("text/html", json_schema!({ "type": "string" }))));
    }
}

/// An error of a request that is shown as an HTML page.
pub(crate) struct PageError(pub(crate) HttpError);

impl<E: Into<HttpError>> From<E> for PageError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let status = self.0.code.status();
        let title = match status {
            StatusCode::UNAUTHORIZED => "You are not signed in",
            StatusCode::FORBIDDEN => "Access denied",
            StatusCode::NOT_FOUND => "Page not found",
            _ => "That did not work",
        };
        let message = match self.0.code {
            RequestCode::SessionNotFound => {
                "There is no such session. It may have been deleted, or the address is not complete."
            }
            _ => &self.0.sentence(),
        };
        (status, Html::new(render::error_page(title, message))).into_response()
    }
}

impl<T: DescribeOutput> DescribeOutput for Result<T, PageError> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
        operation.refuses_as(&["text/html"]);
    }
}
