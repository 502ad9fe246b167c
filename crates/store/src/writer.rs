//! The writer: one thread that owns the only connection that writes.
//!
//! Waiting writes are committed in one transaction, with no timer: a batch grows by itself under load, and a
//! lone record is not delayed. Nobody is answered before the commit. What can wait is done in small
//! batches while nothing else waits: rows of deleted sessions are cleared away, closed streams are
//! folded, and what was written goes into the index.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use transcript::{Record, Seq, SessionId};

use crate::files::backup;
use crate::files::checkpoint::Deleted;
use crate::files::lock::Lock;
use crate::files::upkeep::Upkeep;
use crate::log::append::{Sessions, Written};
use crate::log::stage::{StageWrite, Ticket};
use crate::log::{delete, fold};
use crate::meta::stats::Counters;
use crate::side_write::SideWrite;
use crate::sql::Db;
use crate::{AppendError, Error};

/// Number of records with which a batch of writes ends.
const RECORDS_AT_ONCE: usize = 4096;
const STREAMS_AT_ONCE: usize = 16;
/// Time without jobs after which maintenance begins.
const QUIET: Duration = Duration::from_millis(250);

pub(crate) type Answer<T> = oneshot::Sender<T>;

pub(crate) enum Job {
    Write(Write),
    Fold {
        max_streams: usize,
        done: Answer<Result<usize, Error>>,
    },
    /// Indexes one batch of records. The answer is false if there was nothing to index.
    Index {
        done: Answer<Result<bool, Error>>,
    },
    Delete {
        session: SessionId,
        done: Deleted,
    },
    /// Forgets a staged session, because its caller is done with it or gone.
    Unstage {
        ticket: Ticket,
    },
    Compact {
        done: Deleted,
    },
    /// Copies the database through the writer's connection, which has the files open even if they
    /// were unlinked.
    Rescue {
        to: PathBuf,
        done: Answer<Result<(), Error>>,
    },
    Close {
        done: Answer<()>,
    },
}

pub(crate) struct Write {
    pub(crate) op: WriteOp,
    /// Permit for a pending write, released when the write is answered.
    pub(crate) _permit: OwnedSemaphorePermit,
}

pub(crate) enum WriteOp {
    Append(Append),
    Stage(StageWrite),
    Side(Box<dyn SideWrite>),
}

pub(crate) struct Append {
    pub(crate) session: SessionId,
    pub(crate) expected: Seq,
    pub(crate) records: Arc<[Record]>,
    pub(crate) done: Answer<Result<(), AppendError>>,
}

pub(crate) struct Writer {
    pub(crate) db: Db,
    /// The files of the embedded database; `None` with a PostgreSQL server.
    pub(crate) upkeep: Option<Upkeep>,
    pub(crate) jobs: Receiver<Job>,
    pub(crate) sessions: Sessions,
    /// Lock of the data folder, released after the last write.
    pub(crate) lock: Arc<Lock>,
    pub(crate) counters: Arc<Counters>,
    /// Keys of deleted sessions with rows left, and the callers to answer when the rows are
    /// removed.
    pub(crate) deletions: Vec<(i64, Deleted)>,
}

impl Writer {
    /// Runs jobs until the store is closed or its last handle is dropped.
    pub(crate) fn run(mut self) {
        let mut done = None;
        self.take_up_deletions();
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
                Some(Job::Index { done }) => {
                    let _ = done.send(self.index_some());
                }
                Some(Job::Delete { session, done }) => self.delete(&session, done),
                Some(Job::Unstage { ticket }) => {
                    let key = self.sessions.staged.forget(ticket);
                    self.deletions.extend(key.map(for_nobody));
                }
                Some(Job::Compact { done }) => match self.compact() {
                    Ok(()) => self.cut(vec![done]),
                    Err(error) => drop(done.send(Err(AppendError::from(&error)))),
                },
                Some(Job::Rescue { to, done }) => {
                    let _ = done.send(backup::copy(&self.db, &to));
                }
                Some(Job::Close { done: asked }) => {
                    done = Some(asked);
                    break;
                }
                Some(Job::Write(_)) | None => (),
            }
            // Where there is never a quiet moment, deletions come to their end too.
            if !self.deletions.is_empty() {
                self.flush_deletions();
            }
        }
        while !self.deletions.is_empty() {
            self.flush_deletions();
        }
        self.close();
        if let Some(done) = done {
            let _ = done.send(());
        }
    }

    /// Queues the deletion of rows that a crash has left of deleted and staged sessions.
    fn take_up_deletions(&mut self) {
        match delete::all(&self.db) {
            Ok(keys) => self.deletions.extend(keys.into_iter().map(for_nobody)),
            Err(error) => tracing::warn!(%error, "cannot read the list of deleted sessions"),
        }
    }

    fn next_job(&mut self) -> Option<Job> {
        while !self.deletions.is_empty() {
            match self.jobs.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => self.flush_deletions(),
            }
        }
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
            match self.maintain() {
                Ok(false) => break,
                Ok(true) => (),
                Err(error) => {
                    tracing::warn!(%error, "deferred maintenance failed; will retry");
                    break;
                }
            }
        }
        // Only a write or a deletion can give more to do.
        self.jobs.recv().ok()
    }

    /// Runs one batch of maintenance. Returns false if there is nothing to do.
    fn maintain(&mut self) -> Result<bool, Error> {
        Ok(self.clear_some()? || self.fold(STREAMS_AT_ONCE)? > 0 || self.index_some()?)
    }

    /// Collects the pending writes behind this one into a batch, up to the first job that is not a
    /// write, which is returned as well.
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

    fn write(&mut self, mut batch: Vec<Write>) {
        let outcomes = match self.commit(&mut batch) {
            Ok(outcomes) => outcomes,
            Err(error) => {
                self.forget(&batch);
                let error = match &self.upkeep {
                    Some(upkeep) => error.in_file(|| upkeep.database()),
                    None => error,
                };
                let error = AppendError::from(&error);
                tracing::warn!(%error, appends = batch.len(), "nothing of a batch was written");
                batch.iter().map(|_| Err(error.clone())).collect()
            }
        };
        for (write, outcome) in batch.into_iter().zip(outcomes) {
            // A caller that is gone needs no answer.
            match write.op {
                WriteOp::Append(append) => drop(append.done.send(outcome)),
                WriteOp::Stage(stage) => drop(stage.done.send(outcome)),
                WriteOp::Side(side) => side.answer(outcome),
            }
        }
    }

    /// Commits a batch of writes in one transaction and returns an outcome for each. If this fails,
    /// nothing was written.
    fn commit(&mut self, batch: &mut [Write]) -> Result<Vec<Result<(), AppendError>>, Error> {
        let start = Instant::now();
        self.upkeep.as_ref().map_or(Ok(()), Upkeep::check)?;
        self.sessions.written = Written::default();
        let tx = self.db.begin_write()?;
        let mut outcomes = Vec::with_capacity(batch.len());
        for write in batch {
            outcomes.push(match &mut write.op {
                WriteOp::Append(Append { session, expected, records, .. }) => {
                    self.sessions.append(&tx, session, *expected, records)?
                }
                WriteOp::Stage(StageWrite { ticket, step, .. }) => {
                    self.sessions.stage(&tx, *ticket, step)?
                }
                WriteOp::Side(side) => Ok(side.run(&tx)?),
            });
        }
        tx.commit()?;
        let Written { records, bytes } = self.sessions.written;
        self.counters.add_commit(start.elapsed(), records, bytes);
        self.count_pages();
        Ok(outcomes)
    }

    fn forget(&mut self, batch: &[Write]) {
        for write in batch {
            match &write.op {
                WriteOp::Append(append) => self.sessions.forget(&append.session),
                WriteOp::Stage(stage) => {
                    let key = self.sessions.staged.forget(stage.ticket);
                    self.deletions.extend(key.map(for_nobody));
                }
                WriteOp::Side(_) => (),
            }
        }
    }

    fn fold(&mut self, max_streams: usize) -> Result<usize, Error> {
        let tx = self.db.begin_write()?;
        let n_streams = fold::fold(&tx, max_streams)?;
        tx.commit()?;
        self.count_pages();
        Ok(n_streams)
    }

    fn index_some(&mut self) -> Result<bool, Error> {
        if !self.sessions.backlog.load_backlog(&self.db)? {
            return Ok(false);
        }
        let tx = self.db.begin_write()?;
        let done = self.sessions.backlog.index_some(&tx)?;
        tx.commit()?;
        self.sessions.backlog.remove(done);
        self.count_pages();
        Ok(true)
    }

    fn delete(&mut self, session: &SessionId, done: Deleted) {
        let begun = match self.begin_to_delete(session) {
            Err(error) if error.is_full() && self.make_room() => self.begin_to_delete(session),
            begun => begun,
        };
        match begun {
            Ok(Some(key)) => self.deletions.push((key, done)),
            Ok(None) => drop(done.send(Ok(false))),
            Err(error) => drop(done.send(Err(AppendError::from(&error)))),
        }
    }

    fn begin_to_delete(&mut self, session: &SessionId) -> Result<Option<i64>, Error> {
        self.upkeep.as_ref().map_or(Ok(()), Upkeep::check)?;
        let tx = self.db.begin_write()?;
        let key = delete::begin(&tx, session)?;
        tx.commit()?;
        self.sessions.forget(session);
        self.count_pages();
        Ok(key)
    }

    /// Makes space on a full disk. Returns false if that has not worked.
    fn make_room(&self) -> bool {
        self.upkeep.as_ref().is_some_and(|it| it.make_room(&self.db))
    }

    fn flush_deletions(&mut self) {
        let cleared = match self.clear_some() {
            Err(error) if error.is_full() && self.make_room() => self.clear_some(),
            cleared => cleared,
        };
        match cleared {
            Ok(true) => (),
            Ok(false) => {
                let callers = self.deletions.drain(..).map(|it| it.1).collect();
                self.cut(callers);
            }
            // No reader can see the session any more, so the callers must not take this for a failure.
            Err(error) => {
                tracing::warn!(%error, "the rows of a deleted session could not be removed; will retry");
                for (_, done) in self.deletions.drain(..) {
                    let _ = done.send(Ok(true));
                }
            }
        }
    }

    /// Deletes some rows of a deleted session. Returns false if no rows are left to delete.
    fn clear_some(&mut self) -> Result<bool, Error> {
        let tx = self.db.begin_write()?;
        let Some(session) = delete::next(&tx, &self.sessions.staged)? else { return Ok(false) };
        let is_cleared = delete::step(&tx, session)?;
        tx.commit()?;
        self.count_pages();
        if is_cleared {
            let compacted = self.upkeep.as_ref().map_or(Ok(()), |it| it.compact_if_small(&self.db));
            if let Err(error) = compacted {
                // The rows are deleted; copies in unused space stay until the pages are reused.
                tracing::warn!(%error, "cannot compact after a deletion");
            }
            self.count_pages();
            let cleared = self.deletions.extract_if(.., |(key, _)| *key == session);
            let callers = cleared.map(|(_, done)| done).collect();
            self.cut(callers);
        }
        Ok(true)
    }

    /// Rewrites the database without the free space in it and in each of its pages.
    fn compact(&mut self) -> Result<(), Error> {
        self.db.compact()?;
        self.count_pages();
        Ok(())
    }

    fn count_pages(&mut self) {
        if let Some(upkeep) = &mut self.upkeep {
            upkeep.count_pages(&self.db, &self.counters);
        }
    }

    /// Answers the callers of deletions whose rows are gone.
    fn cut(&self, callers: Vec<Deleted>) {
        match &self.upkeep {
            Some(upkeep) => upkeep.cut(callers),
            None => callers.into_iter().for_each(|it| drop(it.send(Ok(true)))),
        }
    }

    fn close(self) {
        if let Some(upkeep) = self.upkeep {
            upkeep.close(self.db);
        }
        self.lock.release();
    }
}

fn n_records(write: &Write) -> usize {
    match &write.op {
        WriteOp::Append(append) => append.records.len(),
        WriteOp::Stage(stage) => stage.n_records(),
        WriteOp::Side(_) => 1,
    }
}

/// Returns a deletion that no caller waits for.
fn for_nobody(key: i64) -> (i64, Deleted) {
    (key, oneshot::channel().0)
}
