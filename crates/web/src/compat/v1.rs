//! The OpenAI-compatible API, for clients that talk to a model.
//!
//! `model` is the id of an agent.

mod completions;
mod models;
mod protocol;

pub(crate) use completions::complete;
pub(crate) use models::{list, show};
