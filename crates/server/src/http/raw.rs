//! What programs have written, word for word, for whoever wants to see what the log was made of.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use store::{NumberedLine, Store, Stored};
use transcript::{Millis, ResponseId, Seq, SessionId};

use super::App;
use super::error::HttpError;
use super::extract::{Named, Params};
use super::openapi::{Gives, Operation};

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
    /// Only lines that came in this run, by the id of its answer.
    run: Option<ResponseId>,
    #[serde(default)]
    format: Format,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Json,
    /// The lines and nothing else, for reading.
    Text,
}

/// Long lines make a short page: go on after the last number until a page is empty.
#[derive(Serialize, JsonSchema)]
pub(super) struct RawPage {
    lines: Vec<RawLine>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawLine {
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
    Params(params): Params<RawParams>,
) -> Result<RawAnswer, HttpError> {
    if app.store().head(&id)?.is_none() {
        return Err(HttpError::no_session(id.as_str()));
    }
    let format = params.format;
    let lines = app.store().off_thread(move |store| read(store, &id, &params)).await?;
    let lines = lines.into_iter().map(RawLine::from).collect();
    Ok(match format {
        Format::Json => RawAnswer::Page(RawPage { lines }),
        Format::Text => RawAnswer::Text(lines),
    })
}

fn read(
    store: &Store,
    id: &SessionId,
    params: &RawParams,
) -> Result<Vec<NumberedLine>, store::Error> {
    let RawParams { after, limit, seq, run, .. } = params;
    let limit = limit.unwrap_or(LIMIT).clamp(1, LIMIT);
    let records = match (seq, run) {
        (Some(seq), _) => Seq(*seq)..=Seq(*seq),
        (None, Some(run)) => {
            let records = store.records_of_run(id, run)?;
            let ends = records.first().zip(records.last());
            let Some((first, last)) = ends else { return Ok(Vec::new()) };
            Stored::record(first).seq..=Stored::record(last).seq
        }
        (None, None) => return store.raw(id, *after, limit),
    };
    store.raw_of(id, &records, *after, limit)
}

pub(super) enum RawAnswer {
    Page(RawPage),
    Text(Vec<RawLine>),
}

impl IntoResponse for RawAnswer {
    fn into_response(self) -> Response {
        match self {
            Self::Page(page) => Json(page).into_response(),
            Self::Text(lines) => {
                let text: String =
                    lines.into_iter().flat_map(|it| [it.text, "\n".into()]).collect();
                ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
            }
        }
    }
}

impl Gives for RawAnswer {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives_json::<RawPage>(StatusCode::OK);
        operation.gives(StatusCode::OK, Some(("text/plain", json_schema!({ "type": "string" }))));
    }
}

impl From<NumberedLine> for RawLine {
    fn from(NumberedLine { number, line }: NumberedLine) -> Self {
        let store::RawLine { at, from, to, text } = line;
        let made = (from <= to).then_some((from, to));
        let (first_seq, last_seq) = made.unzip();
        Self { number, at, first_seq, last_seq, text }
    }
}
