//! Properties of the transcript on random logs, and examples.

mod bodies;
mod examples;
mod excerpts;
mod laws;
mod pausing;
mod quiescing;
mod titles;
mod unrecognized;
mod wire;
mod workspaces;
