//! Any agent behind the API of OpenAI, for programs that were made to talk to a model.
//!
//! `model` is the name of an agent. What is refused under `/v1` is refused in OpenAI's words, by the
//! door too, because its clients read no others.

mod completions;
mod error;
mod models;
mod vocabulary;

use axum::http::Uri;

pub(super) use completions::complete;
pub(super) use error::V1Error;
pub(super) use models::{list, show};

/// Whether a request is for us, whatever is at its address.
pub(super) fn is_asked(uri: &Uri) -> bool {
    uri.path().starts_with("/v1/")
}
