//! How often a program has said something that we could not read: a new version of it that says more
//! than we know shows here first.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use crate::{AppendError, Error, Store, connection};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrecognized {
    pub agent: String,
    pub version: String,
    /// What the program calls it.
    pub kind: String,
    pub n: u64,
}

/// Kinds beyond this many are counted together: their names come from outside.
const MAX_KINDS: i64 = 500;

impl Store {
    /// Adds to what was counted before.
    pub async fn count_unrecognized(&self, found: Vec<Unrecognized>) -> Result<(), AppendError> {
        self.write(move |db| found.iter().try_for_each(|it| add(db, it))).await
    }

    /// The most frequent first.
    pub fn unrecognized(&self) -> Result<Vec<Unrecognized>, Error> {
        self.inner.readers.read(|db| list(db))
    }
}

/// The same from a folder that nobody, or somebody else, has opened; empty if there is none yet.
pub fn unrecognized_in(dir: &Path) -> Result<Vec<Unrecognized>, Error> {
    let file = connection::file(dir);
    if !file.exists() {
        return Ok(Vec::new());
    }
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // An older version has not counted.
    if db.table_exists(None, "unrecognized")? { list(&db) } else { Ok(Vec::new()) }
}

fn add(db: &Connection, found: &Unrecognized) -> Result<(), Error> {
    let Unrecognized { agent, version, kind, n } = found;
    let n_kinds: i64 = db.query_row("SELECT count(*) FROM unrecognized", [], |row| row.get(0))?;
    let kind = if n_kinds < MAX_KINDS { kind } else { "other" };
    db.prepare_cached(
        "INSERT INTO unrecognized (agent, version, kind, n) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET n = n + excluded.n",
    )?
    .execute(params![agent, version, kind, n.cast_signed()])?;
    Ok(())
}

fn list(db: &Connection) -> Result<Vec<Unrecognized>, Error> {
    let mut find = db.prepare_cached(
        "SELECT agent, version, kind, n FROM unrecognized ORDER BY n DESC, agent, version, kind",
    )?;
    let row = |row: &rusqlite::Row<'_>| {
        Ok(Unrecognized {
            agent: row.get(0)?,
            version: row.get(1)?,
            kind: row.get(2)?,
            n: row.get::<_, i64>(3)?.cast_unsigned(),
        })
    };
    Ok(find.query_map([], row)?.collect::<Result<_, _>>()?)
}
