//! WebSocket subscriptions to records: first those of the log after a number, then live records, without a
//! gap.
//!
//! The only queue is the outbox of the connection.

use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use tokio::sync::mpsc;
use transcript::{Seq, SessionId};

use crate::error::{HttpError, RequestCode};
use crate::ws::frames::{Notice, text_of};
use runtime::live::record_stream::{Batch, RecordStream};
use runtime::metrics::Metrics;

/// Sender of frames to one WebSocket connection, in batches that are sent in order.
pub(crate) type Outbox = mpsc::Sender<Vec<Utf8Bytes>>;

/// Sends the records of a stream until the connection ends, the session is deleted, or the log
/// cannot be read.
pub(crate) async fn send_records(
    session: SessionId,
    mut stream: RecordStream,
    metrics: Arc<Metrics>,
    outbox: Outbox,
) {
    loop {
        // Reserve a slot before reading a page, so that a waiting subscriber holds no data.
        let slot = match stream.is_behind() {
            true => match outbox.clone().reserve_owned().await {
                Ok(slot) => Some(slot),
                Err(_) => return,
            },
            false => None,
        };
        let batch = stream.next().await;
        let is_over = matches!(batch, Ok(Batch::Deleted) | Err(_));
        let frames = frames(&session, &metrics, stream.seen(), batch);
        let sent = match slot {
            Some(slot) => {
                slot.send(frames);
                Ok(())
            }
            None if frames.is_empty() => Ok(()),
            None => outbox.send(frames).await,
        };
        if is_over || sent.is_err() {
            return;
        }
    }
}

/// Returns the frames for a batch of records; `seen` is the number of its last record.
fn frames(
    session: &SessionId,
    metrics: &Metrics,
    seen: Seq,
    batch: Result<Batch, store::Error>,
) -> Vec<Utf8Bytes> {
    let failure = |error| Notice::error(Some(session.to_string()), error).to_frame();
    match batch {
        Ok(Batch::Stored { records, is_last }) => {
            let mut frames: Vec<_> = records.iter().map(|it| it.to_json().into()).collect();
            if is_last {
                let (session_id, seq) = (session.clone(), seen);
                frames.push(Notice::CaughtUp { session_id, seq }.to_frame());
            }
            frames
        }
        Ok(Batch::Committed { commit, after }) => {
            let frames = commit.frames_after(after).iter().cloned().map(text_of).collect();
            metrics.fanned_out(commit.at.elapsed());
            frames
        }
        Ok(Batch::Missed) => Vec::new(),
        Ok(Batch::StorageFailed(why)) => {
            vec![failure(HttpError::new(RequestCode::Storage, &*why))]
        }
        Ok(Batch::Deleted) => vec![Notice::SessionDeleted { id: session.clone() }.to_frame()],
        Err(error) => vec![failure(error.into())],
    }
}
