//! The store from outside: laws on random logs, rows on small ones, and the folder.

mod delete;
pub(crate) mod embedded;

mod grants;
mod import;
mod laws;
mod log;

mod programs;
mod rows;
mod search;
mod upkeep;

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use transcript::{Event, Record, Seq, SessionId};

use crate::files::connection;
use crate::server::{Server, on_own_thread};
use crate::sql::{Db, Postgres, Role, params};
use crate::{AppendError, Options, Page, ReadRange, Store, Stored, Sync};

/// Environment variable with the URL of a PostgreSQL database, on which the tests then run instead of
/// the embedded one. `./test` runs them on both.
const SERVER: &str = "CALLBOARD_TEST_POSTGRES";

fn open(dir: &Path) -> Store {
    // What is tested here survives the end of the process, not the loss of power.
    Store::open(dir, Options { sync: Sync::Normal, server: server(dir), ..Options::default() })
        .unwrap()
}

#[expect(clippy::disallowed_methods, reason = "it chooses the database of a whole test run")]
fn test_server() -> Option<String> {
    std::env::var(SERVER).ok()
}

/// Returns the URL of a schema that belongs to a folder, so that a store that is opened again is the
/// same.
fn server(dir: &Path) -> Option<String> {
    let url = test_server()?;
    let schema = format!("t{}", &blake3::hash(dir.as_os_str().as_encoded_bytes()).to_hex()[..16]);
    Server::parse(&url).unwrap().run(&format!("CREATE SCHEMA IF NOT EXISTS {schema}"));
    Some(format!("{url}?options=-c%20search_path%3D{schema}"))
}

/// Runs statements on the database of a folder.
fn inspect<T: Send>(dir: &Path, look: impl FnOnce(&Db) -> T + Send) -> T {
    on_own_thread(|| {
        let db = match server(dir) {
            Some(url) => {
                let server = Arc::new(Server::parse(&url).unwrap());
                Db::Postgres(Box::new(Postgres::connect(server, Role::FastWriter).unwrap()))
            }
            None => Db::Sqlite(Connection::open(connection::file(dir)).unwrap()),
        };
        look(&db)
    })
}

/// Returns the number that a query counts in the database of a folder.
fn count(dir: &Path, sql: &str) -> i64 {
    inspect(dir, |db| db.one(sql, params![], |row| row.get(0)).unwrap())
}

/// Checks that the search index has exactly the words of the items.
fn check_index(dir: &Path) {
    inspect(dir, |db| {
        if let Some(db) = db.sqlite() {
            db.execute_batch("INSERT INTO search (search) VALUES ('integrity-check')").unwrap();
        }
    });
    let sql = "SELECT count(*) FROM search WHERE item NOT IN (SELECT key FROM items)";
    if server(dir).is_some() {
        assert_eq!(count(dir, sql), 0, "words of items that are gone");
    }
}

fn session(id: &str) -> SessionId {
    SessionId::parse(id).unwrap()
}

async fn append(store: &Store, records: &[Record]) -> Result<(), AppendError> {
    let expected = Seq(records[0].seq.0 - 1);
    store.append(&records[0].session_id, expected, Arc::from(records)).await
}

/// Events of one session as records from 1 on, in no run.
fn records(session: &SessionId, events: impl IntoIterator<Item = Event>) -> Vec<Record> {
    let record = |(seq, event)| {
        Record::new(Seq(seq), transcript::Millis(1000), session.clone(), None, event)
    };
    (1..).zip(events).map(record).collect()
}

const ALL: ReadRange = ReadRange { after: Seq(0), up_to: None, limit: usize::MAX, deltas: true };

async fn read_all(store: &Store, session: &SessionId) -> Vec<Stored> {
    let Page { records, head } = store.read(session, ALL).await.unwrap();
    assert_eq!(head.0, records.len() as u64);
    records
}

fn json(records: &[Record]) -> Vec<String> {
    records.iter().map(Record::to_json).collect()
}

fn stored_json(records: &[Stored]) -> Vec<String> {
    records.iter().map(Stored::to_json).collect()
}
