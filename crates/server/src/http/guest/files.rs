//! Files that come with a message.

use formats::incoming::File;
use transcript::Attachment;

use crate::http::App;
use crate::http::error::HttpError;
use crate::import;

/// Keeps a file that came with a message, unless it is one of ours.
pub(super) async fn attach(app: &App, file: &File) -> Result<Attachment, HttpError> {
    Ok(import::attach(app.store(), file).await?)
}
