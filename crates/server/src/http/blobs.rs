//! Files that go with messages: put first, then named in a message's `attachments`.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::App;
use super::error::{HttpError, RawBody};
use crate::clock;

pub(super) async fn put(
    State(app): State<App>,
    RawBody(body): RawBody,
) -> Result<(StatusCode, Json<Value>), HttpError> {
    if body.is_empty() {
        return Err(HttpError::invalid("the file is empty"));
    }
    let size = body.len();
    let blob = app.store().put_blob(body.to_vec(), clock::now()).await?;
    Ok((StatusCode::CREATED, Json(json!({ "blob": blob, "size": size }))))
}

/// Served as something to keep, not to show: what is in it is anybody's guess.
pub(super) async fn show(
    State(app): State<App>,
    Path(hash): Path<String>,
) -> Result<Response, HttpError> {
    let missing = || HttpError::new(StatusCode::NOT_FOUND, "not_found", "there is no such file");
    let wanted = hash.clone();
    let blob = app.store().off_thread(move |store| store.blob(&wanted)).await?;
    let bytes = Bytes::from(blob.ok_or_else(missing)?);
    let headers = [
        (CONTENT_TYPE, "application/octet-stream"),
        (CONTENT_DISPOSITION, "attachment"),
        (CACHE_CONTROL, "private, max-age=31536000, immutable"),
    ];
    Ok((headers, bytes).into_response())
}
