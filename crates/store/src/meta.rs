//! Data beside the log: settings, sign-ins, grants, processes, counts and sizes.

pub(crate) mod grant;
pub(crate) mod process;
pub(crate) mod settings;
pub(crate) mod size;
pub(crate) mod stats;
pub(crate) mod unrecognized;
