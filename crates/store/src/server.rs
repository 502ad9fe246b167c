//! The PostgreSQL server that holds a store: its address, TLS, and the schema.

mod tls;

use std::fmt;
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{CancelToken, Client, Config, NoTls};

use crate::{Error, OpenError};

/// Migration n brings the schema from version n - 1 to n. Released ones never change.
const MIGRATIONS: &[&str] = &[include_str!("server/schema.sql")];
/// Key of the advisory lock under which the schema is migrated.
const MIGRATION_LOCK: i64 = 0x0063_616c_6c62_6f61;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Address of a PostgreSQL server, and how to connect to it.
pub(crate) struct Server {
    config: Config,
    /// `None` for a connection without TLS.
    tls: Option<tls::Tls>,
}

impl Server {
    /// Parses a URL such as `postgres://user:password@host/database`.
    pub(crate) fn parse(url: &str) -> Result<Self, OpenError> {
        // The certificate is always checked where TLS is used, so these three are the same.
        let url = url.replace("sslmode=verify-full", "sslmode=require");
        let url = url.replace("sslmode=verify-ca", "sslmode=require");
        let mut config: Config = url.parse().map_err(|_| OpenError::Url)?;
        if config.get_hosts().is_empty() {
            return Err(OpenError::Url);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.application_name("callboard");
        let is_local = config.get_hosts().iter().all(is_local);
        let uses_tls = match config.get_ssl_mode() {
            SslMode::Disable => false,
            SslMode::Require => true,
            _ => !is_local,
        };
        config.ssl_mode(if uses_tls { SslMode::Require } else { SslMode::Disable });
        let tls = uses_tls.then(tls::Tls::new).transpose()?;
        Ok(Self { config, tls })
    }

    /// Connects, and lets the connection run in the current runtime.
    pub(crate) async fn connect(&self) -> Result<Client, Error> {
        Ok(match self.tls.clone() {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls).await?;
                tokio::spawn(connection);
                client
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                tokio::spawn(connection);
                client
            }
        })
    }

    /// Asks the server to cancel the statement of another connection. Does not wait for it.
    pub(crate) fn cancel(&self, token: CancelToken) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        match self.tls.clone() {
            Some(tls) => drop(runtime.spawn(async move { token.cancel_query(tls).await })),
            None => drop(runtime.spawn(async move { token.cancel_query(NoTls).await })),
        }
    }

    /// Brings the schema of the database to this version, on a thread that may block.
    pub(crate) fn migrate_blocking(&self) -> Result<(), OpenError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::from);
        let runtime = runtime.map_err(|error| self.failed(error))?;
        runtime.block_on(self.migrate()).map_err(|error| match error {
            OpenError::Db(error) => OpenError::Server { server: self.to_string(), error },
            error => error,
        })
    }

    #[cfg(test)]
    pub(crate) fn run(&self, sql: &str) {
        let work = || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                self.connect().await.unwrap().batch_execute(sql).await.unwrap()
            });
        };
        on_own_thread(work);
    }

    /// Returns the error of a connection that could not be made.
    pub(crate) fn failed(&self, error: Error) -> OpenError {
        match error {
            Error::Db(error) => OpenError::Server { server: self.to_string(), error },
            error => OpenError::Tls(error.to_string()),
        }
    }

    async fn migrate(&self) -> Result<(), OpenError> {
        let mut client = self.connect().await.map_err(|error| self.failed(error))?;
        let encoding = client.query_one("SHOW server_encoding", &[]).await?;
        let encoding: String = encoding.get(0);
        if encoding != "UTF8" {
            return Err(OpenError::Encoding { server: self.to_string(), encoding });
        }
        let tx = client.transaction().await?;
        tx.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await?;
        tx.batch_execute(
            "CREATE TABLE IF NOT EXISTS schema (version bigint NOT NULL, min_reader bigint NOT NULL)",
        )
        .await?;
        let found = tx.query_opt("SELECT version, min_reader FROM schema", &[]).await?;
        let (found, min_reader): (i64, i64) = found.map_or((0, 0), |it| (it.get(0), it.get(1)));
        let known = MIGRATIONS.len() as i64;
        if min_reader > known {
            return Err(OpenError::TooNew { found, known });
        }
        for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
            tx.batch_execute(migration).await?;
        }
        if found < known {
            tx.execute("DELETE FROM schema", &[]).await?;
            tx.execute("INSERT INTO schema (version, min_reader) VALUES ($1, $1)", &[&known])
                .await?;
        }
        tx.commit().await?;
        Ok(())
    }
}

/// Names the server and the database, without user and password.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.config.get_ports();
        for (idx, host) in self.config.get_hosts().iter().enumerate() {
            let port = ports.get(idx).or_else(|| ports.first()).copied().unwrap_or(5432);
            let comma = if idx > 0 { "," } else { "" };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}:{port}")?,
                #[cfg(unix)]
                Host::Unix(folder) => write!(f, "{comma}{}:{port}", folder.display())?,
            }
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or("postgres"))
    }
}

/// Runs work that blocks on a thread of its own, because the caller's may run asynchronous tasks.
pub(crate) fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}
