//! Raw lines of programs, from which records were made.

use std::ops::RangeInclusive;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use store::{NumberedLine, Store, Stored};
use transcript::{Millis, ResponseId, RunMessage, Seq, SessionId};

use crate::error::HttpError;
use crate::extract::{Params, SessionPath};
use crate::openapi::{DescribeOutput, Operation};
use runtime::draw_pool::in_place;

/// Maximum number of raw lines of a page. A larger requested limit is reduced, not refused.
const LIMIT: usize = 1000;

/// Text that is shown to a person if a part or a run has no raw lines.
const NO_LINES: &str = "The program wrote no lines for this. Some records are made by Callboard itself. \
    Lines are available a second after they were written, until `raw_days` have passed.\n";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RawParams {
    /// Return only raw lines with a higher number than this one.
    #[serde(default)]
    after: u64,
    /// Maximum number of raw lines of a page, at most 1000. With `format=text` the maximum number
    /// of all lines, unlimited if omitted.
    limit: Option<usize>,
    /// Return only raw lines from which the record with this number was made.
    seq: Option<u64>,
    /// Return only raw lines of one part of an answer, given by the number of the part's first
    /// record.
    part: Option<u64>,
    /// Return only raw lines of this run, given by the id of its answer.
    run: Option<ResponseId>,
    #[serde(default)]
    format: Format,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Json,
    /// The raw lines as plain text. If a part or a run has none, a text explains why.
    Text,
}

/// A page of raw lines. A page may be short if lines are long: continue after the last number until
/// a page is empty.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RawPage {
    lines: Vec<RawLine>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawLine {
    number: u64,
    at: Millis,
    /// Number of the first record that was made from the raw line; `lastSeq` is the last. Both are
    /// absent if no record was made from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_seq: Option<Seq>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seq: Option<Seq>,
    text: String,
}

pub(crate) async fn lines(
    State(store): State<Store>,
    SessionPath(id): SessionPath,
    Params(params): Params<RawParams>,
) -> Result<RawAnswer, HttpError> {
    if store.head(&id).await?.is_none() {
        return Err(HttpError::no_session(id.as_str()));
    }
    let (format, limit) = (params.format, params.limit);
    let is_about_something = params.part.is_some() || params.run.is_some();
    let query = LineQuery::new(&store, id, &params).await?;
    match format {
        Format::Json => {
            let limit = limit.unwrap_or(LIMIT).clamp(1, LIMIT);
            let lines = query.read(&store, limit).await?;
            Ok(RawAnswer::Page(RawPage { lines: lines.into_iter().map(RawLine::from).collect() }))
        }
        Format::Text => {
            let left = limit.map_or(usize::MAX, |it| it.max(1));
            if is_about_something && query.read(&store, 1).await?.is_empty() {
                return Ok(RawAnswer::Text(NO_LINES.into()));
            }
            Ok(RawAnswer::Text(Body::from_stream(text(store.clone(), query, left))))
        }
    }
}

/// Query for a session's raw lines after a line number, for all records or a range of records.
#[derive(Clone)]
struct LineQuery {
    session: SessionId,
    after: u64,
    records: Records,
}

#[derive(Clone)]
enum Records {
    All,
    Within(RangeInclusive<Seq>),
    None,
}

impl LineQuery {
    async fn new(
        store: &Store,
        session: SessionId,
        params: &RawParams,
    ) -> Result<Self, store::Error> {
        let records = match (params.seq, params.part, &params.run) {
            (Some(seq), _, _) => Records::Within(Seq(seq)..=Seq(seq)),
            (None, Some(first), _) => of_part(store, &session, Seq(first)).await?,
            (None, None, Some(run)) => {
                let records = store.records_of_run(&session, run).await?;
                let ends = records.first().zip(records.last());
                let seq = |it| Stored::record(it).seq;
                ends.map_or(Records::None, |(first, last)| Records::Within(seq(first)..=seq(last)))
            }
            (None, None, None) => Records::All,
        };
        Ok(Self { session, after: params.after, records })
    }

    async fn read(&self, store: &Store, limit: usize) -> Result<Vec<NumberedLine>, store::Error> {
        let Self { session, after, records } = self;
        match records {
            Records::All => store.raw(session, *after, limit).await,
            Records::Within(records) => store.raw_of(session, records.clone(), *after, limit).await,
            Records::None => Ok(Vec::new()),
        }
    }
}

/// Returns the records of a part of an answer: from its first record to the record that closed it.
/// Later decisions about the part are not included.
async fn of_part(store: &Store, session: &SessionId, first: Seq) -> Result<Records, store::Error> {
    let records = store.records_around(session, first).await?.unwrap_or_default();
    Ok(in_place(|| records_of_part(&records, first)))
}

fn records_of_part(records: &[Stored], first: Seq) -> Records {
    let run = records.iter().find_map(|it| it.response_id.clone());
    let Some(run) = run else { return Records::None };
    let mut answer = RunMessage::replay(&run, []);
    let mut last = None;
    for record in records.iter().map(Stored::record) {
        let part = |answer: &RunMessage| answer.parts.iter().rposition(|it| it.first == first);
        let is_over = part(&answer).is_some_and(|it| !answer.parts[it].is_open());
        answer.apply(&record);
        let is_touched = part(&answer).is_some_and(|it| answer.parts[it].changed == record.seq);
        if is_touched && !is_over {
            last = Some(record.seq);
        }
    }
    last.map_or(Records::None, |last| Records::Within(first..=last))
}

/// Streams all pages of raw lines as one text, because a reader could not notice that a text was
/// cut.
fn text(
    store: Store,
    query: LineQuery,
    left: usize,
) -> impl Stream<Item = Result<String, store::Error>> {
    stream::try_unfold((store, query, left), |(store, mut query, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let lines = query.read(&store, left.min(LIMIT)).await?;
        let Some(last) = lines.last() else { return Ok(None) };
        query.after = last.number;
        let left = left.saturating_sub(lines.len());
        let text = lines.into_iter().flat_map(|it| [it.line.text, "\n".to_owned()]).collect();
        Ok(Some((text, (store, query, left))))
    })
}

pub(crate) enum RawAnswer {
    Page(RawPage),
    Text(Body),
}

impl IntoResponse for RawAnswer {
    fn into_response(self) -> Response {
        match self {
            Self::Page(page) => Json(page).into_response(),
            Self::Text(text) => {
                ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
            }
        }
    }
}

impl DescribeOutput for RawAnswer {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives_json::<RawPage>(StatusCode::OK);
        operation.gives(StatusCode::OK, Some(("text/plain", json_schema!({ "type": "string" }))));
    }
}

impl From<NumberedLine> for RawLine {
    fn from(NumberedLine { number, line }: NumberedLine) -> Self {
        let transcript::RawLine { at, from, to, text } = line;
        let made = (from <= to).then_some((from, to));
        let (first_seq, last_seq) = made.unzip();
        Self { number, at, first_seq, last_seq, text }
    }
}
