//! Import of conversations.

mod faults;
pub(crate) mod formats;
pub(crate) mod programs;
mod seed_examples;
mod unfinished_work;
mod untrusted;
