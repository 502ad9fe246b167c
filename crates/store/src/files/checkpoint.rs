//! Checkpoints: what the write-ahead log holds goes into the database, off the writer's path.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use crate::files::connection;
use crate::writer::Answer;
use crate::{AppendError, OpenError, Sync};

/// Pages that the log may grow by before a checkpoint is asked for.
const EVERY: u64 = 1000;

/// Above this the file is cut, for which the writer must wait; below, it is used again from its start.
const LARGE_FILE: u64 = 64 * 1024 * 1024;

/// When to try again to cut the file, if readers kept it from being cut.
const AGAIN: Duration = Duration::from_secs(1);

/// Who waits for a deletion.
pub(crate) type Deleted = Answer<Result<bool, AppendError>>;

enum Ask {
    Checkpoint,
    /// Nothing old may stay in the file. These are answered after the first try.
    Cut(Vec<Deleted>),
}

pub(crate) struct Checkpoints {
    asks: Sender<Ask>,
    thread: JoinHandle<()>,
    /// Pages in the log when the last checkpoint was asked for.
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

    /// To be called after a commit, with the pages that the log now has.
    pub(crate) fn notice(&mut self, pages: u64) {
        // Fewer than before: it was started from the beginning.
        self.asked_at = self.asked_at.min(pages);
        if pages >= self.asked_at + EVERY {
            self.asked_at = pages;
            let _ = self.asks.send(Ask::Checkpoint);
        }
    }

    /// Removes deleted data from the write-ahead log too, then notifies the callers.
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

/// False if readers kept it from its end, which is no error: the next one goes on.
pub(crate) fn checkpoint(db: &Connection, mode: &str) -> rusqlite::Result<bool> {
    db.query_row(
        &format!("PRAGMA wal_checkpoint({mode})"),
        [],
        |row| Ok(row.get::<_, i64>(0)? == 0),
    )
}

/// Pages that the write-ahead log holds.
pub(crate) fn log_pages(db: &Connection) -> rusqlite::Result<u64> {
    let mut ask = db.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
    let pages: i64 = ask.query_row([], |row| row.get(1))?;
    Ok(u64::try_from(pages).unwrap_or(0))
}
