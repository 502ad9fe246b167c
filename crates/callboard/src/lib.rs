//! The program `callboard`: the command line, the configuration, and the commands.
//!
//! `serve` puts the parts of a server together; the other commands use a running server, or the data folder
//! if none holds it.

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
