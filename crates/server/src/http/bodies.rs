//! What a page fetches when somebody looks: the whole of a call's text, where it shows only its ends,
//! and the answer of another session's agent.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use render::BodyKind;
use schemars::JsonSchema;
use serde::Deserialize;
use store::Stored;
use transcript::{CallId, Record, ResponseId, SessionId, Transcript};

use super::App;
use super::error::{HttpError, RequestCode};
use super::extract::{NamedAnswer, NamedCall, Params};

#[derive(Deserialize, JsonSchema)]
pub(super) struct OutputParams {
    #[serde(default)]
    stream: Stream,
    /// How many bytes to leave out at the beginning; of text only.
    #[serde(default)]
    from: u64,
    #[serde(default)]
    format: Format,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Stream {
    /// What the tool got.
    Arguments,
    /// What the agent had proposed, also where somebody changed it.
    Proposed,
    #[default]
    Stdout,
    Stderr,
    Result,
    /// The file that the call has read or written.
    File,
    /// The call with its arguments, as JSON.
    Call,
    /// What the agent has proposed, to be changed.
    Edit,
    /// What was asked, in the view of the tool.
    Asked,
    /// The same as a person is asked about it, with what it would write over.
    Question,
    /// What the result shows, in the view of the tool.
    Told,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Text,
    /// As the page shows it, in colour.
    Html,
}

pub(super) async fn output(
    State(app): State<App>,
    NamedCall { session, call }: NamedCall,
    Params(OutputParams { stream, from, format }): Params<OutputParams>,
) -> Result<Response, HttpError> {
    let text = app.store().off_thread(move |store| {
        if store.head(&session)?.is_none() {
            return Err(HttpError::no_session(session.as_str()));
        }
        let run = run_of(&call);
        let records = store.records_of_run(&session, &run)?;
        let records: Vec<Record> = records.iter().map(Stored::record).collect();
        let mut transcript = Transcript::whole();
        transcript.extend(&records);
        let message = transcript.message(run.as_str());
        let found = message.and_then(|it| Some((it, it.answer()?.call(&call)?)));
        let (message, found) = found.ok_or_else(|| no_call(&session, &call))?;
        Ok(match format {
            Format::Text => render::whole_text(found, stream.kind()),
            Format::Html => render::whole_body(&session, message, found, stream.kind()),
        })
    });
    let mut text = text.await?;
    let kind = match format {
        Format::Html => "text/html; charset=utf-8",
        Format::Text => {
            let start = usize::try_from(from).unwrap_or(usize::MAX).min(text.len());
            text.drain(..text.ceil_char_boundary(start));
            "text/plain; charset=utf-8"
        }
    };
    Ok(([(CONTENT_TYPE, kind)], text).into_response())
}

/// As it stands within another session's page.
pub(super) async fn answer(
    State(app): State<App>,
    NamedAnswer { session, run }: NamedAnswer,
) -> Result<Response, HttpError> {
    let shared = app.shared.clone();
    let html = app.store().off_thread(move |store| {
        // The number first: what is drawn may be newer, and what has changed since is put again.
        let found = store.summary(&session)?;
        let (summary, head) = found.ok_or_else(|| HttpError::no_session(session.as_str()))?;
        let records = store.records_of_run(&session, &run)?;
        let records: Vec<Record> = records.iter().map(Stored::record).collect();
        let transcript = Transcript::replay(&records);
        let message = transcript.message(run.as_str()).ok_or_else(|| no_answer(&session, &run))?;
        let view = shared.view_of(&session, &summary);
        Ok::<_, HttpError>(render::embedded(&view, head, message))
    });
    Ok(([(CONTENT_TYPE, "text/html; charset=utf-8")], html.await?).into_response())
}

fn no_answer(session: &SessionId, run: &ResponseId) -> HttpError {
    let message = format!("session {session} has no answer {:?}", run.as_str());
    HttpError::new(RequestCode::MessageNotFound, message)
}

/// A call's id begins with its run's.
fn run_of(call: &CallId) -> ResponseId {
    let run = call.as_str().rsplit_once('.').map_or(call.as_str(), |(run, _)| run);
    ResponseId::new(run)
}

fn no_call(session: &SessionId, call: &CallId) -> HttpError {
    let message = format!("session {session} has no call {:?}", call.as_str());
    HttpError::new(RequestCode::CallNotFound, message)
}

impl Stream {
    fn kind(self) -> BodyKind {
        match self {
            Self::Arguments => BodyKind::Arguments,
            Self::Proposed => BodyKind::Proposed,
            Self::Stdout => BodyKind::Stdout,
            Self::Stderr => BodyKind::Stderr,
            Self::Result => BodyKind::Result,
            Self::File => BodyKind::File,
            Self::Call => BodyKind::Call,
            Self::Edit => BodyKind::Edit,
            Self::Asked => BodyKind::Asked,
            Self::Question => BodyKind::Question,
            Self::Told => BodyKind::Told,
        }
    }
}
