//! The OpenAI-compatible API, for clients that talk to a model.
//!
//! `model` is the id of an agent. All refusals under `/v1`, including those of the authorization layer, have
//! OpenAI's form, because its clients cannot read any other.

mod completions;
mod error;
mod models;
mod protocol;

use axum::http::Uri;

pub(crate) use completions::complete;
pub(crate) use error::V1Error;
pub(crate) use models::{list, show};

/// Returns whether a path belongs to the OpenAI-compatible API, even if it has no route.
pub(crate) fn serves(uri: &Uri) -> bool {
    uri.path().starts_with("/v1/")
}
