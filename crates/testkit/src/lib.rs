//! Aids for the tests of several crates. No crate depends on this one except for its tests.
//!
//! The crate depends on `transcript` alone, so that the tests of a crate compile no other crate of the
//! workspace for it. An aid that needs more of a crate is a feature of that crate.

pub mod logs;
pub mod strict;
