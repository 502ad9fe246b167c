//! A connection to a PostgreSQL server for code that blocks.
//!
//! A connection has a runtime of its own, which runs while the calling thread waits for an answer.
//! Statements whose result nobody needs are collected and sent together with the next one that has a
//! result, so that a transaction costs few round trips.

use std::cell::{Cell as StdCell, RefCell};
use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use futures_util::future::{join, try_join_all};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{CancelToken, Client, Row, Statement};

use super::{Params, Value};
use crate::Error;
use crate::server::Server;

/// Number of prepared statements with which a connection forgets them all.
const STATEMENTS: usize = 512;

/// A connection to a PostgreSQL server.
pub(crate) struct Postgres {
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
    server: Arc<Server>,
    role: Role,
    link: RefCell<Link>,
    /// Statements that were not sent yet.
    queued: RefCell<Vec<Queued>>,
    /// Whether a transaction was begun.
    in_transaction: StdCell<bool>,
}

/// Use of a connection, which decides how it is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Writes, and waits until commits are durable.
    Writer,
    /// Writes, and does not wait for the disk.
    FastWriter,
    /// Reads.
    Reader,
}

struct Link {
    client: Client,
    statements: HashMap<String, Statement>,
}

/// A statement that waits to be sent.
enum Queued {
    Batch(&'static str),
    Statement(Statement, Vec<Owned>),
}

/// A parameter of a statement that waits to be sent.
#[derive(Debug)]
enum Owned {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Postgres {
    /// Connects to the server.
    pub(crate) fn connect(server: Arc<Server>, role: Role) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let link = runtime.block_on(Link::open(&server, role))?;
        Ok(Self {
            runtime: Some(runtime),
            server,
            role,
            link: RefCell::new(link),
            queued: RefCell::default(),
            in_transaction: StdCell::new(false),
        })
    }

    /// Returns what cancels the statement that runs on this connection.
    pub(crate) fn cancel_token(&self) -> (CancelToken, Arc<Server>) {
        (self.link.borrow().client.cancel_token(), Arc::clone(&self.server))
    }

    /// Runs statements without parameters and results.
    pub(crate) fn batch(&self, sql: &str) -> Result<(), Error> {
        let link = self.link.borrow();
        self.block_on(async { Ok(link.client.batch_execute(sql).await?) })
    }

    /// Begins a transaction, with the first statement that is sent. A lost connection is made again.
    pub(crate) fn begin(&self, sql: &'static str) -> Result<(), Error> {
        if self.link.borrow().client.is_closed() {
            let link = self.block_on(Link::open(&self.server, self.role))?;
            self.link.replace(link);
        }
        self.queued.borrow_mut().clear();
        self.queued.borrow_mut().push(Queued::Batch(sql));
        self.in_transaction.set(true);
        Ok(())
    }

    /// Ends a transaction, after the statements that were not sent yet.
    pub(crate) fn end(&self, sql: &'static str) -> Result<(), Error> {
        let is_rollback = sql == "ROLLBACK";
        if is_rollback {
            let is_sent = !matches!(self.queued.borrow().first(), Some(Queued::Batch(_)));
            self.queued.borrow_mut().clear();
            self.in_transaction.set(false);
            return if is_sent { self.batch(sql) } else { Ok(()) };
        }
        let link = self.link.borrow();
        let ended =
            self.after_queued(&link.client, async { Ok(link.client.batch_execute(sql).await?) });
        self.in_transaction.set(false);
        drop(link);
        if ended.is_err() {
            // The server has rolled back, unless the connection is lost.
            let _ = self.batch("ROLLBACK");
        }
        ended
    }

    pub(crate) fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize, Error> {
        let statement = self.prepare(sql)?;
        let link = self.link.borrow();
        let values = params.iter().map(|it| it.value());
        let count = self.after_queued(&link.client, async {
            Ok(link.client.execute_raw(&statement, values).await?)
        })?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Sends a statement with the next one that has a result.
    pub(crate) fn send(&self, sql: &str, params: Params<'_>) -> Result<(), Error> {
        let statement = self.prepare(sql)?;
        let values = params.iter().map(|it| Owned::from(it.value())).collect();
        self.queued.borrow_mut().push(Queued::Statement(statement, values));
        match self.in_transaction.get() {
            true => Ok(()),
            false => {
                let link = self.link.borrow();
                self.after_queued(&link.client, async { Ok(()) })
            }
        }
    }

    pub(crate) fn query(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(sql)?;
        let link = self.link.borrow();
        let values: Vec<Value<'_>> = params.iter().map(|it| it.value()).collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|it| it as _).collect();
        self.after_queued(&link.client, async { Ok(link.client.query(&statement, &values).await?) })
    }

    fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.link.borrow().statements.get(sql) {
            return Ok(statement.clone());
        }
        let mut link = self.link.borrow_mut();
        let statement = self.block_on(async { Ok(link.client.prepare(&translate(sql)).await?) })?;
        if link.statements.len() >= STATEMENTS {
            link.statements.clear();
        }
        link.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Runs the statements that wait, then `last`; all are sent before an answer is awaited.
    fn after_queued<T>(
        &self,
        client: &Client,
        last: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let queued = self.queued.take();
        self.block_on(async {
            let queued = try_join_all(queued.iter().map(|it| it.run(client)));
            let (queued, last) = join(queued, last).await;
            // Where one fails, those behind it fail because of it.
            queued?;
            last
        })
    }

    fn block_on<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            None => Err(Error::Closed),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A runtime that is dropped otherwise must not be dropped by an asynchronous task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Link {
    async fn open(server: &Server, role: Role) -> Result<Self, Error> {
        let client = server.connect().await?;
        client.batch_execute(role.setup()).await?;
        Ok(Self { client, statements: HashMap::new() })
    }
}

impl Role {
    fn setup(self) -> &'static str {
        match self {
            Self::Writer => "SET synchronous_commit = on",
            Self::FastWriter => "SET synchronous_commit = off",
            Self::Reader => "SET default_transaction_read_only = on",
        }
    }
}

impl Queued {
    async fn run(&self, client: &Client) -> Result<(), Error> {
        match self {
            Self::Batch(sql) => client.batch_execute(sql).await?,
            Self::Statement(statement, values) => {
                client.execute_raw(statement, values.iter().map(Owned::value)).await?;
            }
        }
        Ok(())
    }
}

impl Owned {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Int(it) => Value::Int(*it),
            Self::Real(it) => Value::Real(*it),
            Self::Text(it) => Value::Text(it),
            Self::Bytes(it) => Value::Bytes(it),
        }
    }
}

impl From<Value<'_>> for Owned {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(it) => Self::Int(it),
            Value::Real(it) => Self::Real(it),
            Value::Text(it) => Self::Text(it.to_owned()),
            Value::Bytes(it) => Self::Bytes(it.to_vec()),
        }
    }
}

/// Returns a statement in PostgreSQL's SQL: parameters are `$1` instead of `?1`, and the planner needs
/// no index to be named.
fn translate(sql: &str) -> String {
    let mut translated = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find(" INDEXED BY ") {
        translated.push_str(&rest[..at]);
        let name = &rest[at + " INDEXED BY ".len()..];
        rest = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    }
    translated.push_str(rest);
    translated.replace('?', "$")
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match *self {
            Self::Null => return Ok(IsNull::Yes),
            Self::Int(it) => match *ty {
                Type::INT2 => out.put_i16(i16::try_from(it)?),
                Type::INT4 => out.put_i32(i32::try_from(it)?),
                Type::FLOAT8 => out.put_f64(it as f64),
                _ => out.put_i64(it),
            },
            Self::Real(it) => out.put_f64(it),
            Self::Text(it) => out.put_slice(it.as_bytes()),
            Self::Bytes(it) => out.put_slice(it),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(match *ty {
            Type::INT8 => Self::Int(i64::from_be_bytes(raw.try_into()?)),
            Type::INT4 => Self::Int(i32::from_be_bytes(raw.try_into()?).into()),
            Type::INT2 => Self::Int(i16::from_be_bytes(raw.try_into()?).into()),
            Type::BOOL => Self::Int((raw != [0]).into()),
            Type::FLOAT8 => Self::Real(f64::from_be_bytes(raw.try_into()?)),
            Type::BYTEA => Self::Bytes(raw),
            _ => Self::Text(std::str::from_utf8(raw)?),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
