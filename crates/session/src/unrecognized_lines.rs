//! Limits for program output that makes no content: how much of it is logged, and how much is kept at all.
//!
//! An unreadable line is a record, up to [`ONE_BY_ONE`] of a run. Later ones are counted, and a record says
//! how many came since the last, each time that their number has doubled and when the run ends: a flood of n
//! lines makes log2(n) records. The lines themselves are among the raw lines, up to [`MAX_RAW`] bytes of a run.

use transcript::{Event, MAX_UNRECOGNIZED};

/// Maximum size of one run's raw lines that produced no record, in bytes. Lines that produced
/// records are bounded by the log.
pub(crate) const MAX_RAW: usize = 64 * 1024 * 1024;
/// Number of unreadable lines of a run that get a record each: those that the reducer keeps, and
/// one more that represents all later ones.
const ONE_BY_ONE: u64 = MAX_UNRECOGNIZED as u64 + 1;
/// Maximum number of bytes that a record of several unreadable lines contains of the first one.
const SAMPLE: usize = 2000;

/// Counts of program output that produced no content, for one run or for the time between two runs.
#[derive(Debug, Default)]
pub(crate) struct UnrecognizedLines {
    seen: u64,
    /// Unreadable lines that are in no record yet. `None` if there are none.
    rest: Option<Rest>,
    raw_bytes: usize,
    has_dropped: bool,
}

#[derive(Debug)]
struct Rest {
    source: String,
    first: String,
    lines: u64,
}

/// Decision whether a raw line that produced no record is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Yes,
    /// The line is dropped. It is the first one that is dropped, so a notice is logged.
    NoMore,
    No,
}

impl UnrecognizedLines {
    /// Counts unreadable lines and returns the record to log for them. `None` if a later record
    /// will include them.
    pub(crate) fn take(&mut self, source: String, raw: String, lines: u64) -> Option<Event> {
        self.seen = self.seen.saturating_add(lines);
        if self.seen <= ONE_BY_ONE {
            return Some(Event::Unrecognized { source, raw, lines });
        }
        let rest = self.rest.get_or_insert_with(|| Rest { source, first: sample(raw), lines: 0 });
        rest.lines += lines;
        let is_due = rest.lines >= self.seen - rest.lines;
        is_due.then(|| self.take_rest()).flatten()
    }

    /// Returns the record of the unreadable lines that were counted and are in no record yet.
    /// `None` if there are none.
    pub(crate) fn take_rest(&mut self) -> Option<Event> {
        let Rest { source, first: raw, lines } = self.rest.take()?;
        Some(Event::Unrecognized { source, raw, lines })
    }

    /// Counts the size of a raw line that produced no record, and decides whether to keep the line.
    pub(crate) fn keep(&mut self, bytes: usize) -> Keep {
        self.raw_bytes = self.raw_bytes.saturating_add(bytes);
        if self.raw_bytes <= MAX_RAW {
            return Keep::Yes;
        }
        if std::mem::replace(&mut self.has_dropped, true) { Keep::No } else { Keep::NoMore }
    }
}

fn sample(mut raw: String) -> String {
    raw.truncate(raw.floor_char_boundary(SAMPLE));
    raw
}

#[cfg(test)]
mod tests {
    //! The log says every line once, in a number of records that grows with the logarithm.

    use super::*;

    fn lines(event: &Event) -> u64 {
        match event {
            Event::Unrecognized { lines, .. } => *lines,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_line_is_counted_once_in_few_records() {
        let mut counted = UnrecognizedLines::default();
        let (mut records, mut told) = (0, 0);
        for n in 1..=100_000_u64 {
            if let Some(event) = counted.take("claude".into(), format!("line {n}"), 1) {
                records += 1;
                told += lines(&event);
                assert_eq!(told, n, "a record says all that came before it");
            }
            let bound = ONE_BY_ONE + u64::from(n.ilog2());
            assert!(records <= bound, "{records} records after {n} lines");
            assert!(told * 2 >= n, "the log knows of {told} of {n} lines");
        }
        told += counted.take_rest().as_ref().map_or(0, lines);
        assert_eq!(told, 100_000);
        assert_eq!(counted.take_rest(), None);
    }

    #[test]
    fn the_first_of_many_lines_is_cut() {
        let mut counted = UnrecognizedLines::default();
        let long = "ä".repeat(5000);
        let taken = |counted: &mut UnrecognizedLines| counted.take("pi".into(), long.clone(), 1);
        for _ in 0..ONE_BY_ONE {
            assert!(taken(&mut counted).is_some(), "whole lines are records");
        }
        assert_eq!(taken(&mut counted), None);
        let Some(Event::Unrecognized { raw, .. }) = counted.take_rest() else { panic!() };
        assert_eq!(raw.len(), SAMPLE);
    }

    #[test]
    fn raw_lines_without_records_are_kept_up_to_a_bound() {
        let mut counted = UnrecognizedLines::default();
        assert_eq!(counted.keep(MAX_RAW), Keep::Yes);
        assert_eq!([counted.keep(1), counted.keep(1)], [Keep::NoMore, Keep::No]);
        assert_eq!(UnrecognizedLines::default().keep(1), Keep::Yes, "the next run has its own");
    }
}
