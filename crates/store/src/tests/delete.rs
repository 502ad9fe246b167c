//! Deleting sessions and blobs: what goes, and what stays.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;
use transcript::{Attachment, CallId, Event, Level, MessageId, Millis, Record, Seq, SessionId};

use super::{append, json, open, read_all, records, session, stored_json};
use super::{check_index, count, inspect};
use crate::files::connection;
use crate::tests::log::{Log, Step, steps};
use crate::{Query, Store, Window};

const DAY: i64 = Millis::PER_DAY;
/// In every text of a session that is deleted, and nowhere else.
const MARK: &str = "zqxjkv";

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn deleting_a_session_leaves_the_others_as_they_are(
        logs in prop::collection::vec(steps(), 3),
        is_indexed in any::<bool>(),
    ) {
        runtime().block_on(check_others(&logs, is_indexed));
    }

    #[test]
    fn what_is_deleted_is_in_no_file(
        turns in prop::collection::vec((any::<bool>(), 1..400usize, 0..4u8), 1..120),
    ) {
        runtime().block_on(check_files(&turns));
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

async fn check_others(logs: &[Vec<Step>], is_indexed: bool) {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let ids = ["one", "two", "three"].map(session);
    for (id, steps) in ids.iter().zip(logs) {
        let mut log = Log::new(id.clone());
        steps.iter().for_each(|step| log.take(step));
        append(&store, &log.records).await.unwrap();
        store.fold(2).await.unwrap();
    }
    if is_indexed {
        store.catch_up().await.unwrap();
    }
    let others = [&ids[0], &ids[2]];
    let before = answers(&store, others).await;
    let key = key_of(dir.path(), &ids[1]);
    assert!(store.delete_session(&ids[1]).await.unwrap());
    assert_eq!(answers(&store, others).await, before);
    assert_eq!(store.head(&ids[1]).await.unwrap(), None);
    assert_nothing_left(dir.path(), key);

    // Its name is free.
    let log = records(&ids[1], [notice("new")]);
    append(&store, &log).await.unwrap();
    assert_eq!(stored_json(&read_all(&store, &ids[1]).await), json(&log));
    assert_eq!(answers(&store, others).await, before);
}

/// All that can be asked about these sessions. Not how relevant a hit is: that depends on all texts.
async fn answers(store: &Store, ids: [&SessionId; 2]) -> Vec<String> {
    let mut answers = Vec::new();
    for id in ids {
        answers.extend(stored_json(&read_all(store, id).await));
        let rows = store.messages(id, Window { before: None, limit: usize::MAX }).await.unwrap();
        answers.push(format!("{rows:?} {:?}", store.summary(id).await.unwrap()));
        answers.push(format!("{:?}", store.queue_start(id).await.unwrap()));
        for word in ["a", "s", "r", "e", "n"] {
            let (session, limit) = (Some(id.clone()), usize::MAX);
            let query = Query { text: word.into(), session, limit, ..Query::default() };
            let hits = store.search(query).await.unwrap().hits;
            let hits: BTreeSet<String> = hits.iter().map(|it| format!("{it:?}")).collect();
            answers.extend(hits);
        }
    }
    answers
}

fn key_of(dir: &Path, id: &SessionId) -> i64 {
    count(dir, &format!("SELECT key FROM sessions WHERE id = '{id}'"))
}

fn assert_nothing_left(dir: &Path, key: i64) {
    let tables = "records deltas streams messages client_ids queue items indexed blob_uses deleted";
    for table in tables.split(' ') {
        let sql = format!("SELECT count(*) FROM {table} WHERE session = {key}");
        assert_eq!(count(dir, &sql), 0, "{table}");
    }
    let sql = "SELECT count(*) FROM blobs WHERE hash NOT IN (SELECT hash FROM blob_uses)";
    assert_eq!(count(dir, sql), 0, "blobs");
    check_index(dir);
}

/// Two sessions written in turns, one of them with a mark in all it says.
async fn check_files(turns: &[(bool, usize, u8)]) {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let mut logs = [Log::new(session("kept")), Log::new(session("gone"))];
    for (n, (is_gone, size, kind)) in turns.iter().enumerate() {
        let log = &mut logs[usize::from(*is_gone)];
        let word = if *is_gone { MARK } else { "mild" };
        let text = format!("{word}{n} ").repeat(*size);
        let start = if log.records.len() == 1 { 0 } else { log.records.len() };
        log.take(&match kind {
            0 => Step::Title(text),
            1 => Step::Text { part: 0, text, oddity: super::log::Oddity::None },
            2 => Step::TextDone { part: 0, repeats: n % 2 == 0 },
            _ => Step::Thinking { part: 1, text },
        });
        append(&store, &log.records[start..]).await.unwrap();
        if n % 16 == 0 {
            store.fold(9).await.unwrap();
            store.catch_up().await.unwrap();
        }
    }
    if logs.iter().any(|it| it.records.len() == 1) {
        return;
    }
    store.catch_up().await.unwrap();
    assert!(store.delete_session(&session("gone")).await.unwrap());
    assert_eq!(files_with_mark(dir.path()), Vec::<String>::new());
    assert_eq!(stored_json(&read_all(&store, &session("kept")).await), json(&logs[0].records));
    drop(store);
}

/// Words of the index are in small letters.
fn files_with_mark(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for file in fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        let bytes = fs::read(&path).unwrap().to_ascii_lowercase();
        let places: Vec<usize> = (0..bytes.len().saturating_sub(MARK.len()))
            .filter(|&at| bytes[at..].starts_with(MARK.as_bytes()))
            .collect();
        if !places.is_empty() {
            let pages: BTreeSet<_> = places.iter().map(|it| it / 4096 + 1).collect();
            found.push(format!("{} at {pages:?}", path.display()));
        }
    }
    found
}

/// As if the process had ended after the first step.
#[tokio::test]
async fn a_deletion_that_was_interrupted_is_finished_later() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    append(&store, &records(&id, (0..20).map(|_| notice(MARK)))).await.unwrap();
    store.close().await;
    let key = key_of(dir.path(), &id);
    inspect(dir.path(), |db| crate::log::delete::begin(db, &id)).unwrap();

    let store = open(dir.path());
    assert_eq!(store.head(&id).await.unwrap(), None);
    append(&store, &records(&id, [notice("new")])).await.unwrap();
    // The next one to be cleared away is the oldest.
    assert!(store.delete_session(&id).await.unwrap());
    assert_nothing_left(dir.path(), key);
    assert!(files_with_mark(dir.path()).is_empty());
}

#[tokio::test]
async fn a_blob_stays_while_it_is_named_or_new() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let (one, two) = (session("one"), session("two"));
    let put = async |value: &str, at| store.put_blob(value.into(), Millis(at)).await.unwrap();
    let has = async |hash: &str| store.blob(hash).await.unwrap().is_some();

    let (named, shared, again) =
        (put("named", 0).await, put("shared", 0).await, put("again", 0).await);
    let loose = put("loose", 0).await;
    append(&store, &[said(&one, &[&named, &shared, &again, "no hash"])]).await.unwrap();
    append(&store, &[said(&two, &[&shared])]).await.unwrap();
    put("again", 5).await;

    assert_eq!(store.sweep_blobs(Millis(DAY)).await.unwrap(), 0);
    assert!(has(&loose).await);
    assert_eq!(store.sweep_blobs(Millis(DAY + 1)).await.unwrap(), 1);
    assert!(!has(&loose).await && has(&named).await && has(&shared).await && has(&again).await);

    assert!(store.delete_session(&one).await.unwrap());
    assert!(!has(&named).await && has(&shared).await && has(&again).await);
    assert_eq!(store.sweep_blobs(Millis(DAY + 6)).await.unwrap(), 1);
    assert!(has(&shared).await && !has(&again).await);
    assert!(store.delete_session(&two).await.unwrap());
    assert!(!has(&shared).await);

    // Named once, put once: nothing of it waits any more.
    let sent = put("sent", 0).await;
    append(&store, &[said(&one, &[&sent])]).await.unwrap();
    assert!(store.delete_session(&one).await.unwrap());
    assert!(!has(&sent).await);
}

#[tokio::test]
async fn what_a_tool_gave_stays_with_its_session() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let id = session("one");
    let hash = store.put_blob("picture".into(), Millis(0)).await.unwrap();
    let file = |blob: &str| serde_json::json!({ "blob": blob, "name": "n", "mediaType": "image/png", "size": 7 });
    // Anybody may write such a result; what is no file is none.
    let result =
        serde_json::json!({ "files": [file(&hash), file("no hash"), 5, file(&"0".repeat(64))] });
    let event = Event::ToolResult {
        call_id: CallId::new("c"),
        tool_name: "t".into(),
        ok: true,
        result: Some(result),
        output: None,
        error: None,
        summary: None,
        duration_ms: Some(0),
        truncated: None,
    };
    append(&store, &records(&id, [event])).await.unwrap();
    assert_eq!(store.sweep_blobs(Millis(2 * DAY)).await.unwrap(), 0);
    assert!(store.blob(&hash).await.unwrap().is_some());
    assert!(store.delete_session(&id).await.unwrap());
    assert!(store.blob(&hash).await.unwrap().is_none());
}

/// Without compacting, which would do so as well.
#[tokio::test]
async fn what_is_deleted_is_overwritten() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    for n in 0..3 {
        store.put_blob(format!("{MARK}{n}").into_bytes(), Millis(n)).await.unwrap();
    }
    assert_eq!(store.sweep_blobs(Millis(i64::MAX)).await.unwrap(), 3);
    store.close().await;
    assert!(files_with_mark(dir.path()).is_empty());
}

fn said(session: &SessionId, blobs: &[&str]) -> Record {
    let attachment = |blob: &&str| Attachment {
        blob: (*blob).to_owned(),
        name: "n".into(),
        media_type: "image/png".into(),
        size: 1,
    };
    let event = Event::UserMessage {
        sent: None,
        message_id: MessageId::new("m"),
        client_id: None,
        role: Default::default(),
        text: "look".into(),
        attachments: blobs.iter().map(attachment).collect(),
        from: None,
    };
    Record::new(Seq(1), Millis(1), session.clone(), None, event)
}

fn notice(text: &str) -> Event {
    Event::Notice { level: Level::Info, text: text.to_owned() }
}

/// Tests of the embedded database alone: of its files, plans and errors.
mod embedded {
    use super::*;

    #[tokio::test]
    async fn the_mark_would_be_seen() {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        append(&store, &records(&session("s"), [notice(MARK)])).await.unwrap();
        assert!(!files_with_mark(dir.path()).is_empty());
        assert!(!store.delete_session(&session("other")).await.unwrap());
        assert!(store.delete_session(&session("s")).await.unwrap());
        assert!(!store.delete_session(&session("s")).await.unwrap());
        assert!(files_with_mark(dir.path()).is_empty());
    }

    /// A checkpoint cannot go on while somebody reads what was there before.
    #[tokio::test]
    async fn who_reads_an_older_state_delays_only_the_files() {
        let dir = TempDir::new().unwrap();
        let (store, id) = (open(dir.path()), session("s"));
        append(&store, &records(&id, [notice(MARK)])).await.unwrap();
        let reader = Connection::open(connection::file(dir.path())).unwrap();
        let snapshot = reader.unchecked_transaction().unwrap();
        let count =
            || snapshot.query_row("SELECT count(*) FROM records", [], |row| row.get::<_, i64>(0));
        assert_eq!(count().unwrap(), 1);

        assert!(store.delete_session(&id).await.unwrap());
        assert_eq!(store.head(&id).await.unwrap(), None);
        assert_eq!(count().unwrap(), 1);
        assert!(!files_with_mark(dir.path()).is_empty());
        drop(snapshot);
        store.close().await;
        assert!(files_with_mark(dir.path()).is_empty());
    }

    /// Far more rows than one step takes; others are written to meanwhile, and the same name again.
    #[tokio::test]
    async fn a_long_session_goes_while_others_are_written() {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        let (gone, other) = (session("gone"), session("other"));
        let log = |id, n| records(id, (0..n).map(|n| notice(&format!("word{n}"))));
        let (long, short) = (log(&gone, 5000), log(&other, 50));
        append(&store, &long).await.unwrap();
        store.catch_up().await.unwrap();
        let key = key_of(dir.path(), &gone);

        let writing = async {
            for record in short.chunks(1) {
                append(&store, record).await.unwrap();
            }
            append(&store, &long[..3]).await.unwrap();
        };
        let (deleted, ()) = tokio::join!(store.delete_session(&gone), writing);
        assert!(deleted.unwrap());
        assert_nothing_left(dir.path(), key);
        assert_eq!(stored_json(&read_all(&store, &gone).await), json(&long[..3]));
        assert_eq!(stored_json(&read_all(&store, &other).await), json(&short));
    }
}
