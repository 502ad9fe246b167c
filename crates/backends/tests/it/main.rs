//! Recorded and made-up words of agents, through the machines that read them.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod captures;
mod codex;
mod deviations;
mod reading;
mod vectors;
