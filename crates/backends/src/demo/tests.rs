//! Output and calls of the demo agent for each phrase, and the properties that hold for every message.
//!
//! Snapshots are filled in by `UPDATE_EXPECT=1 cargo test -p backends`; read the diff.

mod answers;
mod laws;
mod phrases;
mod stage;
