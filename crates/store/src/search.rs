//! Search: the index over the texts of records, and queries.

pub(crate) mod index;
pub(crate) mod interrupt;
pub(crate) mod item;
pub(crate) mod matches;
pub(crate) mod query;
pub(crate) mod snippet;
pub(crate) mod words;
