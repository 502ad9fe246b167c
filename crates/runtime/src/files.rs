//! Atomic writes of files that only their owner may read.

use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes a file that only its owner may read, in place of an earlier one. The replacement is
/// atomic.
pub fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_added_extension("new");
    let written = write_beside(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // Report the first error.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn write_beside(beside: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(beside)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
