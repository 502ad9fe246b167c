//! Numbers for who watches the store: counted by the writer, read at any time, never locked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the histogram's buckets, in seconds. One more counts what is above all of them.
const BOUNDS: [f64; 11] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// Since the store was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    pub records_written: u64,
    /// Of the records' bodies; of deltas, their texts.
    pub bytes_written: u64,
    /// Transactions that somebody waited for: not those that fold, index or clear.
    pub commits: u64,
    /// To the write-ahead log, by every transaction.
    pub pages_written: u64,
    /// From the start of such a transaction to the end of its commit.
    pub commit_seconds: Histogram,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// An upper bound, and how many were not above it; bounds rise.
    pub buckets: Vec<(f64, u64)>,
    /// All, those above the last bound included.
    pub count: u64,
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
