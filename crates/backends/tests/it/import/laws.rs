//! Laws about growing files: the records of a prefix are a prefix of the records.

use std::collections::HashSet;

use backends::import::{Imported, Tail};
use transcript::{Event, Record, RunMessage, Seq, SessionId};

use super::files::{File, entries};

/// Returns the position after every line.
fn line_ends(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices('\n').map(|(at, _)| at + 1)
}

/// Returns a position within every line and the one after it.
fn cuts(text: &str) -> Vec<usize> {
    let mut cuts = Vec::new();
    for (start, end) in std::iter::once(0).chain(line_ends(text)).zip(line_ends(text)) {
        let middle = (start.midpoint(end)..end).find(|it| text.is_char_boundary(*it));
        cuts.extend(middle.into_iter().chain([end]));
    }
    cuts
}

#[test]
fn a_prefix_of_a_file_gives_a_prefix_of_its_records() {
    for file in File::all() {
        let whole = file.import(Tail::Open);
        let whole = entries(&whole);
        for cut in cuts(&file.text) {
            let Some(beginning) = file.import_text(&file.text[..cut], Tail::Open) else { continue };
            let beginning = entries(&beginning);
            let same = beginning.iter().zip(&whole).take_while(|(a, b)| a == b).count();
            assert_eq!(same, beginning.len(), "{} cut at {cut}", file.name);
        }
    }
}

#[test]
fn ended_turns_do_not_change_as_a_file_grows() {
    for file in File::all() {
        let whole = file.import(Tail::Close);
        for cut in line_ends(&file.text) {
            let Some(beginning) = file.import_text(&file.text[..cut], Tail::LeaveOut) else {
                continue;
            };
            for (idx, turn) in beginning.turns.iter().enumerate() {
                assert_eq!(turn.id, whole.turns[idx].id, "{} cut at {cut}", file.name);
                // The newest turn may have been only idle, and continue later.
                let is_newest = idx + 1 == beginning.turns.len();
                assert!(
                    is_newest || *turn == whole.turns[idx],
                    "{} cut at {cut}: {}",
                    file.name,
                    turn.id
                );
            }
        }
    }
}

#[test]
fn nothing_stays_open_and_ids_are_unique() {
    for file in File::all() {
        for cut in line_ends(&file.text) {
            let text = &file.text[..cut];
            for tail in [Tail::LeaveOut, Tail::Close] {
                if let Some(imported) = file.import_text(text, tail) {
                    check(&imported);
                }
            }
        }
    }
}

pub(super) fn check(imported: &Imported) {
    let mut ids = HashSet::new();
    for turn in &imported.turns {
        assert!(ids.insert(turn.id.as_str().to_owned()), "two runs are {}", turn.id);
        let answer = answer(turn);
        assert!(!answer.is_open(), "{} is open", turn.id);
        for call in answer.calls() {
            assert!(!call.is_open(), "{} is open", call.id);
        }
        let count = |of: fn(&Event) -> bool| turn.entries.iter().filter(|it| of(&it.event)).count();
        assert_eq!(count(|it| matches!(it, Event::RunStart { .. })), 1);
        assert_eq!(count(|it| matches!(it, Event::RunFinish { .. })), 1);
        assert!(matches!(turn.entries.last().unwrap().event, Event::RunFinish { .. }));
        assert!(turn.entries.is_sorted_by_key(|it| it.at), "{}", turn.id);
        for entry in &turn.entries {
            if let Event::UserMessage { message_id, .. } = &entry.event {
                assert!(ids.insert(message_id.as_str().to_owned()), "two are {message_id}");
            }
        }
    }
}

pub(super) fn answer(turn: &backends::import::Turn) -> RunMessage {
    let of_run = turn.entries.iter().filter(|it| it.response_id.is_some());
    let records: Vec<Record> = of_run
        .zip(1..)
        .map(|(it, seq)| {
            assert_eq!(it.response_id.as_ref(), Some(&turn.id));
            let session = SessionId::new("s");
            Record::new(Seq(seq), it.at, session, Some(turn.id.clone()), it.event.clone())
        })
        .collect();
    RunMessage::replay(&turn.id, &records)
}
