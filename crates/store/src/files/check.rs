//! Checks a database for damage. Read-only.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, InterruptHandle, OpenFlags};
use transcript::Seq;

use crate::Error;
use crate::files::connection;
use crate::log::body;
use crate::log::damage::{checked, is_object};
use crate::sql::{Db, params};

/// Maximum number of problems that a check reports.
const NAMED: usize = 20;

/// Result of a check of a data folder, see [`check`].
#[derive(Debug, Default)]
pub struct Checked {
    /// Descriptions of the damage that was found, for people.
    pub problems: Vec<String>,
    /// Whether everything was checked; false if the time limit was reached first.
    pub is_complete: bool,
}

/// Checks every page and every record of the database in a data folder, within a time limit.
/// Without a database there are no problems. Blocks; to be used without a runtime.
pub fn check(dir: &Path, within: Duration) -> Checked {
    let file = connection::file(dir);
    if !file.exists() {
        return Checked { problems: Vec::new(), is_complete: true };
    }
    if let Err(error) = connection::refuse_emptied(dir) {
        return Checked { problems: vec![error.to_string()], is_complete: true };
    }
    let mut problems = Vec::new();
    let looked = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(Error::from)
        .and_then(|db| {
            let interrupt = db.get_interrupt_handle();
            let db = Db::Sqlite(db);
            within_time(interrupt, within, || look(&db, &mut problems))
        });
    let is_complete = match looked.map_err(|error| error.in_file(|| file)) {
        Err(Error::Interrupted) => false,
        Err(error) => {
            problems.push(error.to_string());
            true
        }
        Ok(()) => true,
    };
    Checked { problems, is_complete }
}

/// Runs `act`, and interrupts the connection when the time limit is reached.
fn within_time(
    handle: InterruptHandle,
    within: Duration,
    act: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let (over, is_over) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if is_over.recv_timeout(within) == Err(mpsc::RecvTimeoutError::Timeout) {
            handle.interrupt();
        }
    });
    let done = act();
    drop(over);
    let _ = watchdog.join();
    match done {
        Err(Error::Db(error)) if error.is_interrupted() => Err(Error::Interrupted),
        done => done,
    }
}

fn look(db: &Db, problems: &mut Vec<String>) -> Result<(), Error> {
    db.each(&format!("PRAGMA quick_check({NAMED})"), params![], |row| {
        let line: String = row.get(0)?;
        if line != "ok" {
            problems.push(line);
        }
        Ok(true)
    })?;
    // The tables of an older version are checked after its migration.
    let is_current = db.sqlite().map_or(Ok(false), connection::is_current)?;
    if problems.is_empty() && is_current { look_at_records(db, problems) } else { Ok(()) }
}

fn look_at_records(db: &Db, problems: &mut Vec<String>) -> Result<(), Error> {
    let sql = "SELECT records.seq, at, response, body, cuts, sum, sessions.id
               FROM records JOIN sessions ON sessions.key = records.session";
    db.each(sql, params![], |row| {
        let body = checked(row).and_then(|record| body::restore(db, record.kept));
        let why = match body {
            Ok(body) if is_object(&body) => return Ok(true),
            Ok(_) => "it is no JSON object".to_owned(),
            Err(error) if error.is_damage() => error.to_string(),
            Err(error) => return Err(error),
        };
        let seq: Seq = row.get(0).map(connection::seq)?;
        let session: String = row.get(6).or_else(|error| match error.is_damage() {
            true => Ok("(damaged)".to_owned()),
            false => Err(error),
        })?;
        problems.push(format!("record {seq} of session {session}: {why}"));
        Ok(problems.len() < NAMED)
    })
}
