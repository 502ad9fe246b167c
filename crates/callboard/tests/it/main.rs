//! The real program, started and observed from outside as by a user.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "servers and programs are started and ended")]

mod agui;
mod api;
mod approvals;
mod cancel;
mod chat;
mod codex_exec;
mod config_trust;
mod conformance;
mod crash;
mod crowd;
mod damage;
mod discretion;
mod disk;
mod document;
mod door;
mod earlier_data;
mod exchanges;
mod exchanges_kept;
mod exchanges_model;
mod flood;
mod formats;
mod fuzz;
mod grants;
mod import;
mod import_faults;
mod imported_formats;
mod imported_work;
mod lock;
mod log;
mod mcp;
mod mcp_server;
mod memory;
mod model;
mod nonsense;
mod openai;
mod own_tools;
mod private;
mod program;
mod program_approvals;
mod program_stops;
mod programs;
mod queue;
mod queue_model;
mod revoked_keys;
mod rounds;
mod seed_examples;
mod send;
mod sessions;
mod shell;
mod stand_in;
/// The strict check of requests to model services, which the tests of `formats` use too.
#[path = "../../../formats/src/openai/strict.rs"]
mod strict;
mod terminal;
mod tidy;
mod tool_server;
mod untrusted_import;
mod v1;
mod watcher;
mod watching;
