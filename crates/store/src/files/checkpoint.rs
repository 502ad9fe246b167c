//! Checkpoints: what the write-ahead log holds goes into the database, off the writer's path.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use crate::files::connection;
use crate::writer::Answer;
use crate::{AppendError, OpenError, Sync};

/// Number of pages by which the write-ahead log grows before a checkpoint is requested.
const EVERY: u64 = 1000;

/// Size in bytes above which the file of the write-ahead log is truncated, for which the writer
/// must wait. A smaller file is reused from its start.
const LARGE_FILE: u64 = 64 * 1024 * 1024;

/// Time after which truncating the write-ahead log is tried again, if readers have prevented it.
const AGAIN: Duration = Duration::from_secs(1);

/// Sender to the caller that waits for a deletion or a compaction.
pub(crate) type Deleted = Answer<Result<bool, AppendError>>;

enum Ask {
    Checkpoint,
    /// Truncates the write-ahead log, so that no deleted data remains in it. The callers are
    /// answered after the first attempt.
    Cut(Vec<Deleted>),
}

pub(crate) struct Checkpoints {
    asks: Sender<Ask>,
    thread: JoinHandle<()>,
    /// Number of pages in the write-ahead log when the last checkpoint was requested.
    asked_at: u64,
}

impl Checkpoints {
    pub(crate) fn start(dir: &Path, sync: Sync) -> Result<Self, OpenError> {
        let db = connection::checkpointer(dir, sync)?;
        let wal = connection::wal_file(dir);
        let (asks, asked) = channel();
        let thread = thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || run(&db, &wal, &asked))
            .map_err(|error| OpenError::Io { path: dir.to_owned(), error })?;
        Ok(Self { asks, thread, asked_at: 0 })
    }

    /// Requests a checkpoint if the write-ahead log has grown enough. Called after a commit, with
    /// the number of pages in the log.
    pub(crate) fn notice(&mut self, pages: u64) {
        // Fewer than before: it was started from the beginning.
        self.asked_at = self.asked_at.min(pages);
        if pages >= self.asked_at + EVERY {
            self.asked_at = pages;
            let _ = self.asks.send(Ask::Checkpoint);
        }
    }

    /// Truncates the write-ahead log, which removes deleted data from it, then answers the callers.
    pub(crate) fn cut(&self, deleted: Vec<Deleted>) {
        let _ = self.asks.send(Ask::Cut(deleted));
    }

    pub(crate) fn stop(self) {
        drop(self.asks);
        let _ = self.thread.join();
    }
}

fn run(db: &Connection, wal: &PathBuf, asked: &Receiver<Ask>) {
    let mut must_cut = false;
    loop {
        let ask = match must_cut {
            true => asked.recv_timeout(AGAIN),
            false => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let deleted = match ask {
            Ok(Ask::Checkpoint) | Err(RecvTimeoutError::Timeout) => Vec::new(),
            Ok(Ask::Cut(deleted)) => {
                must_cut = true;
                deleted
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let is_large = std::fs::metadata(wal).is_ok_and(|it| it.len() > LARGE_FILE);
        // First what disturbs nobody, so that little is left to do while the writer waits.
        let done = checkpoint(db, "PASSIVE").and_then(|_| match is_large || must_cut {
            true => checkpoint(db, "TRUNCATE"),
            false => Ok(false),
        });
        match done {
            Ok(is_cut) => must_cut &= !is_cut,
            Err(error) => tracing::warn!(%error, "a checkpoint failed; the next one will be tried"),
        }
        for done in deleted {
            let _ = done.send(Ok(true));
        }
    }
}

/// Runs a checkpoint of the write-ahead log. Returns false if readers have prevented its end, which
/// is not an error: the next checkpoint continues.
pub(crate) fn checkpoint(db: &Connection, mode: &str) -> rusqlite::Result<bool> {
    db.query_row(
        &format!("PRAGMA wal_checkpoint({mode})"),
        [],
        |row| Ok(row.get::<_, i64>(0)? == 0),
    )
}

/// Returns the number of pages in the write-ahead log.
pub(crate) fn log_pages(db: &Connection) -> rusqlite::Result<u64> {
    let mut ask = db.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
    let pages: i64 = ask.query_row([], |row| row.get(1))?;
    Ok(u64::try_from(pages).unwrap_or(0))
}
