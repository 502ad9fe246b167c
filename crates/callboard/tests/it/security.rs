//! Authentication, privacy, and files that need trust.

pub(crate) mod auth;
mod config_trust;
mod privacy;
mod private_files;
mod revoked_keys;
