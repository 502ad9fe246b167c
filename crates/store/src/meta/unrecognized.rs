//! Counts of program messages that Callboard does not know. New program versions show here first.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::files::connection;
use crate::sql::{Db, Row, params};
use crate::{AppendError, Error, Store};

/// Number of messages of an unknown kind that a program of one version has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrecognized {
    /// Agent whose program has sent the messages.
    pub agent: String,
    /// Version of the program; empty for counts of several versions.
    pub version: String,
    /// Name that the program gives to the kind, or `other` for counts of several kinds.
    pub kind: String,
    /// Number of messages of the kind.
    pub n: u64,
}

/// Maximum number of kinds that are counted for one version of one agent. The names come from
/// outside, so further kinds are counted together.
const MAX_KINDS: i64 = 50;
/// Maximum number of rows in the table of counts. Versions come from outside too, so further kinds
/// are counted by agent alone.
const MAX_ROWS: i64 = 500;
const OTHER: &str = "other";

impl Store {
    /// Adds to the stored counts of unrecognized messages.
    pub async fn count_unrecognized(&self, found: Vec<Unrecognized>) -> Result<(), AppendError> {
        self.write(move |db| found.iter().try_for_each(|it| add(db, it))).await
    }

    /// Returns the stored counts of unrecognized messages, largest first.
    pub async fn unrecognized(&self) -> Result<Vec<Unrecognized>, Error> {
        self.read_db(list).await
    }
}

/// Returns the stored counts of unrecognized messages in a data folder that may be in use. Empty if
/// there is no database. Blocks; to be used without a runtime.
pub fn unrecognized_in(dir: &Path) -> Result<Vec<Unrecognized>, Error> {
    let file = connection::file(dir);
    if !file.exists() {
        return Ok(Vec::new());
    }
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // An older version has not counted.
    if db.table_exists(None, "unrecognized")? { list(&Db::Sqlite(db)) } else { Ok(Vec::new()) }
}

fn add(db: &Db, found: &Unrecognized) -> Result<(), Error> {
    let Unrecognized { agent, version, kind, n } = found;
    // All there are, those of this version, and this one.
    let (all, of_version, is_known): (i64, i64, bool) = db.one(
        "SELECT count(*), count(*) FILTER (WHERE (agent, version) = (?1, ?2)),
                    count(*) FILTER (WHERE (agent, version, kind) = (?1, ?2, ?3))
             FROM unrecognized",
        params![agent, version, kind],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let is_full = !is_known && of_version >= MAX_KINDS;
    let (version, kind) = match is_known || all < MAX_ROWS {
        true => (version.as_str(), if is_full { OTHER } else { kind }),
        false => ("", OTHER),
    };
    db.execute(
        "INSERT INTO unrecognized (agent, version, kind, n) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (agent, version, kind) DO UPDATE SET n = unrecognized.n + excluded.n",
        params![agent, version, kind, n.cast_signed()],
    )?;
    Ok(())
}

fn list(db: &Db) -> Result<Vec<Unrecognized>, Error> {
    let row = |row: &Row<'_>| {
        Ok(Unrecognized {
            agent: row.get(0)?,
            version: row.get(1)?,
            kind: row.get(2)?,
            n: row.get::<i64>(3)?.cast_unsigned(),
        })
    };
    db.all(
        "SELECT agent, version, kind, n FROM unrecognized ORDER BY n DESC, agent, version, kind",
        params![],
        row,
    )
}
