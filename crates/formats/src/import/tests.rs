//! Helpers of the import tests; the laws are in `laws.rs`.

mod laws;

use serde_json::Value;
use transcript::{Attachment, Event, Millis, Record, Seq, SessionId, Transcript};

use super::{Entry, Setting};
use crate::incoming::File;

/// Files come along whose address says where they are kept.
fn attach(file: &File) -> Option<Attachment> {
    let blob = file.url.strip_prefix("/api/blobs/")?.to_owned();
    let name = file.name.clone().unwrap_or_default();
    Some(Attachment { blob, name, media_type: file.media_type.clone(), size: 0 })
}

pub(crate) fn setting() -> Setting<'static> {
    Setting { agent: "demo", now: Millis(1_700_000_000_000), attach: &attach }
}

/// The transcript of what was imported, after a look at it: nothing is left open.
pub(crate) fn transcript(entries: Vec<Entry>) -> Transcript {
    let mut transcript = Transcript::whole();
    transcript.extend(&records(entries));
    for answer in transcript.messages.iter().filter_map(transcript::Message::run) {
        assert!(!answer.is_open(), "{} is open", answer.id);
        assert!(answer.calls().all(|call| !call.is_open()), "a call of {} is open", answer.id);
    }
    transcript
}

pub(crate) fn records(entries: Vec<Entry>) -> Vec<Record> {
    (1..)
        .zip(entries)
        .map(|(seq, Entry { at, response_id, event })| {
            Record::new(Seq(seq), at, SessionId::new("s"), response_id, event)
        })
        .collect()
}

/// Events as lines, for reading.
pub(crate) fn lines(entries: &[Entry]) -> String {
    let line = |entry: &Entry| {
        let run = entry.response_id.as_ref().map_or("-", |it| it.as_str());
        let event: Value = serde_json::to_value::<&Event>(&entry.event).unwrap();
        format!("{run} {event}\n")
    };
    entries.iter().map(line).collect()
}
