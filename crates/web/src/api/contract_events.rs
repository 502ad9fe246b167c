//! `GET /api/sessions/{id}/contract-events`: an endless live stream of a session's events in the contract
//! format.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use formats::contract::{Envelope, Stream};
use formats::sse;
use futures_util::{StreamExt as _, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{MessageKind, Store, Window};
use tokio::time::Interval;
use transcript::{Seq, SessionId};

use crate::error::HttpError;
use crate::extract::{Params, SessionPath};
use crate::listener::StopSignal;
use crate::streaming;
use runtime::live::hub::Hub;
use runtime::live::record_stream::Records;

/// Number of a session's messages that are searched for a run that was open at a given record.
const LOOK_BACK: usize = 50;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AfterParams {
    /// Number of the last record that the client has, which is the `id` of an event. It may also be
    /// sent as the header `Last-Event-ID`. If omitted, all events from the beginning are sent.
    after: Option<u64>,
}

/// Stream of a session's events in the contract format for one client.
struct ContractEvents {
    feed: Records,
    stream: Stream,
    after: Seq,
    unsent: std::vec::IntoIter<Envelope>,
    keep_alive: Interval,
    stop: StopSignal,
}

pub(crate) async fn follow(
    State(store): State<Store>,
    State(hub): State<Arc<Hub>>,
    State(stop): State<StopSignal>,
    SessionPath(session): SessionPath,
    Params(params): Params<AfterParams>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let found = store.head(&session).await?;
    found.ok_or_else(|| HttpError::no_session(session.as_str()))?;
    let last = headers.get("last-event-id").and_then(|it| it.to_str().ok()?.parse().ok());
    let after = params.after.or(last).map_or(Seq(0), Seq);
    let start = start_of_open_run(&store, &session, after).await?;
    let events = ContractEvents {
        keep_alive: streaming::keep_alive(),
        stop,
        feed: Records::after(&store, &hub, &session, start),
        stream: Stream::default(),
        after,
        unsent: Vec::new().into_iter(),
    };
    let events = stream::unfold(events, |mut events| async {
        let event = events.next().await?;
        Some((event, events))
    });
    // The headers are sent with the first chunk, and the first event may take long.
    let open = stream::iter([sse::comment("stream-open")]);
    Ok(streaming::response(sse::MEDIA_TYPE, streaming::body(open.chain(events))))
}

/// Returns the record number after which the log is read, for a client that has the records up to
/// `after`. A run that was open at `after` is read from its beginning.
async fn start_of_open_run(
    store: &Store,
    session: &SessionId,
    after: Seq,
) -> Result<Seq, HttpError> {
    let window = Window { before: Some(after.next()), limit: LOOK_BACK };
    let rows = store.messages(session, window).await?.into_iter();
    let mut open = rows.filter(|it| it.kind == MessageKind::Answer && (it.open || it.last > after));
    Ok(open.next().map_or(after, |it| it.first.before()))
}

impl ContractEvents {
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(envelope) = self.unsent.next() {
                self.keep_alive.reset();
                // Only the last event of a record has the record's number, so that a client which disconnects
                // between two of them gets all again.
                let is_last = self.unsent.len() == 0;
                let id = if is_last { envelope.seq } else { envelope.seq.before() };
                return match serde_json::to_string(&envelope) {
                    Ok(data) => Some(sse::named_event(envelope.kind, id, data)),
                    Err(error) => {
                        tracing::error!(%error, "ending a stream: an event cannot be serialised");
                        None
                    }
                };
            }
            let record = tokio::select! {
                record = self.feed.next() => match record {
                    Ok(record) => record,
                    Err(why) => {
                        tracing::info!(%why, "ending a stream of contract events");
                        return None;
                    }
                },
                () = self.stop.wait() => return None,
                _ = self.keep_alive.tick() => return Some(sse::EMPTY_COMMENT.to_owned()),
            };
            let mut events = self.stream.apply(&record);
            events.retain(|it| it.seq > self.after);
            self.unsent = events.into_iter();
        }
    }
}
