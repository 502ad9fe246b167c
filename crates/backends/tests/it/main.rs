//! Tests of the backends with recorded and made-up output of model services and programs.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod captures;
mod claude;
mod codex;
mod continued;
mod corruptions;
mod deviations;
mod import;
mod log;
mod made_up;
mod memory;
mod model;
mod pages;
mod pi;
mod reading;
mod resume;
mod split_surrogates;
mod vectors;
