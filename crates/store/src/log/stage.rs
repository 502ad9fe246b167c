//! Staged sessions: a long log is written in bounded batches and becomes visible in one step.
//!
//! The rows of a staged session are written under a key of their own, without a row in `sessions`: no
//! reader, list or search finds them. From the first batch on the key stands in `deleted`, so after
//! a crash the next start clears the rows away, as it does for a session whose deletion was
//! interrupted. Publishing is one small transaction that moves the key to `sessions`.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;
use transcript::{Record, Seq, SessionId, Summary};

use crate::log::append::{Session, Sessions};
use crate::log::session;
use crate::sql::{Db, params};
use crate::writer::{Answer, Job, Write, WriteOp};
use crate::{AppendError, Error, Store};

/// Number of records with which a batch for a staged session ends; it also ends with
/// `BYTES_AT_ONCE` of JSON. Other sessions wait for one batch at most.
const RECORDS_AT_ONCE: usize = 1000;
const BYTES_AT_ONCE: usize = 512 * 1024;

/// One write to a staged session, and the caller that is answered after the commit.
pub(crate) struct StageWrite {
    pub(crate) ticket: Ticket,
    pub(crate) step: StageStep,
    pub(crate) done: Answer<Result<(), AppendError>>,
}

pub(crate) enum StageStep {
    /// Appends a range of these records. The batch that begins with record 1 creates the staged
    /// session.
    Add(Arc<[Record]>, std::ops::Range<usize>),
    Publish(SessionId),
}

impl StageWrite {
    pub(crate) fn n_records(&self) -> usize {
        match &self.step {
            StageStep::Add(_, range) => range.len(),
            StageStep::Publish(_) => 1,
        }
    }
}

/// Number that identifies a staged session between the caller and the writer thread.
pub(crate) type Ticket = u64;

/// The staged sessions that are being written, by ticket.
#[derive(Default)]
pub(crate) struct Staged(HashMap<Ticket, StagedSession>);

struct StagedSession {
    session: Session,
    is_published: bool,
}

impl Staged {
    /// Forgets a staged session. Returns the key whose rows must be deleted, or `None` if the
    /// session was published.
    pub(crate) fn forget(&mut self, ticket: Ticket) -> Option<i64> {
        self.0.remove(&ticket).filter(|it| !it.is_published).map(|it| it.session.key)
    }

    /// Returns whether the rows of a staged session with this key are still being written.
    pub(crate) fn contains(&self, key: i64) -> bool {
        self.0.values().any(|it| it.session.key == key && !it.is_published)
    }
}

impl Sessions {
    /// Writes to a staged session. The outer error aborts the whole batch, the inner one only this
    /// write.
    pub(crate) fn stage(
        &mut self,
        db: &Db,
        ticket: Ticket,
        step: &StageStep,
    ) -> Result<Result<(), AppendError>, Error> {
        match step {
            StageStep::Add(records, range) => self.add_staged(db, ticket, &records[range.clone()]),
            StageStep::Publish(id) => self.publish(db, ticket, id),
        }
    }

    fn add_staged(
        &mut self,
        db: &Db,
        ticket: Ticket,
        records: &[Record],
    ) -> Result<Result<(), AppendError>, Error> {
        let begins = records.first().is_some_and(|it| it.seq == Seq(1));
        if begins {
            let staged = StagedSession { session: begin(db)?, is_published: false };
            self.staged.0.insert(ticket, staged);
        }
        // Unknown after a failed batch: the writer has dropped its state.
        let Some(StagedSession { session, .. }) = self.staged.0.get_mut(&ticket) else {
            return Ok(Err(AppendError::Misnumbered));
        };
        session.add(db, records)?;
        self.written.records += records.len() as u64;
        self.written.bytes += session.take_bytes();
        Ok(Ok(()))
    }

    fn publish(
        &mut self,
        db: &Db,
        ticket: Ticket,
        id: &SessionId,
    ) -> Result<Result<(), AppendError>, Error> {
        let Some(StagedSession { session: staged, is_published }) = self.staged.0.get_mut(&ticket)
        else {
            return Ok(Err(AppendError::Misnumbered));
        };
        if let Some(key) = session::key(db, id)? {
            return Ok(Err(AppendError::Conflict { head: session::head(db, key)? }));
        }
        session::insert_staged(db, staged.key, id, &staged.summary)?;
        self.backlog.add(staged.key);
        *is_published = true;
        Ok(Ok(()))
    }
}

fn begin(db: &Db) -> Result<Session, Error> {
    let key = db.one(
        "INSERT INTO deleted (session)
             VALUES (1 + (SELECT coalesce(max(key), 0) FROM
               (SELECT key FROM sessions UNION ALL SELECT session FROM deleted) AS used))
             RETURNING session",
        params![],
        |row| row.get(0),
    )?;
    Ok(Session::new(key, Seq(0), Summary::default()))
}

impl Store {
    /// Creates a session from a complete log, which begins with record 1. Other sessions can be
    /// written meanwhile. The session is invisible until all records are committed. If the import
    /// fails or is dropped, or the process dies, all its rows are deleted.
    pub async fn import(
        &self,
        session: &SessionId,
        records: Arc<[Record]>,
    ) -> Result<(), AppendError> {
        if batch_end(&records, 0) == records.len() {
            return self.append(session, Seq(0), records).await;
        }
        let is_numbered =
            (1..).zip(&*records).all(|(seq, it)| it.seq == Seq(seq) && it.session_id == *session);
        if !is_numbered {
            return Err(AppendError::Misnumbered);
        }
        self.refuse_existing(session).await?;
        let staging = Staging { store: self, ticket: next_ticket() };
        let mut start = 0;
        while start < records.len() {
            let end = batch_end(&records, start);
            staging.write(StageStep::Add(Arc::clone(&records), start..end)).await?;
            start = end;
        }
        staging.write(StageStep::Publish(session.clone())).await
    }

    /// Returns an error if a session exists. Publishing checks this again; the early check saves
    /// the work.
    async fn refuse_existing(&self, session: &SessionId) -> Result<(), AppendError> {
        match self.head(session).await {
            Ok(None) => Ok(()),
            Ok(Some(head)) => Err(AppendError::Conflict { head }),
            Err(error) => Err(AppendError::from(&error)),
        }
    }
}

/// An import into a staged session. On drop, the staged rows are deleted, unless the session was
/// published.
struct Staging<'a> {
    store: &'a Store,
    ticket: Ticket,
}

impl Staging<'_> {
    async fn write(&self, step: StageStep) -> Result<(), AppendError> {
        let _permit = self.store.write_permit().await?;
        let (done, answer) = oneshot::channel();
        let op = WriteOp::Stage(StageWrite { ticket: self.ticket, step, done });
        self.store.send(Job::Write(Write { op, _permit }));
        answer.await.unwrap_or(Err(AppendError::Closed))
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        self.store.send(Job::Unstage { ticket: self.ticket });
    }
}

fn next_ticket() -> Ticket {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn batch_end(records: &[Record], start: usize) -> usize {
    let mut n_bytes = 0;
    let batch = records[start..].iter().take(RECORDS_AT_ONCE).take_while(|it| {
        let fits = n_bytes < BYTES_AT_ONCE;
        n_bytes += json_bytes(it);
        fits
    });
    start + batch.count()
}

/// Returns the size in bytes of the JSON of a record's event, without building it.
fn json_bytes(record: &Record) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A record that cannot be serialized counts as empty here and fails in the writer.
    let _ = serde_json::to_writer(&mut count, &record.event);
    count.0
}
