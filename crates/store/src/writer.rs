//! The writer: one thread that owns the only connection that writes.
//!
//! What waits is written in one transaction, with no timer: a batch grows by itself under load, and a
//! lone record is not delayed. Nobody is answered before the commit. While nothing waits, closed
//! streams are folded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use transcript::{Record, Seq, SessionId};

use crate::append::Sessions;
use crate::checkpoint::{Checkpoints, checkpoint, log_pages};
use crate::lock::Lock;
use crate::{AppendError, Error, blob, fold};

/// A batch ends with the append that makes it this many records.
const RECORDS_AT_ONCE: usize = 4096;
const STREAMS_AT_ONCE: usize = 16;
/// How long nothing must have happened before streams are folded.
const QUIET: Duration = Duration::from_millis(250);

pub(crate) type Answer<T> = oneshot::Sender<T>;

pub(crate) enum Job {
    Write(Write),
    Fold { max_streams: usize, done: Answer<Result<usize, Error>> },
    Close { done: Answer<()> },
}

pub(crate) struct Write {
    pub(crate) what: What,
    /// Among the writes that may wait. Given back when the write is answered.
    pub(crate) _place: OwnedSemaphorePermit,
}

pub(crate) enum What {
    Append(Append),
    Blob(Vec<u8>, Answer<Result<String, AppendError>>),
}

pub(crate) struct Append {
    pub(crate) session: SessionId,
    pub(crate) expected: Seq,
    pub(crate) records: Arc<[Record]>,
    pub(crate) done: Answer<Result<(), AppendError>>,
}

pub(crate) struct Writer {
    pub(crate) db: Connection,
    pub(crate) jobs: Receiver<Job>,
    pub(crate) sessions: Sessions,
    pub(crate) checkpoints: Checkpoints,
    /// Released when the last byte is written.
    pub(crate) lock: Arc<Lock>,
    pub(crate) pages_written: Arc<AtomicU64>,
    /// In the write-ahead log after the last commit.
    pub(crate) log_pages: u64,
}

impl Writer {
    /// Returns when asked to close, or when nobody is left who could ask for anything.
    pub(crate) fn run(mut self) {
        let mut done = None;
        while let Some(job) = self.next_job() {
            let other = match job {
                Job::Write(first) => {
                    let (batch, other) = self.batch(first);
                    self.write(batch);
                    other
                }
                job => Some(job),
            };
            match other {
                Some(Job::Fold { max_streams, done }) => {
                    let _ = done.send(self.fold(max_streams));
                }
                Some(Job::Close { done: asked }) => {
                    done = Some(asked);
                    break;
                }
                Some(Job::Write(_)) | None => (),
            }
        }
        self.close();
        if let Some(done) = done {
            let _ = done.send(());
        }
    }

    fn next_job(&mut self) -> Option<Job> {
        match self.jobs.recv_timeout(QUIET) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => (),
        }
        // In small batches: what comes meanwhile waits for no more than one.
        loop {
            match self.jobs.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => (),
            }
            match self.fold(STREAMS_AT_ONCE) {
                Ok(0) => break,
                Ok(_) => (),
                Err(error) => {
                    tracing::warn!(%error, "streams could not be folded; tried again later");
                    break;
                }
            }
        }
        // Only a write can give more to fold.
        self.jobs.recv().ok()
    }

    /// What waits behind this, up to the first job that is no write.
    fn batch(&self, first: Write) -> (Vec<Write>, Option<Job>) {
        let mut n_records = n_records(&first);
        let mut batch = vec![first];
        while n_records < RECORDS_AT_ONCE {
            match self.jobs.try_recv() {
                Ok(Job::Write(write)) => {
                    n_records += self::n_records(&write);
                    batch.push(write);
                }
                Ok(other) => return (batch, Some(other)),
                Err(_) => break,
            }
        }
        (batch, None)
    }

    fn write(&mut self, batch: Vec<Write>) {
        let outcomes = match self.commit(&batch) {
            Ok(outcomes) => outcomes,
            Err(error) => {
                self.forget(&batch);
                let error = AppendError::from(&error);
                tracing::warn!(%error, appends = batch.len(), "nothing of a batch was written");
                batch.iter().map(|_| Err(error.clone())).collect()
            }
        };
        for (write, outcome) in batch.into_iter().zip(outcomes) {
            // Who does not wait any more needs no answer.
            match write.what {
                What::Append(append) => drop(append.done.send(outcome.map(drop))),
                What::Blob(_, done) => drop(done.send(outcome)),
            }
        }
    }

    /// One outcome for each write: the hash of a blob, an empty text for an append.
    fn commit(&mut self, batch: &[Write]) -> Result<Vec<Result<String, AppendError>>, Error> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut outcomes = Vec::with_capacity(batch.len());
        for write in batch {
            outcomes.push(match &write.what {
                What::Append(Append { session, expected, records, .. }) => {
                    let outcome = self.sessions.append(&tx, session, *expected, records)?;
                    outcome.map(|()| String::new())
                }
                What::Blob(value, _) => Ok(blob::put(&tx, value)?),
            });
        }
        tx.commit()?;
        self.count_pages();
        Ok(outcomes)
    }

    fn forget(&mut self, batch: &[Write]) {
        for write in batch {
            if let What::Append(append) = &write.what {
                self.sessions.forget(&append.session);
            }
        }
    }

    fn fold(&mut self, max_streams: usize) -> Result<usize, Error> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let n_streams = fold::fold(&tx, max_streams)?;
        tx.commit()?;
        self.count_pages();
        Ok(n_streams)
    }

    fn count_pages(&mut self) {
        // The commit has succeeded; not knowing its size only delays a checkpoint.
        let Ok(pages) = log_pages(&self.db) else { return };
        // Fewer than before: the log was started from its beginning.
        let new = pages.checked_sub(self.log_pages).unwrap_or(pages);
        self.log_pages = pages;
        self.pages_written.fetch_add(new, Ordering::Relaxed);
        self.checkpoints.notice(pages);
    }

    fn close(self) {
        self.checkpoints.stop();
        if let Err(error) = checkpoint(&self.db, "TRUNCATE") {
            tracing::warn!(%error, "the last checkpoint failed; the next start makes up for it");
        }
        drop(self.db);
        self.lock.release();
    }
}

fn n_records(write: &Write) -> usize {
    match &write.what {
        What::Append(append) => append.records.len(),
        What::Blob(..) => 1,
    }
}
