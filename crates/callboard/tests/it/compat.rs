//! Compatibility APIs, without the client libraries that `e2e/` tests.

mod agui;
mod chat;
mod several_responses;
mod v1;
