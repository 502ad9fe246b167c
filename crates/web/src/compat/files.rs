//! Files of incoming messages.

use formats::incoming::File;
use transcript::Attachment;

use crate::App;
use crate::error::HttpError;
use runtime::import;

/// Stores a file of a message, unless it refers to a stored file.
pub(super) async fn attach(app: &App, file: &File) -> Result<Attachment, HttpError> {
    Ok(import::attach(app.store(), file).await?)
}
