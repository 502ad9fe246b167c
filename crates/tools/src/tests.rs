//! Each tool on a small workspace, and attempts to escape from it.

mod bench;
mod escapes;
mod files;
mod registry;
mod search;
mod shell;
mod web;
mod writing;
