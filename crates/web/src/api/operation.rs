//! Operation of the server: metrics, disk usage, and online backups.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transcript::SessionId;

use crate::error::HttpError;
use crate::extract::{Input, Params};
use runtime::metrics::Metrics;
use store::Store;

pub(crate) async fn metrics(
    State(store): State<Store>,
    State(metrics): State<Arc<Metrics>>,
) -> Result<Response, HttpError> {
    let text = metrics.encode(&store.stats(), &store.unrecognized().await?);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, kind)], text).into_response())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SizesParams {
    limit: Option<usize>,
}

/// Disk usage in bytes: totals, and by session and kind, the largest sessions first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SizesReport {
    total: TotalSize,
    sessions: Vec<SessionSize>,
}

#[derive(Serialize, JsonSchema)]
struct TotalSize {
    database: u64,
    /// Size of the database's write-ahead log in bytes.
    wal: u64,
    /// Free space in bytes within the database file, which is reused before the file grows.
    free: u64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionSize {
    session_id: SessionId,
    title: String,
    records: u64,
    deltas: u64,
    blobs: u64,
    index: u64,
    /// Compressed size in bytes of the raw lines that the session's program wrote.
    raw: u64,
}

pub(crate) async fn sizes(
    State(store): State<Store>,
    Params(params): Params<SizesParams>,
) -> Result<Json<SizesReport>, HttpError> {
    let limit = params.limit.unwrap_or(50).clamp(1, 1000);
    let total = store.total_size().await?;
    let sessions = store.sizes(limit).await?;
    let total = TotalSize { database: total.database, wal: total.wal, free: total.free };
    let sessions = sessions.into_iter().map(SessionSize::from).collect();
    Ok(Json(SizesReport { total, sessions }))
}

impl From<store::SessionSize> for SessionSize {
    fn from(size: store::SessionSize) -> Self {
        let store::SessionSize { session, title, records, deltas, blobs, index, raw } = size;
        Self { session_id: session, title, records, deltas, blobs, index, raw }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackupInput {
    /// Absolute path of the backup on the server's machine; the file must not exist yet.
    file: PathBuf,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct BackupMade {
    file: PathBuf,
    bytes: u64,
}

pub(crate) async fn backup(
    State(store): State<Store>,
    Input(BackupInput { file }): Input<BackupInput>,
) -> Result<Json<BackupMade>, HttpError> {
    if !file.is_absolute() {
        return Err(HttpError::invalid("'file' must be a full path on the server's machine"));
    }
    let bytes = store.backup(&file).await.map_err(|error| {
        HttpError::invalid(format!("{} could not be written: {error}", file.display()))
    })?;
    Ok(Json(BackupMade { file, bytes }))
}
