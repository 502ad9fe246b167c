//! The whole of a call's text, where the page shows only its ends.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Stored;
use transcript::{Body, Call, CallId, Record, ResponseId, SessionId, Transcript};

use super::App;
use super::error::{HttpError, RequestCode};
use super::extract::{NamedCall, Params};

#[derive(Deserialize, JsonSchema)]
pub(super) struct OutputParams {
    #[serde(default)]
    stream: Stream,
    /// How many bytes to leave out at the beginning.
    #[serde(default)]
    from: u64,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Stream {
    Arguments,
    #[default]
    Stdout,
    Stderr,
    Result,
}

pub(super) async fn output(
    State(app): State<App>,
    NamedCall { session, call }: NamedCall,
    Params(OutputParams { stream, from }): Params<OutputParams>,
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
        let answer = transcript.message(run.as_str()).and_then(|it| it.answer());
        let found = answer.and_then(|it| it.call(&call));
        let found = found.ok_or_else(|| no_call(&session, &call))?;
        Ok(text_of(found, stream))
    });
    let text = text.await?;
    let start =
        text.ceil_char_boundary(usize::try_from(from).unwrap_or(usize::MAX).min(text.len()));
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((headers, text[start..].to_owned()).into_response())
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

fn text_of(call: &Call, stream: Stream) -> String {
    let body = match stream {
        Stream::Arguments => Some(&call.arguments),
        Stream::Stdout => Some(&call.stdout),
        Stream::Stderr => Some(&call.stderr),
        Stream::Result => call.outcome.as_ref().and_then(|it| it.result.as_ref()),
    };
    body.and_then(Body::whole).unwrap_or_default()
}
