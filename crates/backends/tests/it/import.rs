//! Import of the files that Claude Code, Codex and Pi keep of their sessions.

mod examples;
mod files;
mod fuzz;
mod laws;
mod live;
mod snapshots;

pub(crate) use self::files::logs;
