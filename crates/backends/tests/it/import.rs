//! The files that Claude Code, Codex and Pi have kept of the recorded sessions, read.

mod examples;
mod files;
mod fuzz;
mod laws;
mod live;
mod snapshots;

pub(crate) use self::files::logs;
