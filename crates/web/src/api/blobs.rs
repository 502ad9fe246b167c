//! Uploaded files, which messages refer to in their `attachments`.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::Created;
use crate::error::{HttpError, RequestCode};
use crate::extract::{RawBody, Segment};
use runtime::clock;
use store::Store;

/// An uploaded file, as the `attachments` of messages refer to it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StoredFile {
    blob: String,
    size: usize,
}

pub(crate) async fn put(
    State(store): State<Store>,
    RawBody(body): RawBody,
) -> Result<Created<StoredFile>, HttpError> {
    if body.is_empty() {
        return Err(HttpError::invalid("the file is empty"));
    }
    let size = body.len();
    let blob = store.put_blob(body.to_vec(), clock::now()).await?;
    Ok(Created(StoredFile { blob, size }))
}

/// Serves a stored file. Small pictures, recognised by their content, are shown inline. All other
/// files are sent as downloads, because their content is not trusted.
pub(crate) async fn show(
    State(store): State<Store>,
    Segment(hash): Segment,
) -> Result<Response, HttpError> {
    let missing = || HttpError::new(RequestCode::NotFound, "there is no such file");
    let blob = store.blob(&hash).await?;
    let bytes = Bytes::from(blob.ok_or_else(missing)?);
    let picture = picture_type(&bytes);
    let headers = [
        (CONTENT_TYPE, picture.unwrap_or("application/octet-stream")),
        (CONTENT_DISPOSITION, if picture.is_some() { "inline" } else { "attachment" }),
        (CACHE_CONTROL, "private, max-age=31536000, immutable"),
    ];
    Ok((headers, bytes).into_response())
}

const PICTURE_MAX: usize = 4 * 1024 * 1024;

/// Returns the media type of a picture, detected by its first bytes. `None` for other files and for
/// large pictures.
fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        _ if bytes.len() > PICTURE_MAX => None,
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
