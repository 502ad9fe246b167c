//! The files of the embedded database, as far as the writer looks after them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Error;
use crate::files::checkpoint::{Checkpoints, Deleted, checkpoint, log_pages};
use crate::files::connection;
use crate::files::presence::Presence;
use crate::files::reserve::Reserve;
use crate::meta::stats::Counters;
use crate::sql::Db;

/// Maximum size in bytes of a database that is compacted after each deletion, which takes a fraction
/// of a second.
const COMPACTED_AT_ONCE: i64 = 16 * 1024 * 1024;

/// The files of a data folder, as far as the writer looks after them.
pub(crate) struct Upkeep {
    pub(crate) checkpoints: Checkpoints,
    pub(crate) presence: Arc<Presence>,
    pub(crate) reserve: Arc<Reserve>,
    /// Number of pages in the write-ahead log after the last commit.
    pub(crate) log_pages: u64,
}

impl Upkeep {
    /// Fails if the open database files were removed or replaced.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.presence.check()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.presence.database()
    }

    /// Counts the pages that a commit has added to the write-ahead log.
    pub(crate) fn count_pages(&mut self, db: &Db, counters: &Counters) {
        // The commit has succeeded; not knowing its size only delays a checkpoint.
        let Some(Ok(pages)) = db.sqlite().map(log_pages) else { return };
        // Fewer than before: the log was started from its beginning.
        let new = pages.checked_sub(self.log_pages).unwrap_or(pages);
        self.log_pages = pages;
        counters.add_pages(new);
        self.checkpoints.notice(pages);
    }

    /// Makes space on a full disk: releases the reserve, and checkpoints so that the WAL is reused from
    /// its start. Returns false if neither has worked.
    pub(crate) fn make_room(&self, db: &Db) -> bool {
        let is_released = self.reserve.release();
        let is_moved = db.sqlite().is_some_and(|db| checkpoint(db, "RESTART").unwrap_or(false));
        is_released || is_moved
    }

    /// Removes the remains of deleted rows from unused space, if the database is small.
    pub(crate) fn compact_if_small(&self, db: &Db) -> Result<(), Error> {
        match db.sqlite() {
            Some(it) if connection::live_bytes(it)? <= COMPACTED_AT_ONCE => db.compact(),
            _ => Ok(()),
        }
    }

    /// Answers the callers when the write-ahead log has no deleted data any more.
    pub(crate) fn cut(&self, callers: Vec<Deleted>) {
        self.checkpoints.cut(callers);
    }

    /// Runs the last checkpoint and closes the database.
    pub(crate) fn close(self, db: Db) {
        self.checkpoints.stop();
        if let Some(Err(error)) = db.sqlite().map(|db| checkpoint(db, "TRUNCATE")) {
            tracing::warn!(%error, "the last checkpoint failed; the next start makes up for it");
        }
        drop(db);
    }
}
