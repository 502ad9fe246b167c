//! Programs that were started, so that a starting server can end what an earlier one left running.

use rusqlite::params;

use crate::{AppendError, Error, Store};

/// A program of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// In the environment of all its processes.
    pub mark: String,
    /// Its number and when it was started, in the system's own count. None if nobody knows whether it
    /// was started at all.
    pub leader: Option<(u32, u64)>,
}

impl Store {
    /// To be called before the program is started, and again when its leader is known.
    pub async fn put_process(&self, process: Process) -> Result<(), AppendError> {
        self.write(move |db| {
            let (pid, started) = process.leader.unzip();
            db.prepare_cached(
                "INSERT OR REPLACE INTO processes (mark, pid, started) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![process.mark, pid, started.map(u64::cast_signed)])?;
            Ok(())
        })
        .await
    }

    /// Nothing of it is left.
    pub async fn remove_process(&self, mark: &str) -> Result<(), AppendError> {
        let mark = mark.to_owned();
        self.write(move |db| {
            db.prepare_cached("DELETE FROM processes WHERE mark = ?1")?.execute([&mark])?;
            Ok(())
        })
        .await
    }

    pub async fn processes(&self) -> Result<Vec<Process>, Error> {
        self.read_db(|db| {
            let mut find =
                db.prepare_cached("SELECT mark, pid, started FROM processes ORDER BY mark")?;
            let process = |row: &rusqlite::Row<'_>| {
                let started: Option<i64> = row.get(2)?;
                let leader = row.get::<_, Option<u32>>(1)?.zip(started.map(i64::cast_unsigned));
                Ok(Process { mark: row.get(0)?, leader })
            };
            Ok(find.query_map([], process)?.collect::<Result<_, _>>()?)
        })
        .await
    }
}
