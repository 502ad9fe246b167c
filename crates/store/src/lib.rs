//! The log: in SQLite, embedded, or in PostgreSQL; one writer thread, many readers.
//!
//! A session is a list of records numbered 1, 2, 3, ... with no gap. What is appended is read back
//! byte for byte, however it is kept meanwhile: large values live in blobs, and the deltas of a
//! closed stream are folded into one row some time later, which changes no answer. Everything else
//! in here (messages, summaries, the queue) is derived from the records, in their transaction; only
//! the index for search is made later.
//!
//! ```
//! use std::sync::Arc;
//!
//! use store::{Options, ReadRange, Store};
//! use transcript::{Event, Level, Millis, Record, Seq, SessionId};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let store = Store::open(folder, Options::default())?;
//! let session = SessionId::new("first");
//! let event = Event::Notice { level: Level::Info, text: "Hello".to_owned() };
//! let records = Arc::from([Record::new(Seq(1), Millis(0), session.clone(), None, event)]);
//! store.append(&session, Seq(0), records).await?;
//!
//! let range = ReadRange { after: Seq(0), up_to: None, limit: 100, deltas: true };
//! let page = store.read(&session, range).await?;
//! assert_eq!(page.head, Seq(1));
//! store.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! All methods that use the database are asynchronous. [`Store::append`] returns when the records are
//! committed. Each read is one transaction, so what it returns is consistent; it runs on a blocking
//! thread, never on the caller's.

#![warn(missing_docs)]

mod error;
mod files;
mod log;
mod meta;
mod readers;
mod reads;
mod search;
mod server;
mod side_write;
mod sql;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::DirBuilder;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use transcript::{Millis, Record, Seq, SessionId};

pub use error::{AppendError, DatabaseError, Error, OpenError};
pub use files::check::{Checked, check};
pub use files::lock::{Holder, holder_of};
pub use log::conversation::{Conversation, StoredRun};
pub use log::message::{MessageKind, MessageRow, Window};
pub use log::raw::NumberedLine;
pub use log::read::{Page, ReadRange, Stored};
pub use log::session::Listed;
pub use meta::grant::Grant;
pub use meta::process::Process;
pub use meta::size::{SessionSize, Sizes};
pub use meta::stats::{Histogram, Stats};
pub use meta::unrecognized::{Unrecognized, unrecognized_in};
pub use search::item::ItemKind;
pub use search::query::{Cursor, Found, Hit, Query};

use files::folder::Folder;
use files::lock::Lock;
use meta::stats::Counters;
use readers::{Readers, Source};
use server::Server;
use sql::{Db, Postgres, Role};
use writer::{Append, Job, Write, WriteOp, Writer};

/// Maximum number of pending writes. Further callers wait for a permit.
const PENDING_WRITES: usize = 1024;
/// Maximum number of reads at the same time. More threads would not be faster, and each needs a
/// connection.
const READING_THREADS: usize = 4;
/// Maximum number of searches at the same time.
const SEARCHING_THREADS: usize = 2;

/// Options of [`Store::open`].
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// URL of the PostgreSQL server that holds the store; `None` for the embedded database of the data
    /// folder.
    pub server: Option<String>,
    /// Durability of committed records.
    pub sync: Sync,
    /// Command of this process, such as `callboard serve`. It is shown to other processes that find
    /// the data folder in use.
    pub holder: String,
    /// Current time. It is shown together with the command.
    pub since: Millis,
}

/// Durability of committed records: the failures that they survive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sync {
    /// Committed records survive a power loss.
    #[default]
    Full,
    /// Committed records survive the end of the process. A power loss may lose those of the last
    /// moments.
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

/// Handle of an open store. Clones share the store.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    jobs: Sender<Job>,
    /// Permits for pending writes. The semaphore is closed together with the store.
    write_permits: Arc<Semaphore>,
    /// Permits for reads at the same time.
    reader_permits: Arc<Semaphore>,
    /// Permits for searches at the same time, which take longer than other reads.
    search_permits: Arc<Semaphore>,
    readers: Readers,
    lock: Arc<Lock>,
    counters: Arc<Counters>,
    /// The data folder of the embedded database; `None` with a PostgreSQL server.
    folder: Option<Folder>,
}

impl Store {
    /// Opens a data folder or creates it, locks it, and migrates its database. Blocks; to be called
    /// once, at the start.
    pub fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        make_folder(dir)?;
        let lock = Arc::new(Lock::take(dir, options.holder, options.since)?);
        let counters = Arc::new(Counters::default());
        let (source, db, folder, upkeep) = match &options.server {
            None => {
                let (folder, db, upkeep) = Folder::open(dir, options.sync)?;
                (Source::Folder(dir.to_owned()), db, Some(folder), Some(upkeep))
            }
            Some(url) => {
                let (server, db) = server::on_own_thread(|| connect(url, options.sync))?;
                (Source::Server(server), db, None, None)
            }
        };
        let (jobs, waiting) = channel();
        let writer = Writer {
            db,
            upkeep,
            lock: Arc::clone(&lock),
            jobs: waiting,
            sessions: log::append::Sessions::default(),
            counters: Arc::clone(&counters),
            deletions: Vec::new(),
        };
        thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(|| writer.run())
            .map_err(|error| OpenError::Io { path: dir.to_owned(), error })?;

        let inner = Inner {
            jobs,
            write_permits: Arc::new(Semaphore::new(PENDING_WRITES)),
            reader_permits: Arc::new(Semaphore::new(READING_THREADS)),
            search_permits: Arc::new(Semaphore::new(SEARCHING_THREADS)),
            readers: Readers::new(source),
            lock,
            counters,
            folder,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Appends records to the log of a session whose head is `expected`. With zero, this creates
    /// the session. When this returns, either all of the records are committed or none is.
    pub async fn append(
        &self,
        session: &SessionId,
        expected: Seq,
        records: Arc<[Record]>,
    ) -> Result<(), AppendError> {
        let _permit = self.write_permit().await?;
        let (done, answer) = oneshot::channel();
        let append = Append { session: session.clone(), expected, records, done };
        self.send(Job::Write(Write { op: WriteOp::Append(append), _permit }));
        answer.await.unwrap_or(Err(AppendError::Closed))
    }

    /// Folds the deltas of up to `max_streams` closed streams, fewer if they are long, and returns
    /// the number of streams. The store also folds when nothing is written.
    pub async fn fold(&self, max_streams: usize) -> Result<usize, Error> {
        let (done, answer) = oneshot::channel();
        self.send(Job::Fold { max_streams, done });
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Writes the pending records, runs a final checkpoint and releases the data folder. Closes all
    /// handles of the store.
    pub async fn close(self) {
        self.inner.write_permits.close();
        self.inner.readers.close();
        let (done, answer) = oneshot::channel();
        self.send(Job::Close { done });
        let _ = answer.await;
    }

    /// Writes the address of this process to the lock file of the data folder.
    pub fn set_address(&self, address: &str) -> Result<(), Error> {
        Ok(self.inner.lock.set_address(address)?)
    }

    /// Creates the reserve of disk space again after it was released on a full disk, if there is
    /// space.
    pub async fn fill_reserve(&self) {
        self.on_reader_thread(|store| {
            if let Some(folder) = &store.inner.folder {
                folder.fill_reserve();
            }
        })
        .await;
    }

    /// Returns an error if the open database files were removed or replaced in the data folder.
    pub fn check_files(&self) -> Result<(), Error> {
        self.inner.folder.as_ref().map_or(Ok(()), Folder::check)
    }

    /// Returns the number of pages written to the write-ahead log since the store was opened.
    pub fn pages_written(&self) -> u64 {
        self.inner.counters.pages()
    }

    /// Returns the counters of the store since it was opened.
    pub fn stats(&self) -> Stats {
        self.inner.counters.stats()
    }

    async fn write_permit(&self) -> Result<OwnedSemaphorePermit, AppendError> {
        let permits = Arc::clone(&self.inner.write_permits);
        permits.acquire_owned().await.map_err(|_| AppendError::Closed)
    }

    fn send(&self, job: Job) {
        // If the writer is gone, so is the job, and with it the other end of its answer.
        let _ = self.inner.jobs.send(job);
    }
}

/// Connects to a PostgreSQL server and migrates its schema. Returns the connection that writes.
fn connect(url: &str, sync: Sync) -> Result<(Arc<Server>, Db), OpenError> {
    let server = Arc::new(Server::parse(url)?);
    server.migrate_blocking()?;
    let role = match sync {
        Sync::Full => Role::Writer,
        Sync::Normal => Role::FastWriter,
    };
    let db = Postgres::connect(Arc::clone(&server), role).map_err(|it| server.failed(it))?;
    Ok((server, Db::Postgres(Box::new(db))))
}

/// Creates the data folder, if there is none, with access for its owner only.
fn make_folder(dir: &Path) -> Result<(), OpenError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| OpenError::Io { path: dir.to_owned(), error })
}
