//! How runs are told to OpenAI's clients: in chunks while they go on, or at once.

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use formats::incoming::Known;
use formats::openai::{Chunks, Options, failure};
use serde_json::Value;
use transcript::{Record, ResponseId};

use crate::http::error::HttpError;
use crate::http::guest::events::{self, DONE, event};
use crate::http::guest::{Spoken, Vocabulary, Voice, growing};

pub(super) struct Streamed(pub(super) Options);

/// One piece, which is a JSON value.
pub(super) struct AtOnce(pub(super) Options);

impl Spoken for Streamed {
    fn response(body: Body) -> Response {
        growing(events::CONTENT_TYPE, body)
    }
}

impl Vocabulary for Streamed {
    async fn voice(&self, run: ResponseId) -> Result<Box<dyn Voice>, HttpError> {
        Ok(Box::new(InChunks(Chunks::new(run, self.0.clone()))))
    }

    fn failure(&self, why: &str) -> String {
        event(&failure(why, None)) + DONE
    }

    fn sign_of_life(&self) -> &'static str {
        events::SIGN_OF_LIFE
    }
}

impl Vocabulary for AtOnce {
    async fn voice(&self, run: ResponseId) -> Result<Box<dyn Voice>, HttpError> {
        Ok(Box::new(Whole(Chunks::new(run, self.0.clone()))))
    }

    fn failure(&self, why: &str) -> String {
        failure(why, None).to_string()
    }

    fn sign_of_life(&self) -> &'static str {
        ""
    }
}

struct InChunks(Chunks);

struct Whole(Chunks);

impl Voice for InChunks {
    fn tell(&mut self, records: &[Record]) -> String {
        let was_over = self.0.is_over();
        let chunks = self.0.replay(records);
        events::all(&chunks, self.0.is_over() && !was_over)
    }

    fn go_on(&mut self, records: &[Record], known: &Known) -> String {
        let chunks = self.0.go_on(records, known);
        events::all(&chunks, self.0.is_over())
    }

    fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

impl Whole {
    fn said_at_once(&self, was_over: bool) -> String {
        let ended = Some(&self.0).filter(|it| it.is_over() && !was_over);
        ended.and_then(Chunks::completion).map(|it| it.to_string()).unwrap_or_default()
    }
}

impl Voice for Whole {
    fn tell(&mut self, records: &[Record]) -> String {
        let was_over = self.0.is_over();
        self.0.replay(records);
        self.said_at_once(was_over)
    }

    fn go_on(&mut self, records: &[Record], known: &Known) -> String {
        self.0.go_on(records, known);
        self.said_at_once(false)
    }

    fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

/// Clients try again by themselves what a server fails at. What an agent has done is not to be done
/// twice.
const NOT_AGAIN: (&str, &str) = ("x-should-retry", "false");

/// What was told to a client that waited for the end.
pub(super) fn answer_at_once(told: &str) -> Response {
    let answer: Value = serde_json::from_str(told).unwrap_or_default();
    match answer.get("error") {
        None => Json(answer).into_response(),
        Some(_) => (StatusCode::BAD_GATEWAY, [NOT_AGAIN], Json(answer)).into_response(),
    }
}
