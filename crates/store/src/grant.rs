//! What people have allowed for good. What a grant covers is the caller's to know.

use rusqlite::{OptionalExtension, params};
use transcript::Millis;

use crate::{AppendError, Error, Store};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub id: String,
    pub covers: String,
    pub at: Millis,
}

impl Store {
    /// What is granted already stays as it was granted first.
    pub async fn add_grant(&self, grant: Grant) -> Result<(), AppendError> {
        self.write(move |db| {
            db.prepare_cached("INSERT OR IGNORE INTO grants (id, covers, at) VALUES (?1, ?2, ?3)")?
                .execute(params![grant.id, grant.covers, grant.at.0])?;
            Ok(())
        })
        .await
    }

    pub fn is_granted(&self, covers: &str) -> Result<bool, Error> {
        self.inner.readers.read(|db| {
            let mut find = db.prepare_cached("SELECT 1 FROM grants WHERE covers = ?1")?;
            Ok(find.query_row([covers], |_| Ok(())).optional()?.is_some())
        })
    }

    /// Oldest first.
    pub fn grants(&self) -> Result<Vec<Grant>, Error> {
        self.inner.readers.read(|db| {
            let mut find =
                db.prepare_cached("SELECT id, covers, at FROM grants ORDER BY at, id")?;
            let grant = |row: &rusqlite::Row<'_>| {
                Ok(Grant { id: row.get(0)?, covers: row.get(1)?, at: Millis(row.get(2)?) })
            };
            Ok(find.query_map([], grant)?.collect::<Result<_, _>>()?)
        })
    }

    /// False if there is no such grant.
    pub async fn remove_grant(&self, id: &str) -> Result<bool, AppendError> {
        let id = id.to_owned();
        self.write(move |db| {
            let removed = db.prepare_cached("DELETE FROM grants WHERE id = ?1")?.execute([&id])?;
            Ok(removed > 0)
        })
        .await
    }
}
