//! Recorded and made-up answers of model services, through the decoder.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod captures;
mod deviations;
mod reading;
mod vectors;
