//! The store from outside: laws on random logs, rows on small ones, and the folder.

mod damage;
mod delete;
mod folder;
mod grants;
mod import;
mod laws;
mod log;
pub(crate) mod plans;
mod programs;
mod rows;
mod search;
mod upkeep;

use std::path::Path;
use std::sync::Arc;

use transcript::{Event, Record, Seq, SessionId};

use crate::{AppendError, Options, Page, ReadRange, Store, Stored, Sync};

fn open(dir: &Path) -> Store {
    // What is tested here survives the end of the process, not the loss of power.
    Store::open(dir, Options { sync: Sync::Normal, ..Options::default() }).unwrap()
}

fn session(id: &str) -> SessionId {
    SessionId::parse(id).unwrap()
}

async fn append(store: &Store, records: &[Record]) -> Result<(), AppendError> {
    let expected = Seq(records[0].seq.0 - 1);
    store.append(&records[0].session_id, expected, Arc::from(records)).await
}

/// Events of one session as records from 1 on, in no run.
fn records(session: &SessionId, events: impl IntoIterator<Item = Event>) -> Vec<Record> {
    let record = |(seq, event)| {
        Record::new(Seq(seq), transcript::Millis(1000), session.clone(), None, event)
    };
    (1..).zip(events).map(record).collect()
}

const ALL: ReadRange = ReadRange { after: Seq(0), up_to: None, limit: usize::MAX, deltas: true };

async fn read_all(store: &Store, session: &SessionId) -> Vec<Stored> {
    let Page { records, head } = store.read(session, ALL).await.unwrap();
    assert_eq!(head.0, records.len() as u64);
    records
}

fn json(records: &[Record]) -> Vec<String> {
    records.iter().map(Record::to_json).collect()
}

fn stored_json(records: &[Stored]) -> Vec<String> {
    records.iter().map(Stored::to_json).collect()
}
