//! What people have set. What the values mean is the caller's to know.

use rusqlite::{OptionalExtension, params};

use crate::{AppendError, Error, Store};

impl Store {
    /// Returns the value of a setting.
    pub async fn setting(&self, name: &str) -> Result<Option<String>, Error> {
        let name = name.to_owned();
        self.read_db(move |db| {
            let mut find = db.prepare_cached("SELECT value FROM settings WHERE name = ?1")?;
            Ok(find.query_row([name], |row| row.get(0)).optional()?)
        })
        .await
    }

    pub async fn set_setting(&self, name: &str, value: &str) -> Result<(), AppendError> {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.write(move |db| {
            db.prepare_cached("INSERT OR REPLACE INTO settings (name, value) VALUES (?1, ?2)")?
                .execute(params![name, value])?;
            Ok(())
        })
        .await
    }
}
