//! Subscribers of sessions: fan-out of commits, streams of records, and the live pages.

pub mod hub;
pub mod page_context;
pub mod pulse;
pub mod record_stream;
pub mod views;
pub mod window;
