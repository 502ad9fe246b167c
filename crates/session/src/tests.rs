//! Tests of the session machine: laws over all orders of events, and examples.

mod actions;
mod agents;
mod examples;
mod interleavings;
mod laws;
mod world;
