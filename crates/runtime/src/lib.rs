//! Runs the sessions: agent processes and requests, fan-out of commits, live pages, exchanges between
//! agents, imports and exports.
//!
//! [`Sessions`] takes commands and starts one driver for each active session. A driver feeds the pure machine
//! of the crate `session` and carries out its effects; after each commit it publishes the records on the
//! [`Hub`](hub::Hub), from which subscribers and [`Views`](views::Views) get them. The crate has no routes
//! and reads no configuration; its caller builds [`Services`](sessions::Services).

pub mod agents;
pub mod clock;
mod data_url;
pub mod draw_pool;
mod driver;
mod exchanges;
pub mod export;
pub mod files;
mod history;
pub mod hub;
pub mod import;
pub mod metrics;
pub mod page_context;
pub mod passes;
pub mod pulse;
pub mod record_stream;
pub mod sessions;
pub mod tool_catalog;
pub mod views;
pub mod window;

pub use exchanges::ExchangeLimits;
pub use sessions::{NewSession, Services, Sessions};
