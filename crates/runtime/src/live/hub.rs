//! Fan-out of committed records to subscribers.
//!
//! Each session keeps a bounded number of commits for its subscribers. A subscriber that falls further
//! behind is notified and catches up from the log. It never slows a session down and never makes a
//! queue grow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::broadcast::{self, Receiver, Sender};
use tokio::sync::watch;
use transcript::{Record, Seq, SessionId, Summary};

use crate::sync::lock;

/// Number of commits that a subscriber may be behind before it has to catch up from the log.
const COMMITS_KEPT: usize = 64;
const LIST_CHANGES_KEPT: usize = 256;

/// Event of a session for its subscribers, sent in the order of the log.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    Committed(Arc<Commit>),
    /// The log of the session cannot be written, for this reason. No records follow for now.
    StorageFailed(Arc<str>),
    /// The session was deleted.
    Deleted,
}

/// The records of one commit, shared by all subscribers.
#[derive(Debug)]
pub struct Commit {
    records: Arc<[Record]>,
    /// Each record of the commit as JSON, encoded for the first subscriber that needs it.
    frames: OnceLock<Vec<Bytes>>,
    /// Time at which the records were committed.
    pub at: Instant,
}

impl Commit {
    fn new(records: Arc<[Record]>) -> Self {
        Self { records, frames: OnceLock::new(), at: Instant::now() }
    }

    /// Returns the records of the commit that follow the record with this sequence number.
    pub fn records_after(&self, seq: Seq) -> &[Record] {
        &self.records[self.first_after(seq)..]
    }

    /// Returns the records after `seq` as JSON, serialised once for all subscribers and never
    /// copied.
    pub fn frames_after(&self, seq: Seq) -> &[Bytes] {
        let encode = || self.records.iter().map(|it| it.to_json().into()).collect();
        &self.frames.get_or_init(encode)[self.first_after(seq)..]
    }

    /// Returns the sequence number of the commit's last record.
    pub fn head(&self) -> Seq {
        self.records.last().map_or(Seq(0), |it| it.seq)
    }

    fn first_after(&self, seq: Seq) -> usize {
        self.records.partition_point(|it| it.seq <= seq)
    }
}

/// A change of the session list: a session that was changed or removed.
#[derive(Debug)]
pub enum ListChange {
    Changed { id: SessionId, summary: Box<Summary>, head: Seq },
    Gone { id: SessionId },
}

/// Channels from the drivers of sessions to subscribers.
#[derive(Debug)]
pub struct Hub {
    /// Channels to the subscribers of sessions. Locked for a look-up or an insertion only, never
    /// across an await.
    sessions: Mutex<HashMap<SessionId, Sender<SessionEvent>>>,
    list: Sender<Arc<ListChange>>,
    settings: watch::Sender<Option<render::Settings>>,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            sessions: Mutex::default(),
            list: broadcast::channel(LIST_CHANGES_KEPT).0,
            settings: watch::Sender::new(None),
        }
    }
}

impl Hub {
    /// Subscribes to the events of a session. Subscribe before reading the log: a record that is
    /// committed in between then arrives twice and is recognised by its number. The other order
    /// would lose it.
    pub fn watch(&self, session: &SessionId) -> Receiver<SessionEvent> {
        let mut sessions = self.sessions();
        sessions.retain(|_, sender| sender.receiver_count() > 0);
        let sender = sessions.entry(session.clone());
        sender.or_insert_with(|| broadcast::channel(COMMITS_KEPT).0).subscribe()
    }

    pub fn watch_list(&self) -> Receiver<Arc<ListChange>> {
        self.list.subscribe()
    }

    /// Subscribes to the page settings. If several changes coincide, the subscriber gets only the
    /// newest settings.
    pub fn watch_settings(&self) -> watch::Receiver<Option<render::Settings>> {
        self.settings.subscribe()
    }

    pub fn publish_settings(&self, settings: &render::Settings) {
        self.settings.send_replace(Some(settings.clone()));
    }

    pub fn publish(&self, session: &SessionId, records: Arc<[Record]>) {
        if let Some(sender) = self.sender(session) {
            // Fails only without subscribers.
            let _ = sender.send(SessionEvent::Committed(Arc::new(Commit::new(records))));
        }
    }

    pub fn publish_failure(&self, session: &SessionId, why: &str) {
        if let Some(sender) = self.sender(session) {
            let _ = sender.send(SessionEvent::StorageFailed(why.into()));
        }
    }

    pub fn publish_deletion(&self, session: &SessionId) {
        if let Some(sender) = self.sender(session) {
            let _ = sender.send(SessionEvent::Deleted);
        }
        self.publish_list_change(ListChange::Gone { id: session.clone() });
    }

    pub fn publish_list_change(&self, change: ListChange) {
        let _ = self.list.send(Arc::new(change));
    }

    fn sender(&self, session: &SessionId) -> Option<Sender<SessionEvent>> {
        self.sessions().get(session).filter(|it| it.receiver_count() > 0).cloned()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Sender<SessionEvent>>> {
        lock(&self.sessions)
    }
}
