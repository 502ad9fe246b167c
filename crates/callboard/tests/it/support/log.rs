//! Invariants of every log.

use std::collections::BTreeMap;

use transcript::{Event, Message, Millis, Record, ResponseId, Seq, Transcript};

/// Checks that record numbers are dense, and that every run and call ends exactly once, except for
/// runs that the caller knows to be open.
pub(crate) fn check_log(log: &[Record], may_be_open: impl Fn(&ResponseId) -> bool) {
    for (seq, record) in (1..).zip(log) {
        assert_eq!(record.seq, Seq(seq), "numbers are dense");
    }
    let mut finishes: BTreeMap<&ResponseId, usize> = BTreeMap::new();
    let mut begun: BTreeMap<&ResponseId, Millis> = BTreeMap::new();
    let mut results: BTreeMap<(&ResponseId, String), usize> = BTreeMap::new();
    for record in log {
        let Some(run) = &record.response_id else { continue };
        match &record.event {
            Event::RunStart { .. } => {
                assert!(finishes.insert(run, 0).is_none(), "begun twice");
                begun.insert(run, record.at);
            }
            Event::RunFinish { duration_ms, .. } => {
                *finishes.get_mut(run).unwrap() += 1;
                let took = record.at.since(begun[run]);
                assert!(duration_ms.is_none_or(|it| it <= took), "longer than it took");
            }
            Event::ToolCallStart { call_id, .. } => {
                assert!(results.insert((run, call_id.to_string()), 0).is_none());
            }
            Event::ToolResult { call_id, .. } => {
                *results.get_mut(&(run, call_id.to_string())).unwrap() += 1;
            }
            _ => (),
        }
    }
    for (run, n) in finishes {
        assert!(n == 1 || n == 0 && may_be_open(run), "run {run} finished {n} times");
    }
    for ((run, call), n) in results {
        assert!(n == 1 || n == 0 && may_be_open(run), "call {call} has {n} results");
    }
    let transcript = Transcript::replay(log);
    for answer in transcript.messages.iter().filter_map(Message::run) {
        assert!(!answer.is_open() || may_be_open(&answer.id));
    }
}

pub(crate) fn kinds(log: &[Record]) -> Vec<String> {
    let kind = |record: &Record| {
        let body: serde_json::Value = serde_json::from_str(&record.body()).unwrap();
        body["type"].as_str().unwrap().to_owned()
    };
    log.iter().map(kind).collect()
}
