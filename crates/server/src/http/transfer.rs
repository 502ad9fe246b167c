//! Sessions out of the server and into it again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{AppendError, Store};
use transcript::{Record, Seq, SessionId, Summary};

use super::App;
use super::answer::Created;
use super::error::{HttpError, RequestCode};
use super::extract::{Named, Params, RawBody};
use super::sessions::{SessionObject, session_object};
use crate::export::{self, Format};
use crate::live::ListChange;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ExportParams {
    #[serde(default)]
    format: Format,
    /// The session as it was at this number of its log.
    at: Option<u64>,
}

/// A file that stands alone has its style in it, and reaches nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

pub(super) async fn export(
    State(app): State<App>,
    Named(id): Named,
    Params(ExportParams { format, at }): Params<ExportParams>,
) -> Result<Response, HttpError> {
    let session = id.clone();
    let write = move |store: &Store| export::write(store, &session, format, at.map(Seq));
    let text = app.store().off_thread(write).await?;
    let text = text.ok_or_else(|| HttpError::no_session(id.as_str()))?;
    let kind = match format {
        Format::Html => "text/html; charset=utf-8",
        Format::Md => "text/markdown; charset=utf-8",
        Format::Json => "application/json",
        Format::Jsonl => "application/jsonl",
    };
    let name = format!("attachment; filename=\"callboard-{id}.{}\"", format.word());
    let headers =
        [(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, &*name), (CONTENT_SECURITY_POLICY, POLICY)];
    Ok((headers, text).into_response())
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ImportParams {
    #[serde(default)]
    #[expect(dead_code, reason = "there is one format yet; the word is part of the protocol")]
    format: ImportFormat,
    /// What the session is to be called here; what it was called there if left out.
    id: Option<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ImportFormat {
    #[default]
    Jsonl,
}

/// A session's log, as an export gave it.
pub(super) async fn import(
    State(app): State<App>,
    Params(ImportParams { id, .. }): Params<ImportParams>,
    RawBody(body): RawBody,
) -> Result<Created<SessionObject>, HttpError> {
    let text = std::str::from_utf8(&body)
        .map_err(|error| HttpError::invalid(format!("the file is not text: {error}")))?;
    let records = read_log(text, id.as_deref())?;
    let Some(first) = records.first() else {
        return Err(HttpError::invalid("the file has no record"));
    };
    let id = first.session_id.clone();
    let records: Arc<[Record]> = records.into();
    let written = app.store().append(&id, Seq(0), Arc::clone(&records)).await;
    written.map_err(|error| match error {
        AppendError::Conflict { .. } => {
            let message =
                format!("there is a session {id} already; give it another name with ?id=");
            HttpError::new(RequestCode::SessionExists, message)
        }
        error => error.into(),
    })?;
    let mut summary = Summary::default();
    for record in &*records {
        summary.apply(record);
    }
    let head = Seq(records.len() as u64);
    let change = ListChange::Changed { id: id.clone(), summary: Box::new(summary), head };
    app.shared.hub.publish_list_change(change);
    Ok(Created(session_object(&app, id)?))
}

/// Numbers must be 1, 2, 3, ...: a log with a gap is not a log.
fn read_log(text: &str, name: Option<&str>) -> Result<Vec<Record>, HttpError> {
    let name = match name {
        None => None,
        Some(name) => Some(SessionId::parse(name).ok_or_else(|| {
            HttpError::invalid("a session id is 1 to 128 letters, digits, '-' or '_'")
        })?),
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut records: Vec<Record> = Vec::new();
    for (at, line) in lines {
        let broken = |why: String| HttpError::invalid(format!("line {}: {why}", at + 1));
        let mut record = Record::from_json(line).map_err(|it| broken(it.to_string()))?;
        if record.seq.0 != records.len() as u64 + 1 {
            return Err(broken(format!("record {} does not follow {}", record.seq, records.len())));
        }
        if SessionId::parse(record.session_id.as_str()).is_none() {
            return Err(broken(format!("{:?} is no session id", record.session_id.as_str())));
        }
        if let Some(name) = &name {
            record.session_id = name.clone();
        } else if records.first().is_some_and(|first| first.session_id != record.session_id) {
            return Err(broken("the record is of another session".to_owned()));
        }
        records.push(record);
    }
    Ok(records)
}
