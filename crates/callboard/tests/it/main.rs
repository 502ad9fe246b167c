//! The real program, started and observed from outside as by a user.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "servers and programs are started and ended")]

mod agents;
mod api;
mod compat;
mod import;
mod load;
mod module_cycles;
mod runs;
mod security;
mod send;
mod store;
mod support;
mod tidy;
