//! Fan-out of what was committed to those who watch.
//!
//! Bounded: each session keeps the last few commits for its watchers. A watcher that falls further
//! behind is told so, and reads on from the log; it never slows a session down and never makes a
//! queue grow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use axum::extract::ws::Utf8Bytes;
use tokio::sync::broadcast::{self, Receiver, Sender};
use tokio::sync::watch;
use transcript::{Record, Seq, SessionId, Summary};

/// How many commits a watcher may be behind before it has to read from the log.
const COMMITS_KEPT: usize = 64;
const LIST_CHANGES_KEPT: usize = 256;

/// What happened to a session, in the order it happened.
#[derive(Debug, Clone)]
pub(crate) enum News {
    Committed(Arc<Commit>),
    /// The log cannot be written: nothing more will come for now.
    StorageFailed(Arc<str>),
    /// There is no such session any more.
    Deleted,
}

/// The records of one commit, shared by all subscribers.
#[derive(Debug)]
pub(crate) struct Commit {
    records: Arc<[Record]>,
    /// The JSON of each record, made for the first subscriber that wants it.
    frames: OnceLock<Vec<Utf8Bytes>>,
    pub(crate) at: Instant,
}

impl Commit {
    fn new(records: Arc<[Record]>) -> Self {
        Self { records, frames: OnceLock::new(), at: Instant::now() }
    }

    /// The records after this one.
    pub(crate) fn records_after(&self, seq: Seq) -> &[Record] {
        &self.records[self.first_after(seq)..]
    }

    /// The same records as JSON, serialised once for all subscribers.
    pub(crate) fn frames_after(&self, seq: Seq) -> &[Utf8Bytes] {
        let encode = || self.records.iter().map(|it| it.to_json().into()).collect();
        &self.frames.get_or_init(encode)[self.first_after(seq)..]
    }

    /// The number of the last record.
    pub(crate) fn head(&self) -> Seq {
        self.records.last().map_or(Seq(0), |it| it.seq)
    }

    fn first_after(&self, seq: Seq) -> usize {
        self.records.partition_point(|it| it.seq <= seq)
    }
}

/// A line of the session list has changed, or gone.
#[derive(Debug)]
pub(crate) enum ListChange {
    Changed { id: SessionId, summary: Box<Summary>, head: Seq },
    Gone { id: SessionId },
}

#[derive(Debug)]
pub(crate) struct Hub {
    /// Held for the moment of a look-up or an insertion only, never across an await.
    sessions: Mutex<HashMap<SessionId, Sender<News>>>,
    list: Sender<Arc<ListChange>>,
    settings: watch::Sender<Option<render::Settings>>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            sessions: Mutex::default(),
            list: broadcast::channel(LIST_CHANGES_KEPT).0,
            settings: watch::Sender::new(None),
        }
    }

    /// Subscribe first, then read the log: what is committed in between comes twice and its number
    /// tells. The other order loses it.
    pub(crate) fn watch(&self, session: &SessionId) -> Receiver<News> {
        let mut sessions = self.sessions();
        sessions.retain(|_, sender| sender.receiver_count() > 0);
        let sender = sessions.entry(session.clone());
        sender.or_insert_with(|| broadcast::channel(COMMITS_KEPT).0).subscribe()
    }

    pub(crate) fn watch_list(&self) -> Receiver<Arc<ListChange>> {
        self.list.subscribe()
    }

    /// The page settings whenever they change; the newest where several changes come together.
    pub(crate) fn watch_settings(&self) -> watch::Receiver<Option<render::Settings>> {
        self.settings.subscribe()
    }

    pub(crate) fn publish_settings(&self, settings: &render::Settings) {
        self.settings.send_replace(Some(settings.clone()));
    }

    pub(crate) fn publish(&self, session: &SessionId, records: Arc<[Record]>) {
        if let Some(sender) = self.sender(session) {
            // Nobody listening is no error.
            let _ = sender.send(News::Committed(Arc::new(Commit::new(records))));
        }
    }

    pub(crate) fn publish_failure(&self, session: &SessionId, why: &str) {
        if let Some(sender) = self.sender(session) {
            let _ = sender.send(News::StorageFailed(why.into()));
        }
    }

    pub(crate) fn publish_deletion(&self, session: &SessionId) {
        if let Some(sender) = self.sender(session) {
            let _ = sender.send(News::Deleted);
        }
        self.publish_list_change(ListChange::Gone { id: session.clone() });
    }

    pub(crate) fn publish_list_change(&self, change: ListChange) {
        let _ = self.list.send(Arc::new(change));
    }

    fn sender(&self, session: &SessionId) -> Option<Sender<News>> {
        self.sessions().get(session).filter(|it| it.receiver_count() > 0).cloned()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Sender<News>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
