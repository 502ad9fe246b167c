//! One interface to the databases that can hold a store: SQLite and PostgreSQL.
//!
//! A statement is written once, in the SQL that both understand, with parameters `?1`, `?2`, ...
//! Where they differ, [`Db::pick`] chooses between two texts. Values are numbers, texts and bytes; a
//! truth value is a number, 0 or 1.

mod postgres;
mod value;

use std::ops::Deref;
use std::sync::Arc;

use rusqlite::{Connection, InterruptHandle, params_from_iter};
use tokio_postgres::CancelToken;

use crate::Error;
use crate::server::Server;

pub(crate) use postgres::{Postgres, Role};
pub(crate) use value::{Cell, Column, Param, Value};

/// Builds the parameters of a statement.
macro_rules! params {
    ($($param:expr),* $(,)?) => { &[$(&$param as &dyn $crate::sql::Param),*] };
}
pub(crate) use params;

/// Parameters of a statement; see [`params!`].
pub(crate) type Params<'a> = &'a [&'a dyn Param];

/// A connection to a database. Used by one thread at a time.
pub(crate) enum Db {
    /// Connection to the embedded database.
    Sqlite(Connection),
    /// Connection to a PostgreSQL server.
    Postgres(Box<Postgres>),
}

/// A row of a result.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl Db {
    /// Returns the text of a statement for which the databases need different ones.
    pub(crate) fn pick<'a>(&self, sqlite: &'a str, postgres: &'a str) -> &'a str {
        match self {
            Self::Sqlite(_) => sqlite,
            Self::Postgres(_) => postgres,
        }
    }

    /// Runs a statement and returns the number of rows that it has changed.
    pub(crate) fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize, Error> {
        match self {
            Self::Sqlite(db) => {
                let params = params_from_iter(params.iter().map(|it| it.value()));
                Ok(db.prepare_cached(sql)?.execute(params)?)
            }
            Self::Postgres(db) => db.execute(sql, params),
        }
    }

    /// Runs a statement without waiting for its result. An error appears with the next statement that
    /// has a result, or with the commit. Only within a transaction.
    pub(crate) fn send(&self, sql: &str, params: Params<'_>) -> Result<(), Error> {
        match self {
            Self::Sqlite(_) => self.execute(sql, params).map(drop),
            Self::Postgres(db) => db.send(sql, params),
        }
    }

    /// Passes the rows of a query to `act`, in order, until that returns false.
    pub(crate) fn each(
        &self,
        sql: &str,
        params: Params<'_>,
        mut act: impl FnMut(&Row<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        match self {
            Self::Sqlite(db) => {
                let mut query = db.prepare_cached(sql)?;
                let mut rows = query.query(params_from_iter(params.iter().map(|it| it.value())))?;
                while let Some(row) = rows.next()? {
                    if !act(&Row::Sqlite(row))? {
                        break;
                    }
                }
                Ok(())
            }
            Self::Postgres(db) => {
                for row in &db.query(sql, params)? {
                    if !act(&Row::Postgres(row))? {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// Returns what `read` makes of each row of a query.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        mut read: impl FnMut(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut found = Vec::new();
        self.each(sql, params, |row| {
            found.push(read(row)?);
            Ok(true)
        })?;
        Ok(found)
    }

    /// Returns what `read` makes of the first row of a query; `None` if it has none.
    pub(crate) fn first<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let (mut read, mut found) = (Some(read), None);
        self.each(sql, params, |row| {
            found = read.take().map(|read| read(row)).transpose()?;
            Ok(false)
        })?;
        Ok(found)
    }

    /// Returns what `read` makes of the one row of a query.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(&Row<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.first(sql, params, read)?
            .ok_or_else(|| Error::Damaged(format!("a query has no row: {sql}")))
    }

    /// Returns whether a query has a row.
    pub(crate) fn exists(&self, sql: &str, params: Params<'_>) -> Result<bool, Error> {
        Ok(self.first(sql, params, |_| Ok(()))?.is_some())
    }

    /// Begins a transaction that may write. It is rolled back unless it is committed.
    pub(crate) fn begin_write(&self) -> Result<Tx<'_>, Error> {
        match self {
            Self::Sqlite(db) => db.execute_batch("BEGIN IMMEDIATE")?,
            Self::Postgres(db) => db.begin("BEGIN")?,
        }
        Ok(Tx { db: self, is_open: true })
    }

    /// Begins a transaction that reads the state of one moment.
    pub(crate) fn begin_read(&self) -> Result<Tx<'_>, Error> {
        match self {
            Self::Sqlite(db) => db.execute_batch("BEGIN DEFERRED")?,
            Self::Postgres(db) => db.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?,
        }
        Ok(Tx { db: self, is_open: true })
    }

    /// Rewrites the database without its free space, or at least makes that space usable again.
    pub(crate) fn compact(&self) -> Result<(), Error> {
        match self {
            Self::Sqlite(db) => Ok(db.execute_batch("VACUUM")?),
            Self::Postgres(db) => db.batch("VACUUM"),
        }
    }

    /// Returns what cancels the statement that runs on this connection.
    pub(crate) fn cancel_handle(&self) -> Cancel {
        match self {
            Self::Sqlite(db) => Cancel::Sqlite(db.get_interrupt_handle()),
            Self::Postgres(db) => {
                let (token, server) = db.cancel_token();
                Cancel::Postgres(token, server)
            }
        }
    }

    /// Returns the embedded database; `None` for a PostgreSQL server.
    pub(crate) fn sqlite(&self) -> Option<&Connection> {
        match self {
            Self::Sqlite(db) => Some(db),
            Self::Postgres(_) => None,
        }
    }
}

/// An open transaction of a connection.
pub(crate) struct Tx<'a> {
    db: &'a Db,
    is_open: bool,
}

impl Tx<'_> {
    /// Commits the transaction. When this returns, all of its changes are durable, or none was made.
    pub(crate) fn commit(mut self) -> Result<(), Error> {
        self.end("COMMIT")
    }

    fn end(&mut self, sql: &'static str) -> Result<(), Error> {
        match self.db {
            Db::Sqlite(db) => db.execute_batch(sql)?,
            Db::Postgres(db) => db.end(sql)?,
        }
        self.is_open = false;
        Ok(())
    }
}

impl Deref for Tx<'_> {
    type Target = Db;

    fn deref(&self) -> &Db {
        self.db
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        if self.is_open
            && let Err(error) = self.end("ROLLBACK")
        {
            tracing::debug!(%error, "a transaction could not be rolled back");
        }
    }
}

impl Row<'_> {
    /// Returns the value of a column. A value of another type is damage.
    pub(crate) fn get<T: Column>(&self, column: usize) -> Result<T, Error> {
        let cell = self.cell(column)?;
        T::from_cell(cell)
            .ok_or_else(|| Error::Damaged(format!("column {column} has a wrong type")))
    }

    /// Returns the value of a column without copying it.
    pub(crate) fn cell(&self, column: usize) -> Result<Cell<'_>, Error> {
        match self {
            Self::Sqlite(row) => Ok(Cell::from(row.get_ref(column)?)),
            Self::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    /// Returns the text of a column without copying it.
    pub(crate) fn text(&self, column: usize) -> Result<&str, Error> {
        self.cell(column)?
            .text()
            .ok_or_else(|| Error::Damaged(format!("column {column} is no text")))
    }
}

/// Cancels the statement that runs on a connection, from another thread.
pub(crate) enum Cancel {
    Sqlite(InterruptHandle),
    Postgres(CancelToken, Arc<Server>),
}

impl Cancel {
    pub(crate) fn cancel(self) {
        match self {
            Self::Sqlite(handle) => handle.interrupt(),
            Self::Postgres(token, server) => server.cancel(token),
        }
    }
}
