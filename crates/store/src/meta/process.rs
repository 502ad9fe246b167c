//! Processes that were started, so that a server can end those that a crash has left running.

use crate::sql::{Row, params};
use crate::{AppendError, Error, Store};

/// A process of an agent, stored to be ended if the server crashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Mark in the environment of the process and its children, by which they are found.
    pub mark: String,
    /// Process id and start time, in the unit of the operating system. `None` if it is not known
    /// whether the process was started.
    pub leader: Option<(u32, u64)>,
}

impl Store {
    /// Stores a process. Called before the process is started, and again when its process id is
    /// known.
    pub async fn put_process(&self, process: Process) -> Result<(), AppendError> {
        self.write(move |db| {
            let (pid, started) = process.leader.unzip();
            db.execute(
                "INSERT INTO processes (mark, pid, started) VALUES (?1, ?2, ?3)
                 ON CONFLICT (mark) DO UPDATE SET pid = excluded.pid, started = excluded.started",
                params![process.mark, pid, started.map(u64::cast_signed)],
            )?;
            Ok(())
        })
        .await
    }

    /// Removes a process that has ended with all of its children.
    pub async fn remove_process(&self, mark: &str) -> Result<(), AppendError> {
        let mark = mark.to_owned();
        self.write(move |db| {
            db.execute("DELETE FROM processes WHERE mark = ?1", params![&mark])?;
            Ok(())
        })
        .await
    }

    /// Returns the stored processes that were not removed.
    pub async fn processes(&self) -> Result<Vec<Process>, Error> {
        self.read_db(|db| {
            let process = |row: &Row<'_>| {
                let started: Option<i64> = row.get(2)?;
                let leader = row.get::<Option<u32>>(1)?.zip(started.map(i64::cast_unsigned));
                Ok(Process { mark: row.get(0)?, leader })
            };
            db.all("SELECT mark, pid, started FROM processes ORDER BY mark", params![], process)
        })
        .await
    }
}
