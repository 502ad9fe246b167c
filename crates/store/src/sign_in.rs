//! Who is signed in: hashes of their tokens, and since when. Whose they are is the caller's to know.

use rusqlite::params;
use transcript::Millis;

use crate::{AppendError, Error, Store};

impl Store {
    /// One that is there already gets the new time.
    pub async fn add_sign_in(&self, hash: [u8; 32], at: Millis) -> Result<(), AppendError> {
        self.write(move |db| {
            db.prepare_cached("INSERT OR REPLACE INTO sign_ins (hash, at) VALUES (?1, ?2)")?
                .execute(params![hash, at.0])?;
            Ok(())
        })
        .await
    }

    /// Oldest first.
    pub async fn sign_ins(&self) -> Result<Vec<([u8; 32], Millis)>, Error> {
        self.read_db(|db| {
            let mut find = db.prepare_cached("SELECT hash, at FROM sign_ins ORDER BY at, hash")?;
            let rows = find.query_map([], |row| Ok((row.get(0)?, Millis(row.get(1)?))))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub async fn remove_sign_in(&self, hash: [u8; 32]) -> Result<(), AppendError> {
        self.write(move |db| {
            db.prepare_cached("DELETE FROM sign_ins WHERE hash = ?1")?.execute(params![hash])?;
            Ok(())
        })
        .await
    }

    pub async fn remove_sign_ins_before(&self, at: Millis) -> Result<(), AppendError> {
        self.write(move |db| {
            db.prepare_cached("DELETE FROM sign_ins WHERE at < ?1")?.execute(params![at.0])?;
            Ok(())
        })
        .await
    }
}
