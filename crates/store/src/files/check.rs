//! Checks a database for damage. Read-only.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use transcript::Seq;

use crate::Error;
use crate::files::connection;
use crate::log::body;
use crate::log::damage::{checked, is_damage, is_object};

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
        .and_then(|db| within_time(&db, within, || look(&db, &mut problems)));
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
    db: &Connection,
    within: Duration,
    act: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let (over, is_over) = mpsc::channel::<()>();
    let handle = db.get_interrupt_handle();
    let watchdog = thread::spawn(move || {
        if is_over.recv_timeout(within) == Err(mpsc::RecvTimeoutError::Timeout) {
            handle.interrupt();
        }
    });
    let done = act();
    drop(over);
    let _ = watchdog.join();
    match done {
        Err(Error::Db(error))
            if error.0.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) =>
        {
            Err(Error::Interrupted)
        }
        done => done,
    }
}

fn look(db: &Connection, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut check = db.prepare(&format!("PRAGMA quick_check({NAMED})"))?;
    let mut rows = check.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            problems.push(line);
        }
    }
    // The tables of an older version are checked after its migration.
    if problems.is_empty() && connection::is_current(db)? {
        look_at_records(db, problems)?;
    }
    Ok(())
}

fn look_at_records(db: &Connection, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut find = db.prepare(
        "SELECT records.seq, at, response, body, cuts, sum, sessions.id
         FROM records JOIN sessions ON sessions.key = records.session",
    )?;
    let mut rows = find.query([])?;
    while problems.len() < NAMED
        && let Some(row) = rows.next()?
    {
        let body = checked(row).and_then(|record| body::restore(db, record.kept));
        let why = match body {
            Ok(body) if is_object(&body) => continue,
            Ok(_) => "it is no JSON object".to_owned(),
            Err(error) if error.is_damage() => error.to_string(),
            Err(error) => return Err(error),
        };
        let seq: Seq = row.get(0).map(connection::seq)?;
        let session: String = row.get(6).or_else(|error| match is_damage(&error) {
            true => Ok("(damaged)".to_owned()),
            false => Err(error),
        })?;
        problems.push(format!("record {seq} of session {session}: {why}"));
    }
    Ok(())
}
