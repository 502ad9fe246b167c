//! Codex, as it was recorded: by its app-server and by `codex exec`.

mod fuzz;
mod laws;
mod program;
mod questions;
mod recording;
mod snapshots;
mod stage;
mod stories;
mod talk;
