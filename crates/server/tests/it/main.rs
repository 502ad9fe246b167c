//! The real program, started as a user starts it, and looked at from outside.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod api;
mod cancel;
mod crash;
mod crowd;
mod disk;
mod door;
mod lock;
mod log;
mod model;
mod openai;
mod program;
mod queue;
mod sessions;
/// What a provider takes, as `formats` tests it.
#[path = "../../../formats/src/openai/strict.rs"]
mod strict;
mod tidy;
mod watcher;
mod watching;
