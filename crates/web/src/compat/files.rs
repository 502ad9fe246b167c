//! Files of incoming messages.

use formats::incoming::File;
use transcript::Attachment;

use crate::App;
use crate::error::HttpError;
use runtime::import;

/// Stores a file of an incoming message, unless it refers to a stored file, and returns the
/// attachment.
pub(super) async fn attach(app: &App, file: &File) -> Result<Attachment, HttpError> {
    Ok(import::attach(app.store(), file).await?)
}
