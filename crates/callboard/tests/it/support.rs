//! Helpers of the tests: the server, its clients, and what stands in for agents and services.

pub(crate) mod document;
pub(crate) mod log;
pub(crate) mod mcp_server;
pub(crate) mod model;
pub(crate) mod program;
pub(crate) mod random_values;
pub(crate) mod stand_in;
pub(crate) mod terminal;
pub(crate) mod watcher;
