//! Files that come with a message.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use formats::incoming::File;
use transcript::Attachment;

use crate::clock;
use crate::http::App;
use crate::http::error::HttpError;

const BLOBS: &str = "/api/blobs/";

/// Keeps a file that came with a message, unless it is one of ours.
pub(super) async fn attach(app: &App, file: &File) -> Result<Attachment, HttpError> {
    let File { media_type, name, url } = file;
    let held = url.strip_prefix("data:").and_then(|it| it.split_once(";base64,"));
    let (blob, size) = match (held, url.split_once(BLOBS)) {
        (Some((_, data)), _) => {
            let bytes = BASE64_STANDARD
                .decode(data)
                .map_err(|why| HttpError::invalid(format!("a file's `url` is no base64: {why}")))?;
            let size = bytes.len() as u64;
            (app.store().put_blob(bytes, clock::now()).await?, size)
        }
        (None, Some((_, hash))) => {
            let (blob, wanted) = (hash.to_owned(), hash.to_owned());
            let found = app.store().off_thread(move |store| store.blob(&wanted)).await?;
            let missing = || HttpError::invalid(format!("there is no file {hash:?}"));
            (blob, found.ok_or_else(missing)?.len() as u64)
        }
        (None, None) => {
            return Err(HttpError::invalid(
                "files are sent along, with a `url` that begins with \"data:\", or put to \
                 /api/blobs first; Callboard fetches none",
            ));
        }
    };
    let name = name.clone().unwrap_or_else(|| "file".to_owned());
    Ok(Attachment { blob, name, media_type: media_type.clone(), size })
}
