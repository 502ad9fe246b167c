//! Sessions, runs, tools, HTTP and WebSocket: all I/O of Callboard.
//!
//! `session` runs the sessions, `http` serves clients, `live` publishes commits. Interpretation and
//! rendering are in the pure crates.

mod agents;
mod backup;
mod cli;
mod clock;
mod config;
mod data_url;
mod doctor;
mod draw_pool;
mod export;
mod files;
mod history;
mod http;
mod import;
mod live;
mod metrics;
mod passes;
mod password;
mod send;
mod serve;
mod session;
mod views;
mod window;

pub use cli::main;
