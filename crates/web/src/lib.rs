//! The HTTP server: routes, the authorization layer in front of them, the WebSocket, the pages, and the
//! compatibility APIs.
//!
//! The crate cannot start processes or reach MCP servers; sessions do that, in the crate `runtime`.

mod answer;
mod api;
mod app;
pub mod auth;
mod compat;
mod error;
mod extract;
mod html;
mod listener;
mod openapi;
mod pages;
mod program_mcp;
mod refusal;
mod routes;
mod streaming;
mod ws;

#[cfg(test)]
mod tests;

pub use app::{App, Edge, Parts};
pub use auth::keys::oldest_sign_in;
pub use listener::serve;
pub use program_mcp::ProgramMcp;
pub use routes::router;
