//! Runs the sessions: agent processes and requests, fan-out of commits, live pages, exchanges between
//! agents, imports and exports.
//!
//! [`Sessions`] takes commands and starts one driver for each active session. A driver feeds the
//! pure machine of the crate `session` and carries out its effects; after each commit it publishes
//! the records on the [`Hub`](live::hub::Hub), from which subscribers and
//! [`Views`](live::views::Views) get them. The crate has no routes and reads no configuration; its
//! caller builds [`Services`].

pub mod agents;
pub mod clock;
pub mod draw_pool;
mod driver;
mod exchanges;
pub mod export;
pub mod files;
pub mod import;
pub mod live;
pub mod metrics;
pub mod passes;
mod services;
pub mod sessions;
mod sync;

pub use exchanges::ExchangeLimits;
pub use services::Services;
pub use sessions::{NewSession, Sessions};
