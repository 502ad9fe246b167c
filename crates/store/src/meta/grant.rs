//! Grants: what users have always allowed.

use transcript::Millis;

use crate::sql::{Db, Row, params};
use crate::{AppendError, Error, Store};

/// A stored "always allow". The store does not interpret the calls that it covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Id of the grant, by which it can be removed.
    pub id: String,
    /// Tool calls that the grant covers, as the caller describes them.
    pub covers: String,
    /// Time of the person's decision.
    pub at: Millis,
}

impl Store {
    /// Stores a grant, unless there is one that covers the same tool calls.
    pub async fn add_grant(&self, grant: Grant) -> Result<(), AppendError> {
        self.write(move |db| {
            db.execute(
                "INSERT INTO grants (id, covers, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                params![grant.id, grant.covers, grant.at.0],
            )?;
            Ok(())
        })
        .await
    }

    /// Returns whether there is a grant that covers exactly these tool calls.
    pub async fn is_granted(&self, covers: &str) -> Result<bool, Error> {
        let covers = covers.to_owned();
        self.read_db(move |db| is_granted(db, &covers)).await
    }

    /// Returns up to `limit` grants, newest first, and the number of all grants.
    pub async fn newest_grants(&self, limit: usize) -> Result<(Vec<Grant>, i64), Error> {
        self.read_db(move |db| {
            let sql = "SELECT id, covers, at FROM grants ORDER BY at DESC, id LIMIT ?1";
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let grants = db.all(sql, params![limit], grant)?;
            Ok((grants, db.one("SELECT count(*) FROM grants", params![], |row| row.get(0))?))
        })
        .await
    }

    /// Returns all grants, oldest first.
    pub async fn grants(&self) -> Result<Vec<Grant>, Error> {
        self.read_db(|db| {
            db.all("SELECT id, covers, at FROM grants ORDER BY at, id", params![], grant)
        })
        .await
    }

    /// Removes a grant by its id and returns whether it existed.
    pub async fn remove_grant(&self, id: &str) -> Result<bool, AppendError> {
        let id = id.to_owned();
        self.write(move |db| {
            let removed = db.execute("DELETE FROM grants WHERE id = ?1", params![&id])?;
            Ok(removed > 0)
        })
        .await
    }

    /// Removes the grant that covers exactly these tool calls, and returns whether it existed.
    pub async fn remove_grant_of(&self, covers: &str) -> Result<bool, AppendError> {
        let covers = covers.to_owned();
        self.write(move |db| {
            Ok(db.execute("DELETE FROM grants WHERE covers = ?1", params![&covers])? > 0)
        })
        .await
    }
}

pub(crate) fn is_granted(db: &Db, covers: &str) -> Result<bool, Error> {
    db.exists("SELECT 1 FROM grants WHERE covers = ?1", params![covers])
}

fn grant(row: &Row<'_>) -> Result<Grant, Error> {
    Ok(Grant { id: row.get(0)?, covers: row.get(1)?, at: Millis(row.get(2)?) })
}
