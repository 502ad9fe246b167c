//! `GET /api/sessions/{id}/contract-events`: a session in the words of the message contract, live and
//! without end.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use formats::contract::{Envelope, Stream};
use futures_util::{StreamExt as _, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{MessageKind, Window};
use tokio::sync::watch;
use transcript::{Seq, SessionId};

use super::App;
use super::error::HttpError;
use super::extract::{Named, Params};
use super::feed::Feed;
use super::guest::before;

const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// Of the messages before a number, how many are looked at for a run that was open then.
const LOOK_BACK: usize = 50;

#[derive(Deserialize, JsonSchema)]
pub(super) struct AfterParams {
    /// The last number that the reader has, which is the `id` of an event: it may also be sent as
    /// `Last-Event-ID`. If left out: everything from the beginning on.
    after: Option<u64>,
}

struct Telling {
    feed: Feed,
    stream: Stream,
    after: Seq,
    unsent: std::vec::IntoIter<Envelope>,
    stopping: watch::Receiver<bool>,
}

pub(super) async fn follow(
    State(app): State<App>,
    Named(session): Named,
    Params(params): Params<AfterParams>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let found = app.store().head(&session).await?;
    found.ok_or_else(|| HttpError::no_session(session.as_str()))?;
    let last = headers.get("last-event-id").and_then(|it| it.to_str().ok()?.parse().ok());
    let after = params.after.or(last).map_or(Seq(0), Seq);
    let start = start_of_open_run(&app, &session, after).await?;
    let telling = Telling {
        stopping: app.stopping.clone(),
        feed: Feed::after(app, session, start),
        stream: Stream::default(),
        after,
        unsent: Vec::new().into_iter(),
    };
    let events = stream::unfold(telling, |mut telling| async {
        let event = telling.next().await?;
        Some((Ok::<_, Infallible>(event), telling))
    });
    // The headers go out with the first piece, and that may take long.
    let open = stream::iter([Ok(Event::default().comment("stream-open"))]);
    let keep_alive = KeepAlive::new().interval(SIGN_OF_LIFE);
    Ok(Sse::new(open.chain(events)).keep_alive(keep_alive).into_response())
}

/// A run is understood from its beginning only.
async fn start_of_open_run(app: &App, session: &SessionId, after: Seq) -> Result<Seq, HttpError> {
    let window = Window { before: Some(after.next()), limit: LOOK_BACK };
    let rows = app.store().messages(session, window).await?.into_iter();
    let mut open = rows.filter(|it| it.kind == MessageKind::Answer && (it.open || it.last > after));
    Ok(open.next().map_or(after, |it| before(it.first)))
}

impl Telling {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(envelope) = self.unsent.next() {
                // Until all that a record says has arrived, the reader has but the one before it.
                let is_last = self.unsent.len() == 0;
                let id = if is_last { envelope.seq } else { before(envelope.seq) };
                let event = Event::default().event(envelope.kind).id(id.to_string());
                return event.json_data(&envelope).ok();
            }
            let record = tokio::select! {
                record = self.feed.next() => record.ok()?,
                // The only change there is.
                _ = self.stopping.changed() => return None,
            };
            let mut told = self.stream.apply(&record);
            told.retain(|it| it.seq > self.after);
            self.unsent = told.into_iter();
        }
    }
}
