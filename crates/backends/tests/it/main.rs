//! Recorded and made-up answers of model services and of programs, through what reads them.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod captures;
mod deviations;
mod pi;
mod reading;
mod vectors;
