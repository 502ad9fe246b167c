//! Recorded sessions of Claude Code, as they were and in all the ways in which they could have gone
//! wrong.

mod command_line;
mod examples;
mod fuzz;
mod laws;
mod recording;
mod snapshots;
mod stage;
mod watch;
