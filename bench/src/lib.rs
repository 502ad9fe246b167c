//! Common parts of the benchmarks: a server, clients, and percentiles.
//!
//! Traffic goes to loopback only, and every process that is started is ended.

#![expect(clippy::disallowed_methods, reason = "servers and peers are started and ended")]

mod client;
mod conversation;
pub mod log;
pub mod model;
pub mod opencode;
pub mod peer;
mod process;
mod server;
pub mod stamp;
mod tap;

use std::time::Duration;

pub use client::Client;
pub use conversation::Conversation;
pub use process::Process;
pub use server::{Server, View};
pub use tap::Tap;

/// Measured delays, for percentiles.
#[derive(Debug, Default, Clone)]
pub struct Delays(Vec<Duration>);

impl Delays {
    pub fn add(&mut self, delay: Duration) {
        self.0.push(delay);
    }

    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The percentile in milliseconds; `share` is 0.5 for the median.
    pub fn percentile(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let idx = ((self.0.len() as f64 * share) as usize).min(self.0.len().saturating_sub(1));
        self.0.get(idx).map_or(f64::NAN, |it| it.as_secs_f64() * 1e3)
    }
}

/// The median of several measurements.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints a line of the figures.
#[expect(clippy::print_stdout, reason = "the figures")]
pub fn say(line: &str) {
    println!("{line}");
}
