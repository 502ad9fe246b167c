//! Migrations, sign-ins, sizes, backups and numbers.

use std::fs;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;
use transcript::{Event, Level, Millis, PartId, Record, SessionId};

use super::{append, inspect, json, open, read_all, records, session, stored_json};
use crate::files::connection;
use crate::meta::stats::{Counters, Histogram};
use crate::sql::params;
use crate::{AppendError, Error, Query};

const FIRST_TABLES: &str = "sessions records blobs streams deltas messages client_ids queue";

#[tokio::test]
async fn sign_ins_come_and_go() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let hash = |n: u8| [n; 32];
    for (n, at) in [(1, 10), (2, 20), (3, 30), (1, 25)] {
        store.add_sign_in(hash(n), Millis(at)).await.unwrap();
    }
    let known = async || -> Vec<_> {
        store.sign_ins().await.unwrap().iter().map(|it| (it.0[31], it.1.0)).collect()
    };
    assert_eq!(known().await, [(2, 20), (1, 25), (3, 30)]);
    store.remove_sign_in(hash(3)).await.unwrap();
    store.remove_sign_in(hash(9)).await.unwrap();
    assert_eq!(known().await, [(2, 20), (1, 25)]);
    store.remove_sign_ins_before(Millis(25)).await.unwrap();
    assert_eq!(known().await, [(1, 25)]);

    inspect(dir.path(), |db| {
        let refuse = db.pick(
            "CREATE TRIGGER full BEFORE INSERT ON sign_ins BEGIN SELECT RAISE(ABORT, 'x'); END",
            "ALTER TABLE sign_ins ADD CHECK (at > 1) NOT VALID",
        );
        db.execute(refuse, params![]).unwrap();
    });
    let failed = store.add_sign_in(hash(4), Millis(1)).await;
    assert!(matches!(failed, Err(AppendError::Storage(_))), "{failed:?}");
    store.close().await;
    assert_eq!(open(dir.path()).sign_ins().await.unwrap(), [(hash(1), Millis(25))]);
}

#[tokio::test]
async fn sizes_tell_what_takes_the_space() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let (small, large, streamed) = (session("small"), session("large"), session("streamed"));
    append(&store, &log(&small, &["x"])).await.unwrap();
    let random = random();
    append(&store, &log(&large, &[&random, "y"])).await.unwrap();
    append(&store, &records(&streamed, (0..100).map(|_| delta(&"z".repeat(100))))).await.unwrap();

    let sizes = store.sizes(9).await.unwrap();
    let names: Vec<_> = sizes.iter().map(|it| it.session.as_str()).collect();
    assert_eq!(names, ["large", "streamed", "small"]);
    assert!(sizes[0].blobs > 100_000 && sizes[0].records < 1000, "{sizes:?}");
    assert!((10_000..12_000).contains(&sizes[1].deltas), "{sizes:?}");
    assert_eq!((sizes[1].blobs, sizes[1].index, sizes[0].index), (0, 0, 0));
    assert_eq!(sizes[2].title, "New session");

    store.catch_up().await.unwrap();
    let sizes = store.sizes(1).await.unwrap();
    assert!(sizes.len() == 1 && sizes[0].index > random.len() as u64, "{sizes:?}");

    let whole = store.total_size().await.unwrap();
    assert!(whole.database + whole.wal > sizes[0].total() && whole.free == 0, "{whole:?}");
}

#[test]
fn times_are_counted_in_their_buckets() {
    let counters = Counters::default();
    for micros in [50, 100, 2000, 60_000_000] {
        counters.add_commit(Duration::from_micros(micros), 1, 1);
    }
    let Histogram { buckets, count, sum } = counters.stats().commit_seconds;
    assert_eq!(buckets[..4], [(0.0001, 2), (0.0003, 2), (0.001, 2), (0.003, 3)]);
    assert_eq!(buckets.last(), Some(&(10.0, 3)));
    assert_eq!((count, sum), (4, 60.00215));
}

/// Too random to be compressed much, and large enough for a blob.
fn random() -> String {
    (0..30_000u64).map(|n| format!("{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect()
}

fn log(id: &SessionId, texts: &[&str]) -> Vec<Record> {
    records(id, texts.iter().map(|it| notice(it)))
}

fn notice(text: &str) -> Event {
    Event::Notice { level: Level::Info, text: text.to_owned() }
}

fn delta(delta: &str) -> Event {
    Event::TextDelta { part_id: PartId::new("p"), parent_call_id: None, delta: delta.into() }
}

/// Tests of the embedded database alone: of its files, plans and errors.
mod embedded {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_backup_is_a_prefix_of_every_log() {
        let (dir, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let store = open(dir.path());
        let ids = [session("one"), session("two")];
        let log_of =
            |id| records(id, (0..3000).map(|n| if n % 7 == 0 { notice("n") } else { delta("d") }));
        let logs = ids.each_ref().map(log_of);
        for log in &logs {
            append(&store, &log[..1000]).await.unwrap();
        }
        let file = connection::file(copy.path());
        let writing = async {
            for (a, b) in logs[0][1000..].chunks(10).zip(logs[1][1000..].chunks(10)) {
                append(&store, a).await.unwrap();
                append(&store, b).await.unwrap();
            }
        };
        let (size, ()) = tokio::join!(store.backup(&file), writing);
        assert_eq!(size.unwrap(), fs::metadata(&file).unwrap().len());
        assert_eq!(fs::read_dir(copy.path()).unwrap().count(), 1);

        let copied = open(copy.path());
        for (id, log) in ids.iter().zip(&logs) {
            let read = stored_json(&read_all(&copied, id).await);
            assert!(read.len() >= 1000);
            assert_eq!(read, json(&log[..read.len()]));
            assert_eq!(stored_json(&read_all(&store, id).await), json(log));
        }
    }

    #[tokio::test]
    async fn a_backup_overwrites_nothing_and_is_private() {
        let (dir, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let store = open(dir.path());
        let file = copy.path().join("backup.db");
        fs::write(&file, "mine").unwrap();
        assert!(matches!(store.backup(&file).await, Err(Error::Exists(path)) if path == file));
        assert_eq!(fs::read(&file).unwrap(), b"mine");
        fs::remove_file(&file).unwrap();
        store.backup(&file).await.unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(matches!(store.backup(&copy.path().join("no/such")).await, Err(Error::Io(_))));
        assert_eq!(fs::read_dir(copy.path()).unwrap().count(), 1);

        let other = store.clone();
        store.close().await;
        assert!(matches!(other.backup(&copy.path().join("late")).await, Err(Error::Closed)));
        assert_eq!(fs::read_dir(copy.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn free_space_is_told_and_given_back() {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        let random = random();
        store.put_blob(random.clone().into_bytes(), Millis(0)).await.unwrap();
        assert_eq!(store.sweep_blobs(Millis(i64::MAX)).await.unwrap(), 1);
        let loose = store.total_size().await.unwrap();
        assert!(loose.free > random.len() as u64 / 3 && loose.wal > 0, "{loose:?}");
        store.compact().await.unwrap();
        let compact = store.total_size().await.unwrap();
        assert_eq!((compact.free, compact.wal), (0, 0));
        assert!(compact.database < loose.free, "{compact:?}");
    }

    #[tokio::test]
    async fn writes_are_counted() {
        let dir = TempDir::new().unwrap();
        let (store, id) = (open(dir.path()), session("s"));
        let log = records(&id, [notice("n"), delta("four"), delta("four"), delta("four")]);
        append(&store, &log[..1]).await.unwrap();
        append(&store, &log[1..]).await.unwrap();
        append(&store, &log[1..]).await.unwrap_err();
        let stats = store.stats();
        assert_eq!((stats.records_written, stats.commits), (4, 3));
        assert_eq!(stats.bytes_written, log[0].body().len() as u64 + 12);
        assert!(stats.pages_written > 0 && stats.pages_written == store.pages_written());

        let times = stats.commit_seconds;
        assert!(times.count == 3 && times.sum > 0.0);
        assert!(times.buckets.is_sorted_by_key(|it| it.1));
    }

    #[tokio::test]
    async fn a_first_database_is_migrated_with_all_that_is_in_it() {
        let (dir, old_dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let (one, two) = (session("one"), session("two"));
        let large = "pear ".repeat(20_000);
        let logs = [log(&one, &["small", &large, "apple"]), log(&two, &[&large])];
        let store = open(dir.path());
        for log in &logs {
            append(&store, log).await.unwrap();
        }
        store.close().await;

        // The same rows, in the tables of then.
        let db = Connection::open(connection::file(old_dir.path())).unwrap();
        db.execute_batch(include_str!("../files/schema.sql")).unwrap();
        let from = connection::file(dir.path());
        db.execute("ATTACH ?1 AS new", [from.to_str().unwrap()]).unwrap();
        for table in FIRST_TABLES.split(' ') {
            let columns: String = db
                .query_row(
                    "SELECT group_concat(name) FROM pragma_table_info(?1, 'main')",
                    [table],
                    |row| row.get(0),
                )
                .unwrap();
            let copy = format!("INSERT INTO main.{table} SELECT {columns} FROM new.{table}");
            db.execute_batch(&copy).unwrap();
        }
        db.pragma_update(None, "user_version", 1).unwrap();
        drop(db);

        let store = open(old_dir.path());
        for (id, log) in [&one, &two].into_iter().zip(&logs) {
            assert_eq!(stored_json(&read_all(&store, id).await), json(log));
        }
        let query = Query { text: "pear".into(), limit: 9, ..Query::default() };
        assert_eq!(store.search(query).await.unwrap().hits.len(), 2);
        // Both name the one blob.
        let n_blobs = || {
            let db = Connection::open(connection::file(old_dir.path())).unwrap();
            db.query_row("SELECT count(*) FROM blobs", [], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert!(store.delete_session(&one).await.unwrap());
        assert_eq!(stored_json(&read_all(&store, &two).await), json(&logs[1]));
        assert_eq!(n_blobs(), 1);
        assert!(store.delete_session(&two).await.unwrap());
        assert_eq!(n_blobs(), 0);
    }
}
