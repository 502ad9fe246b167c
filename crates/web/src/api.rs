//! The JSON API of Callboard: one module for each resource.

pub(crate) mod approvals;
pub(crate) mod blobs;
pub(crate) mod bodies;
pub(crate) mod contract_events;
pub(crate) mod import_export;
pub(crate) mod info;
pub(crate) mod operation;
pub(crate) mod queue;
pub(crate) mod raw;
pub(crate) mod read;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod settings;
