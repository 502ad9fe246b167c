//! The real program, started as a user starts it, and looked at from outside.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod agui;
mod api;
mod approvals;
mod cancel;
mod chat;
mod codex_exec;
mod conformance;
mod crash;
mod crowd;
mod discretion;
mod disk;
mod document;
mod door;
mod exchanges;
mod exchanges_kept;
mod exchanges_model;
mod formats;
mod fuzz;
mod import;
mod imported_formats;
mod imported_work;
mod lock;
mod log;
mod mcp;
mod mcp_server;
mod model;
mod nonsense;
mod openai;
mod own_tools;
mod program;
mod program_approvals;
mod program_stops;
mod programs;
mod queue;
mod queue_model;
mod rounds;
mod send;
mod sessions;
mod shell;
mod stand_in;
/// What a provider takes, as `formats` tests it.
#[path = "../../../formats/src/openai/strict.rs"]
mod strict;
mod terminal;
mod tidy;
mod tool_server;
mod v1;
mod watcher;
mod watching;
