//! A stream of a session's records: first those of the log after a number, then live records, without a gap.

use std::collections::VecDeque;

use store::ReadRange;
use thiserror::Error;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use transcript::{Record, Seq, SessionId};

use crate::App;
use crate::error::{HttpError, RequestCode};
use runtime::hub::SessionEvent;

/// Maximum number of records that are read from the log in one query.
const PAGE: usize = 500;

pub(crate) struct RecordStream {
    app: App,
    session: SessionId,
    /// Number of the last record that was read from the log or received live.
    seen: Seq,
    /// Receiver of the session's live records. The subscription starts before the log is read.
    live: Receiver<SessionEvent>,
    is_behind: bool,
    read: VecDeque<Record>,
}

/// Returns the record number before `seq`, so that a stream after it begins with `seq`.
pub(crate) fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}

/// Reason why a stream of a session's records ends.
#[derive(Debug, Error)]
pub(crate) enum Lost {
    #[error("The session was deleted.")]
    Deleted,
    #[error("The log failed: {0}. Try again later.")]
    Storage(String),
}

impl From<Lost> for HttpError {
    fn from(lost: Lost) -> Self {
        let code = match lost {
            Lost::Deleted => RequestCode::SessionNotFound,
            Lost::Storage(_) => RequestCode::Storage,
        };
        Self::new(code, lost.to_string())
    }
}

impl RecordStream {
    /// Starts a stream of the session's records after the number `seen`.
    pub(crate) fn after(app: App, session: SessionId, seen: Seq) -> Self {
        let live = app.hub.watch(&session);
        Self { app, session, seen, live, is_behind: true, read: VecDeque::new() }
    }

    /// Returns all further records of the session that are in the log now.
    pub(crate) async fn catch_up(&mut self) -> Result<Vec<Record>, Lost> {
        let mut records = Vec::from(std::mem::take(&mut self.read));
        while self.is_behind {
            self.read_page().await?;
            records.extend(self.read.drain(..));
        }
        Ok(records)
    }

    /// Waits for the next record of the session and returns it. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Record, Lost> {
        loop {
            if let Some(record) = self.read.pop_front() {
                return Ok(record);
            }
            if self.is_behind {
                self.read_page().await?;
                continue;
            }
            match self.live.recv().await {
                Ok(SessionEvent::Committed(commit)) => {
                    self.read.extend(commit.records_after(self.seen).iter().cloned());
                    self.seen = self.seen.max(commit.head());
                }
                Ok(SessionEvent::Deleted) | Err(RecvError::Closed) => return Err(Lost::Deleted),
                Ok(SessionEvent::StorageFailed(why)) => return Err(Lost::Storage(why.to_string())),
                Err(RecvError::Lagged(_)) => self.is_behind = true,
            }
        }
    }

    async fn read_page(&mut self) -> Result<(), Lost> {
        let range = ReadRange { after: self.seen, up_to: None, limit: PAGE, deltas: true };
        let page = self.app.store().read(&self.session, range).await;
        let page = page.map_err(|error| Lost::Storage(error.to_string()))?;
        self.is_behind = page.records.len() == PAGE;
        self.read.extend(page.records.iter().map(store::Stored::record));
        self.seen = self.read.back().map_or(self.seen, |it| it.seq);
        Ok(())
    }
}
