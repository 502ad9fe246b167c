//! Views of a transcript in other people's words, as pure and total functions.
//!
//! The vocabulary of the seeds, of model providers and of front-end libraries lives here and
//! nowhere else. One module a format: what is kept, what is streamed, what comes in. All streams are
//! translations of one telling, see `follow.rs`.

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
pub mod sse;
mod turns;
pub mod ui;
pub mod ui_v4;

pub use run_stream::{Encoder, RunStream};

#[cfg(test)]
mod tests;
