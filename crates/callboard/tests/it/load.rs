//! Many sessions, connections and lines: nothing is lost and memory stays small.

mod connections;
mod memory;
mod reconnects;
mod unreadable_lines;
