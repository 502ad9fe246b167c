//! WebSocket subscriptions to records: first those of the log after a number, then live records, without a
//! gap.
//!
//! The subscription starts before the log is read. A subscriber that falls behind the live commits catches up
//! from the log like a new one. The only queue is the outbox of the connection.

use axum::extract::ws::Utf8Bytes;
use store::{Page, ReadRange, Stored};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use transcript::{Record, Seq, SessionId, stream};

use crate::App;
use crate::error::{HttpError, RequestCode};
use crate::ws::frames::{Notice, text_of};
use runtime::hub::SessionEvent;

/// Maximum number of records that are read from the log in one query.
const PAGE: usize = 500;

/// Sender of frames to one WebSocket connection, in batches that are sent in order.
pub(crate) type Outbox = mpsc::Sender<Vec<Utf8Bytes>>;

pub(crate) struct RecordSubscription {
    pub(crate) app: App,
    pub(crate) session: SessionId,
    /// Number of the last record that the subscriber has.
    pub(crate) seen: Seq,
    /// Whether to send all records, also deltas that later records contain.
    pub(crate) deltas: bool,
    pub(crate) outbox: Outbox,
}

/// Error that ends a subscription: its connection has ended or its session was deleted.
struct Gone;

impl RecordSubscription {
    /// Sends the session's records until the connection ends, the session is deleted, or the log
    /// cannot be read.
    pub(crate) async fn run(mut self) {
        let mut live = self.app.hub.watch(&self.session);
        loop {
            match self.catch_up().await {
                Ok(Ok(())) => (),
                Ok(Err(Gone)) => return,
                Err(error) => {
                    let _ = self.outbox.send(vec![self.error(error)]).await;
                    return;
                }
            }
            if self.follow(&mut live).await.is_err() {
                return;
            }
        }
    }

    /// Sends the records of the session's log that the subscriber does not have.
    async fn catch_up(&mut self) -> Result<Result<(), Gone>, HttpError> {
        loop {
            // Reserve a slot before reading a page, so that a waiting subscriber holds no data.
            let Ok(slot) = self.outbox.clone().reserve_owned().await else { return Ok(Err(Gone)) };
            let limit = PAGE;
            let range = ReadRange { after: self.seen, up_to: None, limit, deltas: self.deltas };
            let page = self.app.store().read(&self.session, range).await?;
            let is_last = page.records.len() < PAGE;
            let last = page.records.last().map_or(self.seen, |record| record.seq);
            // Records that the last page does not contain are covered by records that were sent.
            self.seen = if is_last { page.head.max(last) } else { last };
            let mut frames = self.frames(page);
            if is_last {
                let session_id = self.session.clone();
                frames.push(Notice::CaughtUp { session_id, seq: self.seen }.to_frame());
            }
            slot.send(frames);
            if is_last {
                return Ok(Ok(()));
            }
        }
    }

    fn frames(&self, page: Page) -> Vec<Utf8Bytes> {
        if self.deltas {
            return page.records.iter().map(|it| it.to_json().into()).collect();
        }
        merge_deltas(page.records).iter().map(|it| Utf8Bytes::from(it.to_json())).collect()
    }

    fn error(&self, error: HttpError) -> Utf8Bytes {
        Notice::error(Some(self.session.to_string()), error).to_frame()
    }

    /// Sends the records of live commits until this subscriber falls too far behind.
    async fn follow(&mut self, live: &mut Receiver<SessionEvent>) -> Result<(), Gone> {
        loop {
            let frames = match live.recv().await {
                Ok(SessionEvent::Committed(commit)) => {
                    let frames =
                        commit.frames_after(self.seen).iter().cloned().map(text_of).collect();
                    self.seen = self.seen.max(commit.head());
                    self.app.metrics.fanned_out(commit.at.elapsed());
                    frames
                }
                Ok(SessionEvent::Deleted) => {
                    let notice = Notice::SessionDeleted { id: self.session.clone() };
                    let _ = self.outbox.send(vec![notice.to_frame()]).await;
                    return Err(Gone);
                }
                Ok(SessionEvent::StorageFailed(why)) => {
                    vec![self.error(HttpError::new(RequestCode::Storage, &*why))]
                }
                Err(RecvError::Lagged(_)) => return Ok(()),
                Err(RecvError::Closed) => return Err(Gone),
            };
            if !frames.is_empty() && self.outbox.send(frames).await.is_err() {
                return Err(Gone);
            }
        }
    }
}

/// Merges neighbouring deltas of the same text, arguments or output into one delta with the last
/// number.
fn merge_deltas(records: Vec<Stored>) -> Vec<Stored> {
    let mut merged: Vec<Stored> = Vec::with_capacity(records.len());
    let mut growing: Option<Record> = None;
    for stored in records {
        let next = Some(stored.record()).filter(|it| stream::continued_by(&it.event).is_some());
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
