//! The WebSocket: commands in; records, patches and changes of the session list out.

pub(crate) mod frames;
pub(crate) mod html_subscription;
pub(crate) mod record_subscription;
pub(crate) mod socket;
