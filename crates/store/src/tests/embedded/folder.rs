//! The data folder: its lock, its schema, its blobs, and what a crash leaves of it.

use std::fs;

use rusqlite::Connection;
use tempfile::TempDir;
use transcript::{Event, Level, Millis, Record, Seq};

use crate::files::connection;
use crate::tests::{append, json, open, read_all, records, session, stored_json};
use crate::{AppendError, Error, OpenError, Options, Store};

#[tokio::test]
async fn a_second_opener_is_told_who_is_there() {
    let dir = TempDir::new().unwrap();
    let options =
        || Options { holder: "callboard serve".into(), since: Millis(5), ..Options::default() };
    let store = Store::open(dir.path(), options()).unwrap();
    store.set_address("http://127.0.0.1:4520").unwrap();

    let Err(error @ OpenError::Held { .. }) = Store::open(dir.path(), options()) else {
        panic!("opened twice");
    };
    let words = error.to_string();
    let pid = format!("process {}", std::process::id());
    for part in ["`callboard serve`", &pid, "1970-01-01T00:00:00.005Z", "http://127.0.0.1:4520"] {
        assert!(words.contains(part), "{part} is not in: {words}");
    }

    store.close().await;
    drop(Store::open(dir.path(), options()).unwrap());
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let other = store.clone();
    append(&store, &log(&id, &["a"])).await.unwrap();
    store.close().await;
    assert_eq!(append(&other, &log(&id, &["a"])).await, Err(AppendError::Closed));
    assert!(matches!(other.head(&id).await, Err(Error::Closed)));
    assert_eq!(open(dir.path()).head(&id).await.unwrap(), Some(Seq(1)));
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let dir = TempDir::new().unwrap();
    open(dir.path()).close().await;
    let db = Connection::open(connection::file(dir.path())).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    let refused = Store::open(dir.path(), Options::default());
    assert!(matches!(refused, Err(OpenError::TooNew { found: 99, known: 7 })));
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_look_inside() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("made/here");
    let _store = open(&data);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for file in fs::read_dir(&data).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[tokio::test]
async fn equal_values_are_kept_once() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let large = "é\"".repeat(20_000);
    let log = log(&id, &[&large, "small", &large]);
    append(&store, &log).await.unwrap();
    assert_eq!(stored_json(&read_all(&store, &id).await), json(&log));
    let hash = store.put_blob(b"picture".to_vec(), Millis(1)).await.unwrap();
    assert_eq!(store.put_blob(b"picture".to_vec(), Millis(1)).await.unwrap(), hash);
    assert_eq!(store.blob(&hash).await.unwrap().as_deref(), Some(&b"picture"[..]));
    assert_eq!(store.blob("no hash").await.unwrap(), None);
    store.close().await;

    let db = Connection::open(connection::file(dir.path())).unwrap();
    let n_blobs: i64 = db.query_row("SELECT count(*) FROM blobs", [], |row| row.get(0)).unwrap();
    assert_eq!(n_blobs, 2);
}

/// The files at any moment are what a process that dies then leaves behind.
#[tokio::test]
async fn what_was_acknowledged_survives_a_crash() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let text = "x".repeat(2000);
    let log = log(&id, &vec![text.as_str(); 300]);
    for (n, records) in log.chunks(1).enumerate() {
        append(&store, records).await.unwrap();
        if n % 60 == 0 {
            let copy = TempDir::new().unwrap();
            for file in [connection::file, connection::wal_file] {
                fs::copy(file(dir.path()), file(copy.path())).unwrap();
            }
            assert_eq!(stored_json(&read_all(&open(copy.path()), &id).await), json(&log[..=n]));
        }
    }
}

fn log(id: &transcript::SessionId, texts: &[&str]) -> Vec<Record> {
    let notice = |text: &&str| Event::Notice { level: Level::Info, text: (*text).to_owned() };
    records(id, texts.iter().map(notice))
}
