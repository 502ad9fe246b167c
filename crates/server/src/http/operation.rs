//! For whoever operates the server: gauges, what eats the disk, a copy while it runs.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::App;
use super::error::{HttpError, Input, Params};

pub(super) async fn metrics(State(app): State<App>) -> Response {
    let text = app.shared.metrics.encode(&app.store().stats());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], text).into_response()
}

#[derive(Deserialize)]
pub(super) struct SizesParams {
    limit: Option<usize>,
}

/// Bytes by session and kind, the largest first.
pub(super) async fn sizes(
    State(app): State<App>,
    Params(params): Params<SizesParams>,
) -> Result<Json<Value>, HttpError> {
    let limit = params.limit.unwrap_or(50).clamp(1, 1000);
    let (total, sessions) = app
        .store()
        .off_thread(move |store| Ok::<_, store::Error>((store.total_size()?, store.sizes(limit)?)))
        .await?;
    let sessions: Vec<Value> = sessions
        .into_iter()
        .map(|it| {
            json!({
                "sessionId": it.session, "title": it.title, "records": it.records,
                "deltas": it.deltas, "blobs": it.blobs, "index": it.index,
            })
        })
        .collect();
    let total = json!({ "database": total.database, "wal": total.wal, "free": total.free });
    Ok(Json(json!({ "total": total, "sessions": sessions })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackupInput {
    /// On the server's machine, where nothing is yet.
    file: PathBuf,
}

pub(super) async fn backup(
    State(app): State<App>,
    Input(BackupInput { file }): Input<BackupInput>,
) -> Result<Json<Value>, HttpError> {
    if !file.is_absolute() {
        return Err(HttpError::invalid("`file` must be a full path on the server's machine"));
    }
    let bytes = app.store().backup(&file).await.map_err(|error| {
        HttpError::invalid(format!("{} could not be written: {error}", file.display()))
    })?;
    Ok(Json(json!({ "file": file, "bytes": bytes })))
}
