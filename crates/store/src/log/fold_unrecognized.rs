//! Folds the unrecognized records of a run on their way out of the store.
//!
//! The reducer keeps [`MAX_UNRECOGNIZED`] of them one by one, and one part for all that follow. A run of an
//! earlier version may hold a million: the rest of them leaves the store as one record that counts their lines,
//! so that reading such a run takes memory for what is kept, not for what was printed.

use transcript::{Event, FOREIGN_PART, MAX_UNRECOGNIZED, Record, event_from_body};

use crate::Stored;

#[derive(Default)]
pub(crate) struct FoldUnrecognized {
    /// Number of unrecognized records that were returned unchanged.
    kept: usize,
    /// The last of the other unrecognized records, and the number of lines of all others.
    rest: Option<(Stored, u64)>,
}

impl FoldUnrecognized {
    /// Returns the record, unless it is an unrecognized one beyond the limit, which is only
    /// counted.
    pub(crate) fn take(&mut self, stored: Stored) -> Option<Stored> {
        let Some(lines) = lines_of(&stored.body) else { return Some(stored) };
        // The first of the rest makes the part that the others are added to.
        if self.kept <= MAX_UNRECOGNIZED {
            self.kept += 1;
            return Some(stored);
        }
        let before = self.rest.take().map_or(0, |(_, lines)| lines);
        self.rest = Some((stored, lines.saturating_add(before)));
        None
    }

    /// Returns one record that replaces the unrecognized records beyond the limit, if there are
    /// any.
    pub(crate) fn finish(self) -> Option<Stored> {
        let (stored, lines) = self.rest?;
        let Record { seq, at, session_id, response_id, event, .. } = stored.record();
        let Event::Unrecognized { source, .. } = event else { return None };
        let event = Event::Unrecognized { source, raw: String::new(), lines };
        Some(Stored::from(&Record::new(seq, at, session_id, response_id, event)))
    }
}

/// Returns the number of lines of an unrecognized record that the reducer folds; `None` for other
/// records.
fn lines_of(body: &str) -> Option<u64> {
    if !body.starts_with(r#"{"type":"unrecognized""#) {
        return None;
    }
    match event_from_body(body) {
        Event::Unrecognized { source, lines, .. } if source != FOREIGN_PART => Some(lines),
        _ => None,
    }
}
