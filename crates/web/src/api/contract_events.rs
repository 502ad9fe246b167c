//! `GET /api/sessions/{id}/contract-events`: a session as events of the message contract, live and without
//! end.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use formats::contract::{Envelope, Stream};
use formats::sse;
use futures_util::{StreamExt as _, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{MessageKind, Window};
use tokio::sync::watch;
use tokio::time::Interval;
use transcript::{Seq, SessionId};

use crate::App;
use crate::error::HttpError;
use crate::extract::{Params, SessionPath};
use crate::record_stream::{RecordStream, before};
use crate::streaming;

/// Number of messages among which a run is sought that was open at a certain record.
const LOOK_BACK: usize = 50;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AfterParams {
    /// The last number that the reader has, which is the `id` of an event: it may also be sent as
    /// `Last-Event-ID`. If left out: everything from the beginning on.
    after: Option<u64>,
}

/// The events of one session for one reader.
struct ContractEvents {
    feed: RecordStream,
    stream: Stream,
    after: Seq,
    unsent: std::vec::IntoIter<Envelope>,
    keep_alive: Interval,
    stopping: watch::Receiver<bool>,
}

pub(crate) async fn follow(
    State(app): State<App>,
    SessionPath(session): SessionPath,
    Params(params): Params<AfterParams>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let found = app.store().head(&session).await?;
    found.ok_or_else(|| HttpError::no_session(session.as_str()))?;
    let last = headers.get("last-event-id").and_then(|it| it.to_str().ok()?.parse().ok());
    let after = params.after.or(last).map_or(Seq(0), Seq);
    let start = start_of_open_run(&app, &session, after).await?;
    let events = ContractEvents {
        keep_alive: streaming::keep_alive(),
        stopping: app.stopping.clone(),
        feed: RecordStream::after(app, session, start),
        stream: Stream::default(),
        after,
        unsent: Vec::new().into_iter(),
    };
    let events = stream::unfold(events, |mut events| async {
        let event = events.next().await?;
        Some((event, events))
    });
    // The headers are sent with the first piece, which may take long.
    let open = stream::iter([sse::comment("stream-open")]);
    Ok(streaming::response(sse::MEDIA_TYPE, streaming::body(open.chain(events))))
}

/// Returns the number from which records are read: a run has to be read from its beginning.
async fn start_of_open_run(app: &App, session: &SessionId, after: Seq) -> Result<Seq, HttpError> {
    let window = Window { before: Some(after.next()), limit: LOOK_BACK };
    let rows = app.store().messages(session, window).await?.into_iter();
    let mut open = rows.filter(|it| it.kind == MessageKind::Answer && (it.open || it.last > after));
    Ok(open.next().map_or(after, |it| before(it.first)))
}

impl ContractEvents {
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(envelope) = self.unsent.next() {
                self.keep_alive.reset();
                // Until the reader has all events of a record, it has only the record before.
                let is_last = self.unsent.len() == 0;
                let id = if is_last { envelope.seq } else { before(envelope.seq) };
                let data = serde_json::to_string(&envelope).ok()?;
                return Some(sse::named_event(envelope.kind, id, data));
            }
            let record = tokio::select! {
                record = self.feed.next() => record.ok()?,
                // The only change there is.
                _ = self.stopping.changed() => return None,
                _ = self.keep_alive.tick() => return Some(sse::EMPTY_COMMENT.to_owned()),
            };
            let mut events = self.stream.apply(&record);
            events.retain(|it| it.seq > self.after);
            self.unsent = events.into_iter();
        }
    }
}
