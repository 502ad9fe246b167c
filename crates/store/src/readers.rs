//! The pool of connections that only read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Error;
use crate::files::connection;
use crate::search::interrupt::Interrupt;
use crate::server::Server;
use crate::sql::{Db, Postgres, Role};

/// Maximum number of idle connections in the pool of readers. More reads may run at the same time;
/// their connections are closed afterwards.
const IDLE_READERS: usize = 8;

/// Pool of connections that only read. Each read is one transaction, so its result is consistent.
pub(crate) struct Readers {
    source: Source,
    /// Idle connections; `None` once the store is closed. Locked for a push or a pop, never during
    /// a read.
    idle: Mutex<Option<Vec<Db>>>,
}

/// Where the store is.
#[derive(Clone)]
pub(crate) enum Source {
    /// Data folder with the embedded database.
    Folder(PathBuf),
    /// PostgreSQL server.
    Server(Arc<Server>),
}

impl Readers {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, idle: Mutex::new(Some(Vec::new())) }
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Db) -> Result<T, Error>) -> Result<T, Error> {
        let db = match self.idle(|idle| idle.pop())? {
            Some(db) => db,
            None => self.open()?,
        };
        let found = db.begin_read().and_then(|tx| read(&tx));
        let found = found.map_err(|error| self.in_file(error))?;
        // Closed meanwhile: the connection is dropped, and what was read still holds.
        let _ = self.idle(|idle| (idle.len() < IDLE_READERS).then(|| idle.push(db)));
        Ok(found)
    }

    /// Runs a read like [`Readers::read`], but interrupts it when the caller is gone.
    pub(crate) fn read_until<T>(
        &self,
        interrupt: &Interrupt,
        read: impl FnOnce(&Db) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.read(|db| {
            // SQLite drops an interrupt while no statement is running. This one runs during the whole read.
            let running = db.sqlite().map(|db| db.prepare_cached("SELECT 1 UNION ALL SELECT 2"));
            let mut running = running.transpose()?;
            let mut rows = running.as_mut().map(|it| it.query([])).transpose()?;
            if let Some(rows) = &mut rows {
                rows.next()?;
            }
            interrupt.begin(db)?;
            let found = read(db);
            interrupt.end();
            found
        })
    }

    /// Opens a connection outside the pool, for work that takes long or must not run in a
    /// transaction.
    pub(crate) fn apart(&self) -> Result<Db, Error> {
        self.idle(|_| ())?;
        self.open()
    }

    /// Returns the data folder of the embedded database.
    pub(crate) fn dir(&self) -> Option<&Path> {
        match &self.source {
            Source::Folder(dir) => Some(dir),
            Source::Server(_) => None,
        }
    }

    pub(crate) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn idle<T>(&self, act: impl FnOnce(&mut Vec<Db>) -> T) -> Result<T, Error> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.as_mut().map(act).ok_or(Error::Closed)
    }

    fn open(&self) -> Result<Db, Error> {
        match &self.source {
            Source::Folder(dir) => connection::reader(dir).map(Db::Sqlite),
            Source::Server(server) => {
                let db = Postgres::connect(Arc::clone(server), Role::Reader)?;
                Ok(Db::Postgres(Box::new(db)))
            }
        }
    }

    fn in_file(&self, error: Error) -> Error {
        match self.dir() {
            Some(dir) => error.in_file(|| connection::file(dir)),
            None => error,
        }
    }
}
