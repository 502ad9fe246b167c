//! Checkpoints: what the write-ahead log holds goes into the database, off the writer's path.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use crate::{OpenError, Sync, connection};

/// Pages that the log may grow by before a checkpoint is asked for.
const EVERY: u64 = 1000;

/// Above this the file is cut, for which the writer must wait; below, it is used again from its start.
const LARGE_FILE: u64 = 64 * 1024 * 1024;

pub(crate) struct Checkpoints {
    wake: SyncSender<()>,
    thread: JoinHandle<()>,
    /// Pages in the log when the last checkpoint was asked for.
    asked_at: u64,
}

impl Checkpoints {
    pub(crate) fn start(dir: &Path, sync: Sync) -> Result<Self, OpenError> {
        let db = connection::checkpointer(dir, sync)?;
        let wal = connection::wal_file(dir);
        let (wake, woken) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || run(&db, &wal, &woken))
            .map_err(|error| OpenError::Io { path: dir.to_owned(), error })?;
        Ok(Self { wake, thread, asked_at: 0 })
    }

    /// To be called after a commit, with the pages that the log now has.
    pub(crate) fn notice(&mut self, pages: u64) {
        // Fewer than before: it was started from the beginning.
        self.asked_at = self.asked_at.min(pages);
        if pages >= self.asked_at + EVERY {
            self.asked_at = pages;
            // If one waits already, that will do.
            let _ = self.wake.try_send(());
        }
    }

    pub(crate) fn stop(self) {
        drop(self.wake);
        let _ = self.thread.join();
    }
}

fn run(db: &Connection, wal: &PathBuf, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        let is_large = std::fs::metadata(wal).is_ok_and(|it| it.len() > LARGE_FILE);
        // First what disturbs nobody, so that little is left to do while the writer waits.
        let done = checkpoint(db, "PASSIVE").and_then(|()| match is_large {
            true => checkpoint(db, "TRUNCATE"),
            false => Ok(()),
        });
        if let Err(error) = done {
            tracing::warn!(%error, "a checkpoint failed; the next one will be tried");
        }
    }
}

/// A checkpoint that is kept from its end by readers is no error: the next one goes on.
pub(crate) fn checkpoint(db: &Connection, mode: &str) -> rusqlite::Result<()> {
    db.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()))
}

/// Pages that the write-ahead log holds.
pub(crate) fn log_pages(db: &Connection) -> rusqlite::Result<u64> {
    let mut ask = db.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
    let pages: i64 = ask.query_row([], |row| row.get(1))?;
    Ok(u64::try_from(pages).unwrap_or(0))
}
