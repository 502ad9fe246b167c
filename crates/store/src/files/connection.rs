//! Connections to the embedded database: how each kind is set up.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use transcript::Seq;

use crate::files::lock;
use crate::{Error, OpenError, Sync};

const FILE: &str = "callboard.db";
/// Name of the file that a server writes to the data folder after it has opened the store.
const SERVER_FILE: &str = "server.json";

/// Migrations of the database schema. Migration n leads from version n - 1 to n; released ones
/// never change.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
];

const READER_MMAP: i64 = 64 * 1024 * 1024;
/// Page cache of a reader's connection. The negative number is in kilobytes. The file is
/// memory-mapped, so a small cache suffices.
const READER_CACHE: i64 = -256;
const STATEMENTS: usize = 128;

/// Maximum time that a checkpoint waits for readers. The writer waits for the checkpoint.
const CHECKPOINT_PATIENCE: Duration = Duration::from_millis(100);
const WRITER_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn file(dir: &Path) -> PathBuf {
    dir.join(FILE)
}

pub(crate) fn wal_file(dir: &Path) -> PathBuf {
    dir.join(format!("{FILE}-wal"))
}

/// Opens the only connection that writes. Creates the database file if there is none, and migrates
/// its schema.
pub(crate) fn writer(dir: &Path, sync: Sync) -> Result<Connection, OpenError> {
    refuse_emptied(dir)?;
    make_private(&file(dir))?;
    let mut db = Connection::open_with_flags(
        file(dir),
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    refuse_newer(&db)?;
    db.busy_timeout(WRITER_PATIENCE)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", sync.pragma())?;
    // Checkpoints run in a thread of their own.
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    // What is deleted is overwritten.
    db.pragma_update(None, "secure_delete", true)?;
    migrate(&mut db)?;
    #[cfg(test)]
    crate::tests::embedded::plans::watch(&mut db);
    Ok(db)
}

pub(crate) fn checkpointer(dir: &Path, sync: Sync) -> Result<Connection, OpenError> {
    let db = Connection::open_with_flags(
        file(dir),
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.busy_timeout(CHECKPOINT_PATIENCE)?;
    db.pragma_update(None, "synchronous", sync.pragma())?;
    Ok(db)
}

/// Opens a connection that only reads.
pub(crate) fn reader(dir: &Path) -> Result<Connection, Error> {
    #[cfg_attr(not(test), expect(unused_mut, reason = "tests watch it"))]
    let mut db = Connection::open_with_flags(
        file(dir),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    #[cfg(test)]
    crate::tests::embedded::plans::watch(&mut db);
    db.busy_timeout(WRITER_PATIENCE)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    db.pragma_update(None, "mmap_size", READER_MMAP)?;
    db.pragma_update(None, "cache_size", READER_CACHE)?;
    Ok(db)
}

/// Returns the size of the database in bytes, without its free pages.
pub(crate) fn live_bytes(db: &Connection) -> Result<i64, Error> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok((number("page_count")? - number("freelist_count")?) * number("page_size")?)
}

/// Creates the database file, if there is none, with access for its owner only. SQLite gives its
/// other files the same mode.
fn make_private(path: &Path) -> Result<(), OpenError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    lock::private(&mut options);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(OpenError::Io { path: path.to_owned(), error }),
    }
}

/// Returns an error for an empty database file in a data folder that was in use. Other files show
/// the use: the write-ahead log and the server's file are written after the database.
pub(crate) fn refuse_emptied(dir: &Path) -> Result<(), OpenError> {
    let size = |path: &Path| std::fs::metadata(path).map(|it| it.len()).ok();
    let (file, wal, server) = (file(dir), wal_file(dir), dir.join(SERVER_FILE));
    let database = size(&file);
    let used = [wal, server].into_iter().find(|it| size(it).is_some_and(|it| it > 0));
    match (database, used) {
        (Some(0), Some(other)) => Err(OpenError::Emptied { file, other }),
        (None, Some(other)) => {
            let (file, other) = (file.display(), other.display());
            tracing::warn!(%file, %other, "the folder was in use, but has no database: creating one");
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns whether the schema of the database is that of this version.
pub(crate) fn is_current(db: &Connection) -> Result<bool, rusqlite::Error> {
    Ok(version(db)? == MIGRATIONS.len() as i64)
}

/// Returns an error if the schema of the database is newer. Called before anything else, so that a
/// newer database stays unchanged.
fn refuse_newer(db: &Connection) -> Result<(), OpenError> {
    let (found, known) = (version(db)?, MIGRATIONS.len() as i64);
    if found > known {
        return Err(OpenError::TooNew { found, known });
    }
    Ok(())
}

fn migrate(db: &mut Connection) -> Result<(), OpenError> {
    let done = usize::try_from(version(db)?).unwrap_or(0);
    for (n, migration) in MIGRATIONS.iter().enumerate().skip(done) {
        let tx = db.transaction()?;
        tx.execute_batch(migration)?;
        tx.pragma_update(None, "user_version", n as i64 + 1)?;
        tx.commit()?;
    }
    Ok(())
}

fn version(db: &Connection) -> Result<i64, rusqlite::Error> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Converts a sequence number for SQLite, whose integers are signed. A number that no log can reach
/// becomes the largest integer.
pub(crate) fn int(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

pub(crate) fn seq(int: i64) -> Seq {
    Seq(u64::try_from(int).unwrap_or(0))
}
