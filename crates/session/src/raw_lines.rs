//! Output lines of a program on their way to the store, which compresses many lines better than one.

use std::collections::BTreeMap;

use serde_json::Value;
use transcript::{Millis, RawLine};

/// Number of bytes of raw lines that are stored without further delay.
const ENOUGH: usize = 256 * 1024;
/// Maximum time that a raw line waits for further lines before it is stored, in milliseconds.
const MAX_WAIT_MS: u64 = 1000;
/// Maximum number of characters in the name of an unrecognized message kind.
const KIND_CHARS: usize = 60;

/// Raw lines of a program that are not stored yet.
#[derive(Debug, Default)]
pub(crate) struct RawLines {
    pub(crate) lines: Vec<RawLine>,
    /// Number of unrecognized messages of the program by kind, not stored yet.
    pub(crate) unrecognized: BTreeMap<String, u64>,
    bytes: usize,
    /// Time of the oldest raw line that is not stored yet. `None` if there is none.
    since: Option<Millis>,
}

impl RawLines {
    pub(crate) fn add(&mut self, line: RawLine) {
        self.since.get_or_insert(line.at);
        self.bytes += line.text.len();
        self.lines.push(line);
    }

    pub(crate) fn count_unrecognized(&mut self, raw: &str) {
        *self.unrecognized.entry(kind_of(raw)).or_default() += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.unrecognized.is_empty()
    }

    /// Returns whether the raw lines are to be stored now: they are due, or the clock was set back.
    pub(crate) fn is_due(&self, now: Millis) -> bool {
        let is_due = self.due().is_some_and(|it| it <= now);
        is_due || self.since.is_some_and(|it| it > now) || self.bytes >= ENOUGH
    }

    /// Returns the time at which the raw lines are to be stored. `None` if there are none.
    pub(crate) fn due(&self) -> Option<Millis> {
        let wait = if self.bytes < ENOUGH { MAX_WAIT_MS } else { 0 };
        self.since.map(|it| it.plus(wait))
    }
}

/// Returns the kind of a message that was not recognized, in plain characters, such as
/// `system/novelty`.
fn kind_of(raw: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(raw) else { return "no JSON".to_owned() };
    let words = ["type", "subtype", "method"].iter().filter_map(|it| fields.get(*it)?.as_str());
    let kind = words.collect::<Vec<_>>().join("/");
    let is_plain = |it: &char| it.is_ascii_alphanumeric() || "_-/.".contains(*it);
    let kind: String = kind.chars().filter(is_plain).take(KIND_CHARS).collect();
    if kind.is_empty() { "no type".to_owned() } else { kind }
}
