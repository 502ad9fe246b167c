//! The data folder: its lock, the database files and connections, backups and checks.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod checkpoint;
pub(crate) mod connection;
pub(crate) mod folder;
pub(crate) mod lock;
pub(crate) mod presence;
pub(crate) mod reserve;
pub(crate) mod upkeep;
