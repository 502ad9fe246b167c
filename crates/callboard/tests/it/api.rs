//! The HTTP API and the WebSocket.

mod conformance;
mod fuzz;
mod message_formats;
mod sessions;
mod sessions_and_messages;
