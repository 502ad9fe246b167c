//! Transcripts in foreign formats, as pure and total functions.
//!
//! The formats of the message contract, of model providers and of front-end libraries are known here and nowhere
//! else. Each module is one format: its messages, its stream, its requests and its import. All streams encode the
//! changes of a run, see `follow.rs` and [`Encoder`].

#![warn(missing_docs)]

pub mod agui;
mod call;
pub mod callboard;
pub mod contract;
mod follow;
pub mod fullstream;
pub mod import;
pub mod incoming;
mod known;
pub mod openai;
mod run_stream;
mod sent;
mod sequencer;
pub mod sse;
pub mod ui;
pub mod ui_v4;

pub use run_stream::{Encoder, RunStream};

#[cfg(test)]
mod tests;
