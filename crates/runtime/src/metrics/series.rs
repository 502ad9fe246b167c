//! Counters, gauges and histograms, and their text in the OpenMetrics format.
//!
//! Updates of a single value take no lock. Updates of a family lock its map of labels briefly.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::sync::lock;

/// Bounds of the buckets of all histograms in seconds, from a tenth of a millisecond to ten
/// seconds.
const BOUNDS: [f64; 11] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 10.0];

/// Prefix of the names of all metrics.
const PREFIX: &str = "callboard_";

/// A metric whose value only increases.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn inc(&self) {
        self.inc_by(1);
    }

    pub fn inc_by(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A metric whose value increases and decreases.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    pub fn inc(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn dec(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A metric that has one counter for each combination of label values.
#[derive(Debug)]
pub(super) struct Family<const N: usize> {
    labels: [&'static str; N],
    counts: Mutex<BTreeMap<[String; N], u64>>,
}

impl<const N: usize> Family<N> {
    pub(super) fn new(labels: [&'static str; N]) -> Self {
        Self { labels, counts: Mutex::default() }
    }

    pub(super) fn inc(&self, values: [&str; N]) {
        let mut counts = lock(&self.counts);
        *counts.entry(values.map(str::to_owned)).or_default() += 1;
    }
}

/// A metric of durations, which are counted in buckets.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// Number of durations in each bucket, not cumulative. The last bucket is for durations above
    /// all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Histogram {
    pub(super) fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// Text of all metrics in the OpenMetrics format, completed by [`Exposition::finish`].
#[derive(Default)]
pub(super) struct Exposition(String);

impl Exposition {
    pub(super) fn counter(&mut self, name: &str, help: &str, counter: &Counter) {
        self.count(name, help, counter.get());
    }

    pub(super) fn count(&mut self, name: &str, help: &str, n: u64) {
        self.describe(name, help, "counter");
        self.line(format_args!("{name}_total {n}"));
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, gauge: &Gauge) {
        self.describe(name, help, "gauge");
        self.line(format_args!("{name} {}", gauge.get()));
    }

    pub(super) fn family<const N: usize>(&mut self, name: &str, help: &str, family: &Family<N>) {
        let counts = lock(&family.counts);
        let counts = counts.iter().map(|(values, n)| (values.each_ref().map(String::as_str), *n));
        self.counts(name, help, family.labels, counts);
    }

    /// Adds a metric with a counter for each combination of label values, from counts that are kept
    /// elsewhere.
    pub(super) fn counts<'a, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; N],
        counts: impl IntoIterator<Item = ([&'a str; N], u64)>,
    ) {
        self.describe(name, help, "counter");
        for (values, n) in counts {
            let pairs = labels.iter().zip(values).map(|(label, value)| Pair(label, value));
            let pairs = pairs.map(|it| it.to_string()).collect::<Vec<_>>().join(",");
            self.line(format_args!("{name}_total{{{pairs}}} {n}"));
        }
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.describe(name, help, "histogram");
        let mut count = 0;
        let bounds = BOUNDS.iter().map(|it| format!("{it:?}")).chain(["+Inf".to_owned()]);
        for (bound, bucket) in bounds.zip(&histogram.buckets) {
            count += bucket.load(Ordering::Relaxed);
            self.line(format_args!("{name}_bucket{{le=\"{bound}\"}} {count}"));
        }
        let sum = Duration::from_nanos(histogram.nanoseconds.load(Ordering::Relaxed));
        self.line(format_args!("{name}_sum {:?}", sum.as_secs_f64()));
        self.line(format_args!("{name}_count {count}"));
    }

    /// Adds the end mark of the OpenMetrics format, which must be the last line, and returns the
    /// text.
    pub(super) fn finish(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }

    fn describe(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {PREFIX}{name} {help}.\n# TYPE {PREFIX}{name} {kind}");
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{PREFIX}{line}");
    }
}

/// Label of a metric with its value, in which quotes, backslashes and line ends are escaped.
struct Pair<'a>(&'a str, &'a str);

impl fmt::Display for Pair<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=\"", self.0)?;
        for it in self.1.chars() {
            match it {
                '"' | '\\' => write!(f, "\\{it}")?,
                '\n' => f.write_str("\\n")?,
                it => f.write_char(it)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    //! The text of each kind of metric.

    use super::*;

    #[test]
    fn metrics_are_written_as_openmetrics_text() {
        let (counter, gauge, histogram) = <(Counter, Gauge, Histogram)>::default();
        counter.inc();
        counter.inc_by(2);
        gauge.inc();
        gauge.dec();
        gauge.dec();
        let family = Family::new(["tool", "outcome"]);
        family.inc(["shell", "failed"]);
        family.inc(["a\"b\\c\nd", "succeeded"]);
        family.inc(["shell", "failed"]);
        for ms in [0, 1, 2, 60_000] {
            histogram.observe(Duration::from_millis(ms));
        }
        let mut text = Exposition::default();
        text.counter("records", "Records", &counter);
        text.gauge("open", "Open ones", &gauge);
        text.family("calls", "Calls", &family);
        text.histogram("seconds", "Durations", &histogram);
        let expected = r##"# HELP callboard_records Records.
# TYPE callboard_records counter
callboard_records_total 3
# HELP callboard_open Open ones.
# TYPE callboard_open gauge
callboard_open -1
# HELP callboard_calls Calls.
# TYPE callboard_calls counter
callboard_calls_total{tool="a\"b\\c\nd",outcome="succeeded"} 1
callboard_calls_total{tool="shell",outcome="failed"} 2
# HELP callboard_seconds Durations.
# TYPE callboard_seconds histogram
callboard_seconds_bucket{le="0.0001"} 1
callboard_seconds_bucket{le="0.00025"} 1
callboard_seconds_bucket{le="0.0005"} 1
callboard_seconds_bucket{le="0.001"} 2
callboard_seconds_bucket{le="0.0025"} 3
callboard_seconds_bucket{le="0.005"} 3
callboard_seconds_bucket{le="0.01"} 3
callboard_seconds_bucket{le="0.05"} 3
callboard_seconds_bucket{le="0.25"} 3
callboard_seconds_bucket{le="1.0"} 3
callboard_seconds_bucket{le="10.0"} 3
callboard_seconds_bucket{le="+Inf"} 4
callboard_seconds_sum 60.003
callboard_seconds_count 4
# EOF
"##;
        assert_eq!(text.finish(), expected);
    }
}
