//! Settings, and sign-ins: hashes of their tokens, and their times.

use transcript::Millis;

use crate::sql::params;
use crate::{AppendError, Error, Store};

impl Store {
    /// Returns the value of a setting; `None` if it is not set.
    pub async fn setting(&self, name: &str) -> Result<Option<String>, Error> {
        let name = name.to_owned();
        self.read_db(move |db| {
            db.first("SELECT value FROM settings WHERE name = ?1", params![name], |row| row.get(0))
        })
        .await
    }

    /// Stores the value of a setting, which the store does not interpret.
    pub async fn set_setting(&self, name: &str, value: &str) -> Result<(), AppendError> {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.write(move |db| {
            db.execute(
                "INSERT INTO settings (name, value) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                params![name, value],
            )?;
            Ok(())
        })
        .await
    }

    /// Stores a sign-in by the hash of its token. An existing one gets the new time.
    pub async fn add_sign_in(&self, hash: [u8; 32], at: Millis) -> Result<(), AppendError> {
        self.write(move |db| {
            db.execute(
                "INSERT INTO sign_ins (hash, at) VALUES (?1, ?2)
                 ON CONFLICT (hash) DO UPDATE SET at = excluded.at",
                params![hash, at.0],
            )?;
            Ok(())
        })
        .await
    }

    /// Returns the hashes and times of all sign-ins, oldest first.
    pub async fn sign_ins(&self) -> Result<Vec<([u8; 32], Millis)>, Error> {
        self.read_db(|db| {
            db.all("SELECT hash, at FROM sign_ins ORDER BY at, hash", params![], |row| {
                Ok((row.get(0)?, Millis(row.get(1)?)))
            })
        })
        .await
    }

    /// Removes the sign-in with a token hash.
    pub async fn remove_sign_in(&self, hash: [u8; 32]) -> Result<(), AppendError> {
        self.write(move |db| {
            db.execute("DELETE FROM sign_ins WHERE hash = ?1", params![hash])?;
            Ok(())
        })
        .await
    }

    /// Removes the sign-ins whose time is before `at`.
    pub async fn remove_sign_ins_before(&self, at: Millis) -> Result<(), AppendError> {
        self.write(move |db| {
            db.execute("DELETE FROM sign_ins WHERE at < ?1", params![at.0])?;
            Ok(())
        })
        .await
    }
}
