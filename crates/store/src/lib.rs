//! The log: SQLite embedded, one writer thread, many readers.
//!
//! A session is a list of records numbered 1, 2, 3, ... with no gap. What is appended is read back
//! byte for byte, however it is kept meanwhile: large values live in blobs, and the deltas of a
//! closed stream are folded into one row some time later, which changes no answer. Everything else
//! in here (messages, summaries, the queue) is derived from the records, in their transaction; only
//! the index for search is made later.
//!
//! [`Store::append`] is asynchronous and returns when the records are committed. Reads block for as
//! long as SQLite takes; each is one transaction, so what it returns is consistent.

mod append;
mod backup;
mod blob;
mod body;
mod check;
mod checkpoint;
mod connection;
mod conversation;
mod damage;
mod delete;
mod error;
mod fold;
mod fold_unrecognized;
mod grant;
mod index;
mod interrupt;
mod item;
mod lock;
mod message;
mod pack;
mod presence;
mod process;
mod raw;
mod read;
mod reserve;
mod search;
mod session;
mod setting;
mod sign_in;
mod size;
mod small;
mod snippet;
mod sql;
mod stage;
mod stats;
mod stream;
#[cfg(test)]
mod tests;
mod unrecognized;
mod words;
mod writer;

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use transcript::{ClientId, MessageId, Millis, Record, ResponseId, Seq, SessionId, Summary};

pub use check::{Checked, check};
pub use conversation::Conversation;
pub use error::{AppendError, Error, OpenError};
pub use grant::Grant;
pub use item::ItemKind;
pub use lock::{Holder, holder_of};
pub use message::{MessageKind, MessageRow, Window};
pub use process::Process;
pub use raw::{NumberedLine, RawLine};
pub use read::{Page, ReadRange, Stored};
pub use search::{Cursor, Found, Hit, Query};
pub use session::Listed;
pub use size::{SessionSize, Sizes};
pub use stats::{Histogram, Stats};
pub use unrecognized::{Unrecognized, unrecognized_in};

use checkpoint::Checkpoints;
use connection::Readers;
use lock::Lock;
use presence::Presence;
use reserve::Reserve;
use stats::Counters;
use writer::{Append, Job, What, Write, Writer};

/// Writes that may wait; who comes later waits to be let in.
const WAITING_WRITES: usize = 1024;
const READING_THREADS: usize = 4;
/// Searches take longer than other reads, so they have their own permits.
const SEARCHING_THREADS: usize = 2;

#[derive(Debug, Clone, Default)]
pub struct Options {
    pub sync: Sync,
    /// What a second opener is told, such as `callboard serve`.
    pub holder: String,
    /// Now; it is told as well.
    pub since: Millis,
}

/// What a committed record survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sync {
    /// The loss of power.
    #[default]
    Full,
    /// The end of the process; a loss of power may take the last moments.
    Normal,
}

impl Sync {
    fn pragma(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    jobs: Sender<Job>,
    /// Places for waiting writes. Closed with the store.
    places: Arc<Semaphore>,
    /// Places for threads that read.
    desks: Semaphore,
    /// Permits for searches.
    searches: Semaphore,
    readers: Readers,
    lock: Arc<Lock>,
    counters: Arc<Counters>,
    presence: Arc<Presence>,
    reserve: Arc<Reserve>,
}

impl Store {
    /// Opens the data folder or makes it, takes its lock, and migrates what is in it.
    pub fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        make_folder(dir)?;
        let lock = Arc::new(Lock::take(dir, options.holder, options.since)?);
        backup::remove_dead_parts(dir);
        let reserve = Arc::new(Reserve::of(dir));
        let db = open_writer(dir, options.sync, &reserve)?;
        let checkpoints = Checkpoints::start(dir, options.sync)?;
        let counters = Arc::new(Counters::default());
        let presence = Arc::new(Presence::of(dir));
        let (jobs, waiting) = channel();
        let writer = Writer {
            log_pages: checkpoint::log_pages(&db)?,
            db,
            jobs: waiting,
            sessions: append::Sessions::default(),
            checkpoints,
            lock: Arc::clone(&lock),
            counters: Arc::clone(&counters),
            presence: Arc::clone(&presence),
            reserve: Arc::clone(&reserve),
            deletions: Vec::new(),
        };
        thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(|| writer.run())
            .map_err(|error| OpenError::Io { path: dir.to_owned(), error })?;

        let places = Arc::new(Semaphore::new(WAITING_WRITES));
        let readers = Readers::new(dir);
        let desks = Semaphore::new(READING_THREADS);
        let searches = Semaphore::new(SEARCHING_THREADS);
        let inner =
            Inner { jobs, places, desks, searches, readers, lock, counters, presence, reserve };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Reads on a thread that may wait for the disk. Only a few do so at a time, however many ask:
    /// more threads would not be faster, and each costs a connection.
    pub async fn off_thread<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> T {
        // The desks are never closed; without one it would be slower, not wrong.
        let _desk = self.inner.desks.acquire().await;
        let store = self.clone();
        let done = tokio::task::spawn_blocking(move || read(&store)).await;
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }

    /// Adds to a session's log, whose head must be `expected`; zero makes the session. When this
    /// returns, all of the records are committed or none is.
    pub async fn append(
        &self,
        session: &SessionId,
        expected: Seq,
        records: Arc<[Record]>,
    ) -> Result<(), AppendError> {
        let _place = self.place().await?;
        let (done, answer) = oneshot::channel();
        let append = Append { session: session.clone(), expected, records, done };
        self.send(Job::Write(Write { what: What::Append(append), _place }));
        answer.await.unwrap_or(Err(AppendError::Closed))
    }

    /// Folds up to that many closed streams, fewer if they are long; says how many. The store also
    /// does this by itself when nothing is written.
    pub async fn fold(&self, max_streams: usize) -> Result<usize, Error> {
        let (done, answer) = oneshot::channel();
        self.send(Job::Fold { max_streams, done });
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Writes what waits, tidies up and lets go of the folder. Every other handle is closed too.
    pub async fn close(self) {
        self.inner.places.close();
        self.inner.readers.close();
        let (done, answer) = oneshot::channel();
        self.send(Job::Close { done });
        let _ = answer.await;
    }

    /// Writes into the lock file where this process can be reached.
    pub fn set_address(&self, address: &str) -> Result<(), Error> {
        Ok(self.inner.lock.set_address(address)?)
    }

    /// Creates the reserve again after it was released on a full disk, if there is space. Blocks while it
    /// writes a megabyte.
    pub fn fill_reserve(&self) {
        if !is_full(self.inner.readers.dir()) {
            self.inner.reserve.fill();
        }
    }

    /// Fails if the open database files were removed or replaced in the data folder.
    pub fn check_files(&self) -> Result<(), Error> {
        self.inner.presence.check()
    }

    /// `None` if there is no such session.
    pub fn head(&self, session: &SessionId) -> Result<Option<Seq>, Error> {
        self.in_session(session, |db, key| session::head(db, key).map(Some))
    }

    /// Empty if there is no such session.
    pub fn read(&self, session: &SessionId, range: ReadRange) -> Result<Page, Error> {
        self.inner.readers.read(|db| read::read(db, session, range))
    }

    /// With the head of the same moment.
    pub fn summary(&self, session: &SessionId) -> Result<Option<(Summary, Seq)>, Error> {
        self.in_session(session, |db, key| {
            Ok(Some((session::summary(db, key)?, session::head(db, key)?)))
        })
    }

    /// The last changed first. `before` is the `updated_at` and id of the last one of the page
    /// before.
    pub fn sessions(
        &self,
        archived: Option<bool>,
        limit: usize,
        before: Option<(Millis, &SessionId)>,
    ) -> Result<Vec<Listed>, Error> {
        self.inner.readers.read(|db| session::list(db, archived, limit, before))
    }

    /// The session with that agent that was changed last, apart from one.
    pub fn latest_session_of(
        &self,
        agent: &str,
        but: &SessionId,
    ) -> Result<Option<SessionId>, Error> {
        self.inner.readers.read(|db| session::latest_of(db, agent, but))
    }

    /// Sessions with an open run, an unanswered message, a queue, or a question to another agent
    /// that has no answer yet.
    pub fn needing_attention(&self) -> Result<Vec<SessionId>, Error> {
        self.inner.readers.read(|db| session::needing_attention(db))
    }

    /// Oldest first, superseded ones included.
    pub fn messages(&self, session: &SessionId, window: Window) -> Result<Vec<MessageRow>, Error> {
        self.in_session(session, |db, key| message::window(db, key, window))
    }

    /// The window that has the oldest `limit` messages that begin after a number.
    pub fn window_after(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> Result<Window, Error> {
        self.in_session(session, |db, key| message::window_after(db, key, after, limit))
    }

    pub fn message_row(&self, session: &SessionId, id: &str) -> Result<Option<MessageRow>, Error> {
        self.in_session(session, |db, key| message::by_id(db, key, id))
    }

    /// The last message of a kind, of those that are not superseded.
    pub fn last_of(
        &self,
        session: &SessionId,
        kind: MessageKind,
    ) -> Result<Option<MessageRow>, Error> {
        self.in_session(session, |db, key| message::last_of(db, key, kind))
    }

    /// How many messages of a kind begin before a number, of those that are not superseded.
    pub fn count_before(
        &self,
        session: &SessionId,
        kind: MessageKind,
        before: Seq,
    ) -> Result<u64, Error> {
        self.in_session(session, |db, key| message::count_before(db, key, kind, before))
    }

    /// The records of exactly these messages, in order, without deltas that later records cover.
    pub fn records_of(
        &self,
        session: &SessionId,
        rows: &[MessageRow],
    ) -> Result<Vec<Stored>, Error> {
        self.in_session(session, |db, key| message::records(db, session, key, rows))
    }

    /// Empty if there is no such run.
    pub fn records_of_run(
        &self,
        session: &SessionId,
        response: &ResponseId,
    ) -> Result<Vec<Stored>, Error> {
        self.in_session(session, |db, key| {
            let row = message::of_kind(db, key, MessageKind::Answer, response.as_str())?;
            message::records(db, session, key, row.as_slice())
        })
    }

    pub fn message_of_client_id(
        &self,
        session: &SessionId,
        client_id: &ClientId,
    ) -> Result<Option<MessageId>, Error> {
        self.in_session(session, |db, key| session::message_of_client_id(db, key, client_id))
    }

    /// Where the first message was queued of those that led to what waits now.
    pub fn queue_start(&self, session: &SessionId) -> Result<Option<Seq>, Error> {
        self.in_session(session, session::queue_start)
    }

    /// Pages written to the write-ahead log since the store was opened.
    pub fn pages_written(&self) -> u64 {
        self.inner.counters.pages()
    }

    pub fn stats(&self) -> Stats {
        self.inner.counters.stats()
    }

    /// What is empty where there is no such session.
    fn in_session<T: Default>(
        &self,
        session: &SessionId,
        read: impl FnOnce(&Connection, i64) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.inner.readers.read(|db| match session::key(db, session)? {
            Some(key) => read(db, key),
            None => Ok(T::default()),
        })
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, AppendError> {
        let places = Arc::clone(&self.inner.places);
        places.acquire_owned().await.map_err(|_| AppendError::Closed)
    }

    fn send(&self, job: Job) {
        // If the writer is gone, so is the job, and with it the other end of its answer.
        let _ = self.inner.jobs.send(job);
    }
}

/// Opens the database for writing. On a full disk the WAL index, or a migration, gets the space of the
/// reserve.
fn open_writer(dir: &Path, sync: Sync, reserve: &Reserve) -> Result<Connection, OpenError> {
    let opened = match connection::writer(dir, sync) {
        Err(_) if is_full(dir) && reserve.release() => connection::writer(dir, sync),
        opened => {
            if !is_full(dir) {
                reserve.fill();
            }
            opened
        }
    };
    opened.map_err(|error| match error {
        OpenError::Db(_) | OpenError::Io { .. } if is_full(dir) => {
            OpenError::NoSpace { dir: dir.to_owned() }
        }
        error => error.in_file(|| connection::file(dir)),
    })
}

/// Returns whether the folder has no space for another page.
fn is_full(dir: &Path) -> bool {
    let probe = dir.join(".space");
    let written = std::fs::write(&probe, [0; 4096]);
    let _ = std::fs::remove_file(&probe);
    written.is_err_and(|it| matches!(it.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}

/// Only its owner may look into a folder that is made here.
fn make_folder(dir: &Path) -> Result<(), OpenError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| OpenError::Io { path: dir.to_owned(), error })
}
