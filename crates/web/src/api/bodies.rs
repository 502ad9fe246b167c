//! Content that a page fetches on demand: complete texts that it shows shortened, and answers of agents
//! in other sessions.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{AppendHeaders, IntoResponse, Response};
use render::BodyKind;
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Store, Stored, StoredRun};
use transcript::{CallId, Record, ResponseId, RunMessage, Seq, SessionId, Transcript};

use crate::error::{HttpError, RequestCode};
use crate::extract::{AnswerPath, CallPath, Params, SessionPath};
use runtime::draw_pool::DrawPool;
use runtime::live::page_context::PageContext;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OutputParams {
    #[serde(default)]
    stream: BodyKind,
    /// Number of bytes to skip at the beginning of the response body, for `format=text` only.
    #[serde(default)]
    from: u64,
    #[serde(default)]
    format: Format,
    /// Whether to send the response body as a file to download.
    #[serde(default)]
    download: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Text,
    /// The content as HTML, with colours, as on the page.
    Html,
}

pub(crate) async fn output(
    State(draws): State<DrawPool>,
    State(store): State<Store>,
    CallPath { session, call }: CallPath,
    Params(OutputParams { stream, from, format, download }): Params<OutputParams>,
) -> Result<Response, HttpError> {
    let permit = draws.permit().await;
    let run = call.run_to_search();
    let found = store.run(&session, &run).await?;
    let StoredRun { records, .. } = found.ok_or_else(|| HttpError::no_session(session.as_str()))?;
    let text = permit.draw(move || {
        let records: Vec<Record> = records.iter().map(Stored::record).collect();
        let mut transcript = Transcript::whole();
        transcript.extend(&records);
        let message = transcript.message(run.as_str());
        let found = message.and_then(|it| Some((it, it.run()?.call(&call)?)));
        let (message, found) = found.ok_or_else(|| no_call(&session, &call))?;
        Ok::<_, HttpError>(match format {
            Format::Text => render::whole_text(found, stream),
            Format::Html => render::whole_body(&session, message, found, stream),
        })
    });
    let mut text = text.await?;
    if format == Format::Text {
        let start = usize::try_from(from).unwrap_or(usize::MAX).min(text.len());
        text.drain(..text.ceil_char_boundary(start));
    }
    Ok(answer_with(text, format, download))
}

/// Content security policy of a tool call's output or a message text that is opened as a page: it
/// loads nothing and runs nothing.
const POLICY: &str = "default-src 'none'; sandbox";

fn answer_with(text: String, format: Format, download: bool) -> Response {
    let headers = [
        (CONTENT_TYPE, format.media_type()),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let name =
        download.then_some([(CONTENT_DISPOSITION, "attachment; filename=\"callboard.txt\"")]);
    (headers, name.map(AppendHeaders), text).into_response()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TextParams {
    /// Number of the first record of the text to return, which is a message or a part of an answer.
    first: u64,
    #[serde(default)]
    format: Format,
    /// Whether to send the response body as a file to download.
    #[serde(default)]
    download: bool,
}

/// Returns the complete text of a message or part that a page shows shortened.
pub(crate) async fn text(
    State(draws): State<DrawPool>,
    State(store): State<Store>,
    SessionPath(session): SessionPath,
    Params(TextParams { first, format, download }): Params<TextParams>,
) -> Result<Response, HttpError> {
    let permit = draws.permit().await;
    let records = store.records_around(&session, Seq(first)).await?;
    let records = records.ok_or_else(|| HttpError::no_session(session.as_str()))?;
    let draw = move || {
        let records: Vec<Record> = records.iter().map(Stored::record).collect();
        let message = Transcript::replay(&records).messages.into_iter().next();
        let message = message.filter(|it| render::text_at(it, Seq(first)).is_some());
        let message = message.ok_or_else(|| no_text(&session, first))?;
        let text = match format {
            Format::Text => render::text_at(&message, Seq(first)).map(str::to_owned),
            Format::Html => render::html_at(&session, &message, Seq(first)),
        };
        Ok::<_, HttpError>(text.unwrap_or_default())
    };
    Ok(answer_with(permit.draw(draw).await?, format, download))
}

fn no_text(session: &SessionId, first: u64) -> HttpError {
    let message = format!("session {session} has no text that begins with record {first}");
    HttpError::new(RequestCode::MessageNotFound, message)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AnswerParams {
    /// Format of the answer; `text` returns the texts as the agent wrote them, usually Markdown.
    #[serde(default = "Format::html")]
    format: Format,
    /// Return only the parts of the answer before the part with this index, counted from 0.
    before: Option<usize>,
    part: Option<AnswerPart>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AnswerPart {
    /// Return only the answer's pending requests for approvals.
    Questions,
}

/// Returns an answer of an agent for display in the page of another session, earlier parts of the
/// answer, or its source text.
pub(crate) async fn answer(
    State(draws): State<DrawPool>,
    State(store): State<Store>,
    State(context): State<Arc<PageContext>>,
    AnswerPath { session, run }: AnswerPath,
    Params(AnswerParams { format, before, part }): Params<AnswerParams>,
) -> Result<Response, HttpError> {
    let permit = draws.permit().await;
    let found = store.run(&session, &run).await?;
    let StoredRun { summary, head, records } =
        found.ok_or_else(|| HttpError::no_session(session.as_str()))?;
    let text = permit.draw(move || {
        let records: Vec<Record> = records.iter().map(Stored::record).collect();
        let mut transcript = Transcript::replay(&records);
        let view = context.view_of(&session, &summary);
        let message = transcript.message(run.as_str()).ok_or_else(|| no_answer(&session, &run))?;
        Ok::<_, HttpError>(match (format, part, before) {
            (Format::Text, ..) => message.run().map(RunMessage::content).unwrap_or_default(),
            (Format::Html, Some(AnswerPart::Questions), _) => {
                transcript.summary = summary;
                render::embedded_approvals(&view, head, &transcript)
            }
            (Format::Html, None, Some(before)) => render::earlier_parts(&view, message, before),
            (Format::Html, None, None) => render::embedded(&view, head, message),
        })
    });
    Ok(([(CONTENT_TYPE, format.media_type())], text.await?).into_response())
}

impl Format {
    fn html() -> Self {
        Self::Html
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
        }
    }
}

fn no_answer(session: &SessionId, run: &ResponseId) -> HttpError {
    let message = format!("session {session} has no answer {:?}", run.as_str());
    HttpError::new(RequestCode::MessageNotFound, message)
}

fn no_call(session: &SessionId, call: &CallId) -> HttpError {
    let message = format!("session {session} has no call {:?}", call.as_str());
    HttpError::new(RequestCode::CallNotFound, message)
}
