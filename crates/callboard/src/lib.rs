//! The program `callboard`: the command line, the configuration, and the commands.
//!
//! `serve` runs a server. Other commands use a running server, or the data folder if no server holds it.

mod args;
mod backup;
mod cli;
mod config;
mod doctor;
mod export;
mod import;
mod logging;
mod password;
mod send;
mod serve;

pub use cli::main;
