//! What programs have written, word for word, for whoever wants to see what the log was made of.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::NumberedLine;
use transcript::{Millis, Seq};

use super::App;
use super::error::HttpError;
use super::extract::{Named, Params};

/// More than this is cut, not refused.
const LIMIT: usize = 1000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct RawParams {
    /// Lines of higher numbers.
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
    /// Only lines that this record of the log was made of.
    seq: Option<u64>,
}

/// Long lines make a short page: go on after the last number until a page is empty.
#[derive(Serialize, JsonSchema)]
pub(super) struct RawPage {
    lines: Vec<RawLine>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RawLine {
    number: u64,
    at: Millis,
    /// The first and the last record that were made of it; none if it made none.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_seq: Option<Seq>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seq: Option<Seq>,
    text: String,
}

pub(super) async fn lines(
    State(app): State<App>,
    Named(id): Named,
    Params(RawParams { after, limit, seq }): Params<RawParams>,
) -> Result<Json<RawPage>, HttpError> {
    let limit = limit.unwrap_or(LIMIT).clamp(1, LIMIT);
    if app.store().head(&id)?.is_none() {
        return Err(HttpError::no_session(id.as_str()));
    }
    let read = app.store().off_thread(move |store| match seq {
        Some(seq) => store.raw_of(&id, Seq(seq)),
        None => store.raw(&id, after, limit),
    });
    let lines = read.await?.into_iter().map(RawLine::from).collect();
    Ok(Json(RawPage { lines }))
}

impl From<NumberedLine> for RawLine {
    fn from(NumberedLine { number, line }: NumberedLine) -> Self {
        let store::RawLine { at, from, to, text } = line;
        let made = (from <= to).then_some((from, to));
        let (first_seq, last_seq) = made.unzip();
        Self { number, at, first_seq, last_seq, text }
    }
}
