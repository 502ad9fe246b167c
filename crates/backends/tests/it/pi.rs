//! Recordings of Pi, both packages, through its state machine.

mod examples;
mod fuzz;
mod laws;
mod recording;
mod snapshots;
mod stage;
