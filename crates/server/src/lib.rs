//! Sessions, runs, tools, HTTP and WebSocket: everything that touches the world.
//!
//! `session` owns what happens, `http` is the way in, `live` the way out, `tools` what agents may
//! do here. What things mean is in the pure crates.

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
