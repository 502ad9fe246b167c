//! Streamed responses.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Returns a streamed HTTP response with this body, which is not cached.
pub(crate) fn response(media_type: &'static str, body: Body) -> Response {
    ([(CONTENT_TYPE, media_type), (CACHE_CONTROL, "no-cache")], body).into_response()
}

/// Returns an HTTP response body that sends the texts of a stream and ends with it.
pub(crate) fn body(pieces: impl Stream<Item = String> + Send + 'static) -> Body {
    Body::from_stream(pieces.map(|piece| Ok::<_, Infallible>(Bytes::from(piece))))
}

/// Returns an interval that ticks when an idle connection needs a keep-alive.
pub(crate) fn keep_alive() -> Interval {
    let mut ticks = interval_at(Instant::now() + KEEP_ALIVE_INTERVAL, KEEP_ALIVE_INTERVAL);
    // A client that reads slowly needs one keep-alive, not all missed ones.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
