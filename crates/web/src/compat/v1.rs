//! Any agent behind the API of OpenAI, for programs that were made to talk to a model.
//!
//! `model` is the name of an agent. All refusals under `/v1` have OpenAI's form, those of authentication
//! too, because its clients read no other.

mod completions;
mod error;
mod models;
mod protocol;

use axum::http::Uri;

pub(crate) use completions::complete;
pub(crate) use error::V1Error;
pub(crate) use models::{list, show};

/// Returns whether an address belongs to this API, even if nothing is there.
pub(crate) fn serves(uri: &Uri) -> bool {
    uri.path().starts_with("/v1/")
}
