//! Tests of the embedded database alone: its files, damage to them, and the plans of its statements.

mod damage;
mod folder;
pub(crate) mod plans;
