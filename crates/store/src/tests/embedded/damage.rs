//! Damage on the disk: named, and the rest is served. Files that disappear: noticed.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tempfile::TempDir;
use transcript::{Event, Record, Seq};

use crate::files::connection;
use crate::tests::embedded::plans::turns;
use crate::tests::log::{Log, Step, steps};
use crate::tests::{ALL, append, json, open, read_all, records, session, stored_json};
use crate::{AppendError, Error, OpenError, Options, Store, check};

const LONG: Duration = Duration::from_secs(600);

async fn fill(dir: &Path) -> Vec<Record> {
    let (store, id) = (open(dir), session("s"));
    let mut log = turns(&id, 0, 4);
    let large = Event::Notice { level: transcript::Level::Info, text: "large ".repeat(10_000) };
    let mut more = records(&id, [large]);
    more[0].seq = Seq(log.len() as u64 + 1);
    log.extend(more);
    append(&store, &log).await.unwrap();
    append(&store, &turns(&session("other"), 0, 1)).await.unwrap();
    store.close().await;
    log
}

fn change(dir: &Path, sql: &str, seq: u64) -> usize {
    let db = Connection::open(connection::file(dir)).unwrap();
    db.execute(sql, params![seq as i64]).unwrap()
}

/// Every record, damaged in every way.
#[tokio::test]
async fn a_damaged_record_is_named_and_the_rest_is_read() {
    let ways = [
        "UPDATE records SET body = replace(body, 'e', 'f') WHERE seq = ?1",
        "UPDATE records SET body = substr(body, 1, length(body) - 1) WHERE seq = ?1",
        "UPDATE records SET body = CAST(x'7bff7d' AS TEXT) WHERE seq = ?1",
        "UPDATE records SET at = at + 1 WHERE seq = ?1",
        "UPDATE records SET cuts = '[[1,\"00\"]]' WHERE seq = ?1",
        "UPDATE records SET sum = NULL, body = 'null' WHERE seq = ?1",
        "UPDATE records SET sum = NULL, body = '{' WHERE seq = ?1",
        "UPDATE blobs SET data = x'00' WHERE ?1 = 25",
    ];
    let id = session("s");
    for way in ways {
        let dir = TempDir::new().unwrap();
        let log = fill(dir.path()).await;
        for seq in 1..=log.len() {
            let copy = TempDir::new().unwrap();
            std::fs::copy(connection::file(dir.path()), connection::file(copy.path())).unwrap();
            let n_changed = change(copy.path(), way, seq as u64);
            let store = open(copy.path());
            let read = stored_json(&read_all(&store, &id).await);
            for (idx, (read, written)) in read.iter().zip(json(&log)).enumerate() {
                if n_changed == 0 || idx + 1 != seq {
                    assert_eq!(*read, written, "{way}");
                    continue;
                }
                let value: Value = serde_json::from_str(read).unwrap();
                assert_eq!(
                    (&value["seq"], &value["type"]),
                    (&json!(seq), &json!("notice")),
                    "{way}"
                );
                let text = value["text"].as_str().unwrap();
                assert!(text.contains(&format!("Record {seq} of session s is damaged")), "{text}");
            }
            store
                .conversation(&id, crate::Window { before: None, limit: 9 })
                .await
                .unwrap()
                .unwrap();
            store.close().await;
            let found = check(copy.path(), LONG);
            let is_named =
                found.problems.iter().any(|it| it.contains(&format!("record {seq} of session s")));
            assert_eq!(is_named, n_changed > 0, "{way}: {found:?}");
        }
    }
}

#[tokio::test]
async fn damaged_deltas_leave_the_rest() {
    for table in ["streams SET text = x'00', deltas = x'ff'", "segments SET text = x'00'"] {
        let dir = TempDir::new().unwrap();
        let (store, id) = (open(dir.path()), session("s"));
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let random: Vec<Step> = proptest::strategy::ValueTree::current(
            &proptest::strategy::Strategy::new_tree(&steps(), &mut runner).unwrap(),
        );
        let mut log = Log::new(id.clone());
        random.iter().for_each(|step| log.take(step));
        append(&store, &log.records).await.unwrap();
        while store.fold(9).await.unwrap() > 0 {}
        store.close().await;
        let db = Connection::open(connection::file(dir.path())).unwrap();
        db.execute(&format!("UPDATE {table}"), []).unwrap();
        drop(db);
        let store = open(dir.path());
        let read = read_all(&store, &id).await;
        assert_eq!(read.len(), log.records.len());
        for (read, written) in read.iter().zip(&log.records) {
            assert_eq!(read.seq, written.seq);
            let is_sound = read.to_json() == written.to_json();
            assert!(is_sound || read.body.contains("is damaged"), "{}", read.body);
        }
        store.read(&id, crate::ReadRange { deltas: false, ..ALL }).await.unwrap();
    }
}

#[tokio::test]
async fn a_damaged_summary_is_made_again() {
    for way in ["'nonsense'", "'{}x'", "x'ff'", "NULL || ''", "7"] {
        let dir = TempDir::new().unwrap();
        fill(dir.path()).await;
        let store = open(dir.path());
        let before = store.sessions(None, 9, None).await.unwrap();
        store.close().await;
        let db = Connection::open(connection::file(dir.path())).unwrap();
        let sql = format!("UPDATE OR IGNORE sessions SET summary = {way} WHERE id = 's'");
        db.execute(&sql, []).unwrap();
        drop(db);
        let store = open(dir.path());
        assert_eq!(store.sessions(None, 9, None).await.unwrap(), before, "{way}");
        append(&store, &turns(&session("other"), 1, 2)).await.unwrap();
        assert!(store.summary(&session("s")).await.unwrap().is_some());
    }
}

/// Every page of the database, zeroed: no panic, valid records, or an error that names the file.
#[tokio::test]
async fn a_damaged_page_is_told_with_its_file() {
    let dir = TempDir::new().unwrap();
    fill(dir.path()).await;
    let sound = std::fs::read(connection::file(dir.path())).unwrap();
    let mut n_found = 0;
    for page in 0..sound.len() / 4096 {
        let copy = TempDir::new().unwrap();
        let mut bytes = sound.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0);
        std::fs::write(connection::file(copy.path()), bytes).unwrap();
        let found = check(copy.path(), LONG);
        n_found += usize::from(!found.problems.is_empty());
        let store = match Store::open(copy.path(), Options::default()) {
            Ok(store) => store,
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("callboard.db") && text.contains("backup"), "{text}");
                continue;
            }
        };
        for result in [
            store.sessions(None, 9, None).await.map(drop),
            store.read(&session("s"), ALL).await.map(|page| {
                page.records
                    .iter()
                    .for_each(|it| drop(serde_json::from_str::<Value>(&it.to_json()).unwrap()));
            }),
        ] {
            let Err(error) = result else { continue };
            let text = error.to_string();
            assert!(
                text.contains("callboard.db") && text.contains("doctor"),
                "page {page}: {text}"
            );
        }
        store.close().await;
    }
    assert!(n_found > 5, "{n_found}");
    assert!(check(dir.path(), LONG).problems.is_empty());
}

#[tokio::test]
async fn an_emptied_database_is_not_taken_for_a_new_one() {
    let dir = TempDir::new().unwrap();
    std::fs::write(connection::file(dir.path()), "").unwrap();
    open(dir.path()).close().await;

    std::fs::write(connection::file(dir.path()), "").unwrap();
    std::fs::write(dir.path().join("server.json"), "{}").unwrap();
    let refused = Store::open(dir.path(), Options::default()).err().unwrap();
    assert!(matches!(refused, OpenError::Emptied { .. }), "{refused}");
    assert!(refused.to_string().contains("restore a backup"), "{refused}");
    assert_eq!(check(dir.path(), LONG).problems, [refused.to_string()]);
    std::fs::remove_file(connection::file(dir.path())).unwrap();
    open(dir.path()).close().await;
}

/// Removed, replaced, and moved away with its folder: nothing is accepted, and all can be saved.
#[tokio::test]
async fn files_that_are_gone_are_noticed() {
    type Damage = fn(&Path);
    let ways: [(&str, Damage); 5] = [
        ("the database is removed", |dir| std::fs::remove_file(connection::file(dir)).unwrap()),
        ("the log is removed", |dir| std::fs::remove_file(connection::wal_file(dir)).unwrap()),
        ("the folder is removed", |dir| std::fs::remove_dir_all(dir).unwrap()),
        ("the folder is replaced", |dir| {
            std::fs::rename(dir, dir.with_extension("moved")).unwrap();
            std::fs::create_dir(dir).unwrap();
        }),
        ("the database is replaced", |dir| {
            let copy = dir.join("copy");
            std::fs::copy(connection::file(dir), &copy).unwrap();
            std::fs::rename(copy, connection::file(dir)).unwrap();
        }),
    ];
    for (way, damage) in ways {
        let home = TempDir::new().unwrap();
        let dir = home.path().join("data");
        let (store, id) = (open(&dir), session("s"));
        let log = turns(&id, 0, 3);
        append(&store, &log[..6]).await.unwrap();
        store.check_files().unwrap();
        damage(&dir);
        let lost = append(&store, &log[6..12]).await.unwrap_err();
        assert!(matches!(lost, AppendError::Lost(_)), "{way}: {lost}");
        assert!(lost.to_string().contains("removed or replaced"), "{lost}");
        assert!(matches!(store.delete_session(&id).await, Err(AppendError::Lost(_))), "{way}");
        assert!(matches!(store.check_files(), Err(Error::Lost(_))), "{way}");
        // The open files can still be backed up.
        let saved = home.path().join("saved");
        std::fs::create_dir(&saved).unwrap();
        store.backup(&connection::file(&saved)).await.unwrap();
        assert_eq!(stored_json(&read_all(&open(&saved), &id).await), json(&log[..6]), "{way}");
        // And goes on if it is put back.
        let moved = dir.with_extension("moved");
        if moved.exists() {
            std::fs::remove_dir(&dir).unwrap();
            std::fs::rename(moved, &dir).unwrap();
            append(&store, &log[6..]).await.unwrap();
            assert_eq!(stored_json(&read_all(&store, &id).await), json(&log), "{way}");
        }
    }
}

/// Backups of dead processes are removed, and no files of other processes.
#[tokio::test]
async fn unfinished_backups_are_removed() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let magic = b"SQLite format 3\0 and more";
    let dead = u32::MAX - 7;
    let own = std::process::id();
    let gone = [
        format!(".a.db.{dead}-0.part"),
        format!(".a.b.{dead}-12.part"),
        format!(".x.{own}-7.part"),
    ];
    let stay = [
        "a.part".to_owned(),
        format!("x.db.{dead}-0.part"),
        format!(".x.db.{dead}.part"),
        format!(".x.db.{dead}-0.part.gz"),
        ".x.db.1-0.part".to_owned(),
    ];
    for folder in [dir.path().to_owned(), dir.path().join("backups")] {
        std::fs::create_dir_all(&folder).unwrap();
        for name in gone.iter().chain(&stay) {
            std::fs::write(folder.join(name), magic).unwrap();
        }
        std::fs::write(folder.join(format!(".foreign.{dead}-0.part")), "something else").unwrap();
        let locked = std::fs::File::create(folder.join(format!(".locked.{dead}-0.part"))).unwrap();
        locked.lock().unwrap();
        store.backup(&folder.join("copy.db")).await.unwrap();
        assert!(gone.iter().all(|it| !folder.join(it).exists()));
        assert!(stay.iter().all(|it| folder.join(it).exists()));
        assert!(folder.join(format!(".foreign.{dead}-0.part")).exists());
        assert!(folder.join(format!(".locked.{dead}-0.part")).exists());
    }
    // A start looks into the data folder.
    std::fs::write(dir.path().join(&gone[0]), magic).unwrap();
    store.close().await;
    open(dir.path()).close().await;
    assert!(!dir.path().join(&gone[0]).exists());
}
