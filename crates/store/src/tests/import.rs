//! Imports: all of a log or nothing, seen by nobody before its end, and others write meanwhile.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tempfile::TempDir;
use transcript::{Record, Seq, SessionId};

use super::embedded::plans::turns;
use super::{append, json, open, read_all, session, stored_json};
use super::{count, inspect};
use crate::log::delete;
use crate::{AppendError, Query, Store, Window};

const TURNS: usize = 1500;

#[tokio::test]
async fn an_import_reads_back_as_an_append_does() {
    let (dir, plain_dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (store, plain, id) = (open(dir.path()), open(plain_dir.path()), session("s"));
    let log = turns(&id, 0, TURNS);
    store.import(&id, Arc::from(&*log)).await.unwrap();
    append(&plain, &log).await.unwrap();
    assert_eq!(stored_json(&read_all(&store, &id).await), json(&log));
    assert_eq!(store.summary(&id).await.unwrap(), plain.summary(&id).await.unwrap());
    let all = Window { before: None, limit: usize::MAX };
    assert_eq!(store.messages(&id, all).await.unwrap(), plain.messages(&id, all).await.unwrap());
    let query = Query { text: "answer".into(), limit: 9, ..Query::default() };
    let found = store.search(query.clone()).await.unwrap();
    assert_eq!(found, plain.search(query).await.unwrap());

    let next = turns(&id, TURNS, TURNS + 1);
    append(&store, &next).await.unwrap();
    assert_eq!(store.head(&id).await.unwrap(), Some(next[5].seq));
    let again = store.import(&id, Arc::from(&*log)).await;
    assert_eq!(again, Err(AppendError::Conflict { head: next[5].seq }));
    assert_eq!(staged_rows(dir.path()), 0);
}

#[tokio::test]
async fn an_import_that_is_dropped_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let (store, id, other) = (open(dir.path()), session("s"), session("other"));
    for n in 0..6 {
        {
            let mut import = pin!(store.import(&id, turns(&id, 0, TURNS).into()));
            for idx in 0..n {
                assert!(!is_over(import.as_mut()));
                append(&store, &turns(&other, 10 * n + idx, 10 * n + idx + 1)).await.ok();
            }
        }
        // Answered behind the end of the import.
        store.fold(0).await.unwrap();
        assert_unseen(&store, &id).await;
    }
    store.import(&id, turns(&id, 0, TURNS).into()).await.unwrap();
    assert_eq!(read_all(&store, &id).await.len(), 6 * TURNS);
    store.close().await;
    assert_eq!(leftovers(dir.path()), 0);
}

#[tokio::test]
async fn of_two_imports_with_one_name_one_wins() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let long = || store.import(&id, turns(&id, 0, TURNS).into());
    let (one, other) = tokio::join!(long(), long());
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    assert_eq!(read_all(&store, &id).await.len(), 6 * TURNS);
    store.close().await;
    assert_eq!(leftovers(dir.path()), 0);
}

fn is_over(import: std::pin::Pin<&mut impl Future<Output = Result<(), AppendError>>>) -> bool {
    match import.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => {
            done.unwrap();
            true
        }
        Poll::Pending => false,
    }
}

async fn assert_unseen(store: &Store, id: &SessionId) {
    assert_eq!(store.head(id).await.unwrap(), None);
    assert_eq!(store.summary(id).await.unwrap(), None);
    assert!(store.sessions(None, 99, None).await.unwrap().iter().all(|it| it.0 != *id));
    let query = Query { text: "question".into(), limit: 99, ..Query::default() };
    let found = store.search(query).await.unwrap();
    assert!(found.hits.iter().all(|it| it.session != *id));
}

/// The files as a crash would leave them at this moment, opened again.
async fn assert_gone_after_crash(dir: &Path, id: &SessionId, other: &SessionId) {
    let copy = TempDir::new().unwrap();
    for file in ["callboard.db", "callboard.db-wal"] {
        std::fs::copy(dir.join(file), copy.path().join(file)).unwrap();
    }
    let store = open(copy.path());
    assert_unseen(&store, id).await;
    assert!(store.head(other).await.unwrap().is_some());
    // Closing waits for what is left of deleted sessions.
    store.close().await;
    assert_eq!(leftovers(copy.path()), 0);
}

fn staged_rows(dir: &Path) -> usize {
    inspect(dir, delete::all).unwrap().len()
}

/// Rows that belong to no session.
fn leftovers(dir: &Path) -> i64 {
    let tables = delete::TABLES.iter().map(|it| it.0).chain(["items", "indexed", "blob_uses"]);
    let count = |table| {
        let sql =
            format!("SELECT count(*) FROM {table} WHERE session NOT IN (SELECT key FROM sessions)");
        count(dir, &sql)
    };
    tables.map(count).sum::<i64>() + staged_rows(dir) as i64
}

#[tokio::test]
async fn a_log_that_is_not_numbered_is_refused() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let mut log = turns(&id, 0, 3);
    log[7].seq = Seq(99);
    assert_eq!(store.import(&id, log.into()).await, Err(AppendError::Misnumbered));
    assert_eq!(store.head(&id).await.unwrap(), None);
}

/// Tests of the embedded database alone: of its files, plans and errors.
mod embedded {
    use super::*;

    /// Between any two batches: nothing is seen, others write, and a crash leaves nothing behind.
    #[tokio::test]
    async fn nothing_of_an_import_is_seen_before_its_end() {
        let dir = TempDir::new().unwrap();
        let (store, id, other) = (open(dir.path()), session("s"), session("other"));
        let log: Arc<[Record]> = turns(&id, 0, TURNS).into();
        let (mut n_batches, mut n_staged) = (0, 0);
        {
            let mut import = pin!(store.import(&id, Arc::clone(&log)));
            while !is_over(import.as_mut()) {
                // Each is one batch, so it waits for at most one batch of the import.
                append(&store, &turns(&other, n_batches, n_batches + 1)).await.unwrap();
                n_batches += 1;
                if store.head(&id).await.unwrap().is_some() {
                    continue;
                }
                n_staged += usize::from(staged_rows(dir.path()) > 0);
                // Clearing away a deleted session leaves the staged rows alone.
                let deleted = session(&format!("deleted-{n_batches}"));
                append(&store, &turns(&deleted, 0, 1)).await.unwrap();
                assert!(store.delete_session(&deleted).await.unwrap());
                assert_unseen(&store, &id).await;
                assert_gone_after_crash(dir.path(), &id, &other).await;
            }
        }
        assert!(n_staged > 5, "{n_staged} of {n_batches}");
        assert_eq!(stored_json(&read_all(&store, &id).await), json(&log));
        assert_eq!(staged_rows(dir.path()), 0);
    }
}
