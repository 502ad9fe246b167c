//! Unrecognized records: a message keeps few of them and counts every line.

use proptest::prelude::*;
use transcript::*;

fn record(seq: u64, event: Event) -> Record {
    Record::new(Seq(seq), Millis(0), SessionId::new("s"), Some(ResponseId::new("r")), event)
}

/// Generates a record of a run: a number of unreadable lines, or a notice.
fn step() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![8 => Just(Some(1)), 1 => (1..1000_u64).prop_map(Some), 1 => Just(None)]
}

fn event(step: Option<u64>, source: &str) -> Event {
    match step {
        Some(lines) => Event::Unrecognized { source: source.into(), raw: "no JSON".into(), lines },
        None => Event::Notice { level: Level::Info, text: "seen".into() },
    }
}

fn lines(part: &Part) -> Option<u64> {
    match part.kind {
        PartKind::Unrecognized { lines, .. } => Some(lines),
        _ => None,
    }
}

proptest! {
    #[test]
    fn unrecognized_parts_are_few_and_count_every_line(
        steps in prop::collection::vec(step(), 0..200)
    ) {
        let mut transcript = Transcript::default();
        let (mut total, mut notices) = (0, 0);
        for (seq, step) in (1..).zip(&steps) {
            transcript.apply(&record(seq, event(*step, "claude")));
            total += step.unwrap_or(0);
            notices += usize::from(step.is_none());
            let parts = &transcript.messages[0].run().unwrap().parts;
            let unread: Vec<u64> = parts.iter().filter_map(lines).collect();
            prop_assert_eq!(unread.iter().sum::<u64>(), total);
            prop_assert!(unread.len() <= MAX_UNRECOGNIZED + 1);
            prop_assert_eq!(parts.len() - unread.len(), notices, "nothing else is folded");
        }
    }
}

#[test]
fn foreign_parts_of_an_import_are_all_kept() {
    let events = (1..=200).map(|seq| record(seq, event(Some(1), FOREIGN_PART)));
    let transcript = Transcript::replay(&events.collect::<Vec<_>>());
    assert_eq!(transcript.messages[0].run().unwrap().parts.len(), 200);
}

#[test]
fn one_line_is_written_without_a_count() {
    let json = |lines| record(1, event(Some(lines), "pi")).to_json();
    assert!(!json(1).contains("lines"), "{}", json(1));
    let read: Record = serde_json::from_str(&json(7)).unwrap();
    assert_eq!(read.event, event(Some(7), "pi"));
}
