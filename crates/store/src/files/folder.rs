//! A data folder with the embedded database.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use crate::files::checkpoint::{Checkpoints, log_pages};
use crate::files::presence::Presence;
use crate::files::reserve::Reserve;
use crate::files::upkeep::Upkeep;
use crate::files::{backup, connection};
use crate::sql::Db;
use crate::{Error, OpenError, Sync};

/// The open data folder of an embedded database.
pub(crate) struct Folder {
    dir: PathBuf,
    presence: Arc<Presence>,
    reserve: Arc<Reserve>,
}

impl Folder {
    /// Opens the database of a locked folder, or creates it, and migrates it. Returns the connection
    /// that writes.
    pub(crate) fn open(dir: &Path, sync: Sync) -> Result<(Self, Db, Upkeep), OpenError> {
        backup::remove_dead_parts(dir);
        let reserve = Arc::new(Reserve::of(dir));
        let db = open_writer(dir, sync, &reserve)?;
        let presence = Arc::new(Presence::of(dir));
        let upkeep = Upkeep {
            checkpoints: Checkpoints::start(dir, sync)?,
            presence: Arc::clone(&presence),
            reserve: Arc::clone(&reserve),
            log_pages: log_pages(&db)?,
        };
        Ok((Self { dir: dir.to_owned(), presence, reserve }, Db::Sqlite(db), upkeep))
    }

    /// Fails if the open database files were removed or replaced.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.presence.check()
    }

    /// Creates the reserve again after it was released on a full disk, if there is space.
    pub(crate) fn fill_reserve(&self) {
        if !has_no_space(&self.dir) {
            self.reserve.fill();
        }
    }
}

/// Opens the connection that writes. On a full disk, it releases the reserve and tries again,
/// because the WAL index or a migration needs space.
fn open_writer(dir: &Path, sync: Sync, reserve: &Reserve) -> Result<Connection, OpenError> {
    let opened = match connection::writer(dir, sync) {
        Err(_) if has_no_space(dir) && reserve.release() => connection::writer(dir, sync),
        opened => {
            if !has_no_space(dir) {
                reserve.fill();
            }
            opened
        }
    };
    opened.map_err(|error| match error {
        OpenError::Db(_) | OpenError::Io { .. } if has_no_space(dir) => {
            OpenError::NoSpace { dir: dir.to_owned() }
        }
        error => error.in_file(|| connection::file(dir)),
    })
}

/// Writes a small file and removes it again, to see whether the disk of a folder has no space for
/// another page.
fn has_no_space(dir: &Path) -> bool {
    let probe = dir.join(".space");
    let written = std::fs::write(&probe, [0; 4096]);
    let _ = std::fs::remove_file(&probe);
    written.is_err_and(|it| matches!(it.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}
