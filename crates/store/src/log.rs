//! The log: records and streams, what is derived from them, and reads of both.

pub(crate) mod append;
pub(crate) mod blob;
pub(crate) mod body;
pub(crate) mod conversation;
pub(crate) mod damage;
pub(crate) mod delete;
pub(crate) mod fold;
pub(crate) mod fold_unrecognized;
pub(crate) mod message;
pub(crate) mod pack;
pub(crate) mod raw;
pub(crate) mod read;
pub(crate) mod session;
pub(crate) mod stage;
pub(crate) mod stream;
