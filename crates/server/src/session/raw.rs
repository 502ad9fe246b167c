//! What a program has written, on its way to the store, which wants many lines at once.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use store::RawLine;
use tokio::time::Instant;

/// Enough to be compressed well.
const ENOUGH: usize = 256 * 1024;
/// How long a line may wait for company.
const PATIENCE: Duration = Duration::from_secs(1);
/// Of the name of what we could not read.
const KIND_CHARS: usize = 60;

#[derive(Default)]
pub(super) struct RawLines {
    pub(super) lines: Vec<RawLine>,
    /// How often it said something of a kind that we could not read.
    pub(super) unrecognized: BTreeMap<String, u64>,
    bytes: usize,
    /// When the oldest of them came.
    since: Option<Instant>,
}

impl RawLines {
    pub(super) fn add(&mut self, line: RawLine) {
        self.bytes += line.text.len();
        self.lines.push(line);
        self.since.get_or_insert_with(Instant::now);
    }

    pub(super) fn count_unrecognized(&mut self, raw: &str) {
        *self.unrecognized.entry(kind_of(raw)).or_default() += 1;
    }

    /// When they are to be stored, if there are any.
    pub(super) fn due(&self) -> Option<Instant> {
        let wait = if self.bytes < ENOUGH { PATIENCE } else { Duration::ZERO };
        self.since.map(|it| it + wait)
    }

    pub(super) fn is_due(&self) -> bool {
        self.due().is_some_and(|it| it <= Instant::now())
    }
}

/// What a program calls what it said, in a few plain letters: `system/novelty`.
fn kind_of(raw: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(raw) else { return "no JSON".to_owned() };
    let words = ["type", "subtype", "method"].iter().filter_map(|it| fields.get(*it)?.as_str());
    let kind = words.collect::<Vec<_>>().join("/");
    let is_plain = |it: &char| it.is_ascii_alphanumeric() || "_-/.".contains(*it);
    let kind: String = kind.chars().filter(is_plain).take(KIND_CHARS).collect();
    if kind.is_empty() { "no type".to_owned() } else { kind }
}
