//! Each tool on a small workspace, and every way out of it that we could think of.

mod bench;
mod escapes;
mod files;
mod registry;
mod search;
mod shell;
mod web;
mod writing;
