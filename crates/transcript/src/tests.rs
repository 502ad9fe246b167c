//! Laws of the transcript on random logs, then examples for reading.

/// `logs.rs` is used by other crates too, which know it by another name.
use crate as vocabulary;

mod bodies;
mod examples;
mod laws;
mod logs;
mod wire;
