//! Properties of the transcript on random logs, and examples.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod arguments_summaries;
mod attribution;
mod bodies;
mod examples;
mod excerpts;
mod laws;
mod pausing;
mod quiescing;
mod result_files;
mod result_summaries;
mod titles;
mod unrecognized;
mod wire;
mod workspaces;
