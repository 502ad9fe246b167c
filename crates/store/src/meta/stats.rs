//! Counters: written by the writer thread, read at any time without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets for commit durations, in seconds. One more bucket counts longer
/// commits.
const BOUNDS: [f64; 11] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// Counters of a store since it was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// Number of records written.
    pub records_written: u64,
    /// Number of bytes written: the bodies of records and the texts of deltas.
    pub bytes_written: u64,
    /// Number of transactions that a caller waited for; folding, indexing and deleting do not
    /// count.
    pub commits: u64,
    /// Number of pages that all transactions wrote to the write-ahead log.
    pub pages_written: u64,
    /// Durations in seconds of the transactions that a caller waited for.
    pub commit_seconds: Histogram,
}

/// A cumulative histogram of measured values.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Upper bounds in ascending order, each with the number of values up to it.
    pub buckets: Vec<(f64, u64)>,
    /// Number of all values.
    pub count: u64,
    /// Sum of all values.
    pub sum: f64,
}

#[derive(Default)]
pub(crate) struct Counters {
    records: AtomicU64,
    bytes: AtomicU64,
    pages: AtomicU64,
    commits: [AtomicU64; BOUNDS.len() + 1],
    commit_nanos: AtomicU64,
}

impl Counters {
    pub(crate) fn add_commit(&self, took: Duration, records: u64, bytes: u64) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        add(&self.commits[bucket], 1);
        add(&self.commit_nanos, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        add(&self.records, records);
        add(&self.bytes, bytes);
    }

    pub(crate) fn add_pages(&self, pages: u64) {
        add(&self.pages, pages);
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    pub(crate) fn stats(&self) -> Stats {
        let get = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let mut count = 0;
        let mut sums = self.commits.iter().map(|it| {
            count += get(it);
            count
        });
        let buckets = BOUNDS.into_iter().zip(&mut sums).collect();
        // What is above all bounds.
        sums.next();
        let sum = Duration::from_nanos(get(&self.commit_nanos)).as_secs_f64();
        Stats {
            records_written: get(&self.records),
            bytes_written: get(&self.bytes),
            commits: count,
            pages_written: get(&self.pages),
            commit_seconds: Histogram { buckets, count, sum },
        }
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
