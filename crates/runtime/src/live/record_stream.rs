//! A stream of a session's records: first those of the log after a number, then live records,
//! without a gap.
//!
//! The subscription starts before the log is read. A subscriber that falls behind the live commits
//! catches up from the log like a new one.

use std::collections::VecDeque;
use std::sync::Arc;

use store::{ReadRange, Store, Stored};
use thiserror::Error;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use transcript::{Record, Seq, SessionId, stream};

use crate::live::hub::{Commit, Hub, SessionEvent};

/// Maximum number of records that are read from the log in one query.
const PAGE: usize = 500;

/// Records of a session in the batches in which they are read or committed.
pub struct RecordStream {
    store: Store,
    session: SessionId,
    /// Number of the last record that was read from the log or received live.
    seen: Seq,
    has_covered_deltas: bool,
    live: Receiver<SessionEvent>,
    is_behind: bool,
}

/// Next part of a stream of records.
pub enum Batch {
    /// Records that were read from the log. `is_last` is true if live records follow.
    Stored { records: Vec<Stored>, is_last: bool },
    /// A live commit, whose records follow the record number `after`.
    Committed { commit: Arc<Commit>, after: Seq },
    /// Live records were missed. The next batch is read from the log.
    Missed,
    /// The log of the session cannot be written, for this reason. No records follow for now.
    StorageFailed(Arc<str>),
    /// The session was deleted, and nothing follows.
    Deleted,
}

impl RecordStream {
    /// Starts a stream of the session's records after the number `seen`.
    pub fn after(store: &Store, hub: &Hub, session: &SessionId, seen: Seq) -> Self {
        let (live, session) = (hub.watch(session), session.clone());
        let store = store.clone();
        Self { store, session, seen, has_covered_deltas: true, live, is_behind: true }
    }

    /// Omits deltas of the log that later records contain, and merges the others.
    pub fn without_covered_deltas(self) -> Self {
        Self { has_covered_deltas: false, ..self }
    }

    /// Continues the stream after a record that the caller has read from the log itself.
    pub(crate) fn skip_to(&mut self, seen: Seq) {
        (self.seen, self.is_behind) = (seen, false);
    }

    /// Returns the number of the last record that the stream has returned or omitted.
    pub fn seen(&self) -> Seq {
        self.seen
    }

    /// Returns whether the next batch is read from the log.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Waits for the next batch and returns it. Cancel safe.
    pub async fn next(&mut self) -> Result<Batch, store::Error> {
        if self.is_behind {
            return self.read_page().await;
        }
        let event = self.live.recv().await;
        Ok(self.live_batch(event))
    }

    /// Returns the next live batch if it is already available.
    pub(crate) fn try_next(&mut self) -> Option<Batch> {
        let event = match self.live.try_recv() {
            Ok(event) => Ok(event),
            Err(TryRecvError::Lagged(n)) => Err(RecvError::Lagged(n)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
        };
        Some(self.live_batch(event))
    }

    fn live_batch(&mut self, event: Result<SessionEvent, RecvError>) -> Batch {
        match event {
            Ok(SessionEvent::Committed(commit)) => {
                let after = self.seen;
                self.seen = after.max(commit.head());
                Batch::Committed { commit, after }
            }
            Ok(SessionEvent::StorageFailed(why)) => Batch::StorageFailed(why),
            Ok(SessionEvent::Deleted) | Err(RecvError::Closed) => Batch::Deleted,
            Err(RecvError::Lagged(_)) => {
                self.is_behind = true;
                Batch::Missed
            }
        }
    }

    async fn read_page(&mut self) -> Result<Batch, store::Error> {
        let deltas = self.has_covered_deltas;
        let range = ReadRange { after: self.seen, up_to: None, limit: PAGE, deltas };
        let page = self.store.read(&self.session, range).await?;
        let is_last = page.records.len() < PAGE;
        let last = page.records.last().map_or(self.seen, |it| it.seq);
        // Records that the last page does not contain are covered by records that were returned.
        self.seen = if is_last { page.head.max(last) } else { last };
        self.is_behind = !is_last;
        let records = if deltas { page.records } else { merge_deltas(page.records) };
        Ok(Batch::Stored { records, is_last })
    }
}

/// Reason why a stream of a session's records ends.
#[derive(Debug, Error)]
pub enum Lost {
    #[error("The session was deleted.")]
    Deleted,
    #[error("The log failed: {0}. Try again later.")]
    Storage(String),
}

/// Records of a session, one by one.
pub struct Records {
    stream: RecordStream,
    read: VecDeque<Record>,
}

impl Records {
    /// Starts a stream of the session's records after the number `seen`.
    pub fn after(store: &Store, hub: &Hub, session: &SessionId, seen: Seq) -> Self {
        let stream = RecordStream::after(store, hub, session, seen);
        Self { stream, read: VecDeque::new() }
    }

    /// Returns all further records of the session that are in the log now.
    pub async fn catch_up(&mut self) -> Result<Vec<Record>, Lost> {
        while self.stream.is_behind {
            self.read_batch().await?;
        }
        Ok(self.read.drain(..).collect())
    }

    /// Waits for the next record of the session and returns it. Cancel safe.
    pub async fn next(&mut self) -> Result<Record, Lost> {
        loop {
            if let Some(record) = self.read.pop_front() {
                return Ok(record);
            }
            self.read_batch().await?;
        }
    }

    async fn read_batch(&mut self) -> Result<(), Lost> {
        match self.stream.next().await.map_err(|error| Lost::Storage(error.to_string()))? {
            Batch::Stored { records, .. } => self.read.extend(records.iter().map(Stored::record)),
            Batch::Committed { commit, after } => {
                self.read.extend(commit.records_after(after).iter().cloned());
            }
            Batch::Missed => (),
            Batch::StorageFailed(why) => return Err(Lost::Storage(why.to_string())),
            Batch::Deleted => return Err(Lost::Deleted),
        }
        Ok(())
    }
}

/// Merges neighbouring deltas of the same text, arguments or output into one delta with the last
/// number.
fn merge_deltas(records: Vec<Stored>) -> Vec<Stored> {
    let mut merged: Vec<Stored> = Vec::with_capacity(records.len());
    let mut growing: Option<Record> = None;
    for stored in records {
        let next = mergeable(&stored);
        if let (Some(delta), Some(next)) = (&mut growing, &next)
            && delta.response_id == next.response_id
            && stream::merge(&mut delta.event, &next.event)
        {
            (delta.seq, delta.at) = (next.seq, next.at);
            continue;
        }
        merged.extend(growing.take().as_ref().map(Stored::from));
        match next {
            Some(delta) => growing = Some(delta),
            None => merged.push(stored),
        }
    }
    merged.extend(growing.as_ref().map(Stored::from));
    merged
}

/// Returns a delta that can be merged; `None` for other records, which are not parsed, and for
/// deltas with fields that this version does not know, which would be lost.
fn mergeable(stored: &Stored) -> Option<Record> {
    if !stored.body.contains("\"delta\":") {
        return None;
    }
    let delta = stored.record();
    let is_delta = stream::continued_by(&delta.event).is_some();
    (is_delta && delta.body() == stored.body).then_some(delta)
}

#[cfg(test)]
mod tests {
    //! Merging loses nothing, and a stream has no gap.

    use store::Options;
    use transcript::{Event, Millis, PartId, ResponseId};

    use super::*;

    fn delta(seq: u64, text: &str) -> Record {
        let run = ResponseId::new("run");
        let (part_id, parent_call_id) = (PartId::numbered(&run, 0), None);
        let event = Event::TextDelta { part_id, parent_call_id, delta: text.to_owned() };
        Record::new(Seq(seq), Millis(1), SessionId::new("s"), Some(run), event)
    }

    #[test]
    fn only_deltas_without_unknown_fields_are_merged() {
        let mut stored = [delta(1, "a"), delta(2, "b"), delta(3, "c"), delta(4, "d")]
            .map(|it| Stored::from(&it))
            .to_vec();
        stored[2].body = stored[2].body.replace("}", ",\"later\":1}");
        let merged = merge_deltas(stored);
        let seqs: Vec<u64> = merged.iter().map(|it| it.seq.0).collect();
        assert_eq!(seqs, [2, 3, 4]);
        assert!(merged[0].body.contains("\"ab\"") && merged[1].body.contains("later"));
    }

    #[tokio::test]
    async fn records_of_the_log_and_live_ones_have_no_gap() {
        let data = tempfile::tempdir().unwrap();
        let store = Store::open(data.path(), Options::default()).unwrap();
        let (hub, session) = (Hub::default(), SessionId::new("s"));
        let append = async |seq: u64| {
            let event = Event::SessionUpdated {
                agent: None,
                workspace: None,
                workspace_confirmed: false,
                title: Some(seq.to_string()),
                archived: None,
            };
            let record = Record::new(Seq(seq), Millis(1), session.clone(), None, event);
            let records: Arc<[Record]> = [record].into();
            store.append(&session, Seq(seq - 1), Arc::clone(&records)).await.unwrap();
            hub.publish(&session, records);
        };
        append(1).await;
        append(2).await;
        let mut records = Records::after(&store, &hub, &session, Seq(1));
        // Committed after the subscription and before the log is read, so it arrives twice.
        append(3).await;
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.push(records.next().await.unwrap().seq.0);
        }
        // More commits than the hub keeps: the stream falls behind.
        for seq in 4..100 {
            append(seq).await;
        }
        while seen.len() < 98 {
            seen.push(records.next().await.unwrap().seq.0);
        }
        assert!(seen.into_iter().eq(2..100));
    }
}
