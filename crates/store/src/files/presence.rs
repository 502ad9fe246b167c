//! Detects that the open database files were removed or replaced in the data folder.
//!
//! An unlinked file can still be written, and its content is lost when the process ends. So device
//! and inode of the paths are compared with the known ones before each commit: two `stat` calls.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Error;
use crate::files::connection;

pub(crate) struct Presence {
    database: Known,
    /// The file of the write-ahead log. SQLite creates it with the first transaction and keeps it
    /// while the database is open.
    wal: Known,
    is_lost: AtomicBool,
}

struct Known {
    path: PathBuf,
    /// Device and inode of the file, set when the file is first seen.
    identity: OnceLock<(u64, u64)>,
}

impl Presence {
    /// Records the identity of the database files in a data folder. The database must be open.
    pub(crate) fn of(dir: &Path) -> Self {
        let known = |path| Known { path, identity: OnceLock::new() };
        let presence = Self {
            database: known(connection::file(dir)),
            wal: known(connection::wal_file(dir)),
            is_lost: AtomicBool::new(false),
        };
        // The first check records the identities.
        let _ = presence.check();
        presence
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.database.path.clone()
    }

    /// Returns an error if a database file was removed or replaced, and logs that once.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let lost = [&self.database, &self.wal].into_iter().find(|it| !it.is_there());
        let was_lost = self.is_lost.swap(lost.is_some(), Ordering::Relaxed);
        match lost {
            Some(Known { path, .. }) => {
                if !was_lost {
                    let file = path.display();
                    tracing::error!(%file, "the file was removed or replaced; writes are refused");
                }
                Err(Error::Lost(path.clone()))
            }
            None => {
                if was_lost {
                    tracing::info!("the files of the data folder are back");
                }
                Ok(())
            }
        }
    }
}

impl Known {
    fn is_there(&self) -> bool {
        match (std::fs::metadata(&self.path), self.identity.get()) {
            (Ok(found), _) => *self.identity.get_or_init(|| identity(&found)) == identity(&found),
            (Err(_), known) => known.is_none(),
        }
    }
}

#[cfg(unix)]
fn identity(file: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino())
}

/// Returns the same identity for every file: without inodes, only a removal is detected.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}
