//! Query plans: how each statement finds its rows, and that no cost grows with a session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rusqlite::{Connection, StatementStatus, ToSql};
use tempfile::TempDir;
use transcript::{
    CallId, Event, Executor, MessageId, PartId, Record, ResponseId, RunStatus, Seq, SessionId,
    Trigger,
};

use crate::files::connection;
use crate::log::pack;
use crate::log::stream::StreamRow;
use crate::sql::{Db, params};
use crate::tests::log::{Step, steps};
use crate::tests::{append, json, laws, open, read_all, records, search, session, stored_json};
use crate::{MessageKind, ReadRange, Store, Window};

/// The statements that ran on watched connections of this process, and the steps that each took.
static SEEN: Mutex<BTreeMap<String, i32>> = Mutex::new(BTreeMap::new());

fn seen() -> MutexGuard<'static, BTreeMap<String, i32>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn watch(db: &mut Connection) {
    // Counts of a statement rise for as long as its connection keeps it.
    let mut counted: BTreeMap<String, i32> = BTreeMap::new();
    let note = move |event: TraceEvent<'_>| {
        if let TraceEvent::Profile(statement, _) = event {
            let sql = statement.sql().into_owned();
            let steps = statement.get_status(StatementStatus::VmStep);
            let before = counted.insert(sql.clone(), steps).filter(|it| *it <= steps).unwrap_or(0);
            *seen().entry(sql).or_default() += steps - before;
        }
    };
    db.trace_v2(TraceEventCodes::SQLITE_TRACE_PROFILE, Some(note)).unwrap();
}

/// Statements that may go through all rows of a session or of a table, each with the reason. Matched
/// by what they contain.
const MAY_SCAN: &[(&str, &str)] = &[
    ("LIMIT 1000)", "the first rows of a deleted session"),
    ("LIMIT 16)", "the same for its blobs"),
    ("max(number)", "one step: the largest key"),
    ("SELECT max(seq) FROM", "one step: the largest key"),
    ("closed_seq IS NULL", "as many rows as streams are open"),
    ("FROM queue WHERE session = ?1", "as many rows as messages wait"),
    ("json_extract(summary, '$.agent')", "ends with the first session of the agent"),
    ("attention = 1", "a partial index with nothing else in it"),
    ("FROM sessions LEFT JOIN indexed", "once, when the store is opened"),
    ("'main'.'search_", "of FTS5 itself"),
    ("FROM items WHERE session = ?1", "ends with the first row: deletes from the end"),
    ("folded = 0 AND closed_seq IS NOT NULL", "a partial index with nothing else in it"),
    ("INDEXED BY streams_to_split", "a partial index with nothing else in it"),
    ("SELECT last FROM raw_lines", "ends with the first row"),
    (
        "superseded = 0\n         ORDER BY number DESC LIMIT 1",
        "ends with the first row of its kind",
    ),
    ("FROM deltas WHERE session = ?1 AND stream = ?2", "ends with the last delta of the stream"),
    ("SELECT session FROM deleted", "as many rows as sessions are being deleted"),
    ("WITH found AS MATERIALIZED", "as many rows as are found"),
];

#[test]
fn no_statement_scans_a_session() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut runner = TestRunner::deterministic();
    for _ in 0..12 {
        let steps: Vec<Step> = steps().new_tree(&mut runner).unwrap().current();
        runtime.block_on(laws::check(&steps, &[]));
        runtime.block_on(search::check_words(&steps));
    }
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    runtime.block_on(use_everything(&store));
    runtime.block_on(store.close());

    let db = Connection::open(connection::file(dir.path())).unwrap();
    let statements: BTreeSet<String> = seen().keys().cloned().collect();
    assert!(statements.len() > 60, "only {} statements were seen", statements.len());
    let mut faults = Vec::new();
    for sql in &statements {
        if MAY_SCAN.iter().any(|(part, _)| sql.contains(part)) {
            continue;
        }
        faults.extend(scans(&db, sql).into_iter().map(|line| format!("{line}\n    {sql}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for (part, _) in MAY_SCAN {
        assert!(statements.iter().any(|sql| sql.contains(part)), "unused: {part}");
    }
}

/// Lines of the plan that look at more rows than the statement asks for.
fn scans(db: &Connection, sql: &str) -> Vec<String> {
    let Ok(mut explain) = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")) else {
        return Vec::new();
    };
    let nothing: Vec<&dyn ToSql> = vec![&rusqlite::types::Null; explain.parameter_count()];
    let lines = explain.query_map(&*nothing, |row| row.get::<_, String>(3));
    let lines: Vec<String> = lines.unwrap().collect::<Result<_, _>>().unwrap();
    lines.into_iter().filter(|it| is_scan(it)).collect()
}

fn is_scan(line: &str) -> bool {
    let is_table_scan = line.starts_with("SCAN ")
        && !["json_each", "VIRTUAL TABLE", "CONSTANT ROW", "(subquery", "(join", "SCAN page"]
            .iter()
            .any(|it| line.contains(it));
    is_table_scan || line.ends_with("(session=?)")
}

/// Everything that the laws do not use.
async fn use_everything(store: &Store) {
    let id = session("s");
    append(store, &turns(&id, 0, 30)).await.unwrap();
    store.sessions(None, 5, None).await.unwrap();
    store.needing_attention().await.unwrap();
    store.summaries(vec![id.clone(), session("none")]).await.unwrap();
    store.latest_session_of("demo", &session("other")).await.unwrap();
    store.message_row(&id, "m3").await.unwrap();
    store.last_of(&id, MessageKind::Said).await.unwrap();
    store.count_before(&id, MessageKind::Said, Seq(20)).await.unwrap();
    store.window_after(&id, Seq(3), 4).await.unwrap();
    store.conversation(&id, Window { before: None, limit: 4 }).await.unwrap();
    store.records_of_run(&id, &ResponseId::new("r3")).await.unwrap();
    store.records_of_last(&id, MessageKind::Said).await.unwrap();
    store.records_around(&id, Seq(4)).await.unwrap();
    store.window_from(&id, "m3", 4).await.unwrap();
    store.history(&id, true).await.unwrap();
    store.history(&id, false).await.unwrap();
    store.run(&id, &ResponseId::new("r3")).await.unwrap();
    store.queue(&id).await.unwrap();
    let line = transcript::RawLine {
        at: transcript::Millis(1),
        from: Seq(1),
        to: Seq(2),
        text: "line".to_owned(),
    };
    store.add_raw(&id, vec![line]).await.unwrap();
    store.raw(&id, 0, 5).await.unwrap();
    store.raw_of(&id, Seq(1)..=Seq(5), 0, 5).await.unwrap();
    store.import(&session("whole"), turns(&session("whole"), 0, 300).into()).await.unwrap();
    store.delete_session(&id).await.unwrap();
}

/// Counted in steps of SQLite's machine: a turn costs the same, however long the session.
#[test]
fn the_cost_of_a_turn_does_not_grow() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let steps_for = |from, to| {
        let before = all_steps();
        runtime.block_on(append(&store, &turns(&id, from, to))).unwrap();
        all_steps() - before
    };
    steps_for(0, 10);
    let young = steps_for(10, 60);
    steps_for(60, 5000);
    let old = steps_for(5000, 5050);
    assert!(old < young + young / 5, "first {young}, then {old} steps for 50 turns");
}

/// A page of a long stream costs the same, wherever it is and however long the stream.
#[test]
fn a_page_of_a_folded_stream_costs_a_page() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let mut steps = Vec::new();
    for n_deltas in [300, 6000] {
        let id = session(&format!("s{n_deltas}"));
        let log = one_stream(&id, n_deltas);
        runtime.block_on(append(&store, &log)).unwrap();
        while runtime.block_on(store.fold(1)).unwrap() > 0 {}
        for after in [0, n_deltas / 2, n_deltas - 110] {
            let range =
                ReadRange { after: Seq(after as u64), up_to: None, limit: 100, deltas: true };
            let before = all_steps();
            let page = runtime.block_on(store.read(&id, range)).unwrap().records;
            steps.push(all_steps() - before);
            assert_eq!(stored_json(&page), json(&log[after..after + 100]));
        }
    }
    let (least, most) = (steps.iter().min().unwrap(), steps.iter().max().unwrap());
    assert!(*most < 2 * least, "{steps:?}");
}

/// A long row folded by an earlier version is split into segments.
#[tokio::test]
async fn a_long_row_of_an_earlier_version_is_split() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let log = one_stream(&id, 6000);
    append(&store, &log).await.unwrap();
    store.close().await;
    let db = Db::Sqlite(Connection::open(connection::file(dir.path())).unwrap());
    let stream = StreamRow::named(&db, 1, "text:p").unwrap().unwrap();
    let deltas = stream.deltas(&db).unwrap();
    let text: String = deltas.iter().map(|it| it.text.as_str()).collect();
    db.execute("DELETE FROM deltas", params![]).unwrap();
    db.execute("DELETE FROM segments", params![]).unwrap();
    let packed = pack::pack(stream.first(), &deltas);
    db.execute("UPDATE streams SET folded = 1, deltas = ?1, text = ?2", params![packed, text])
        .unwrap();
    drop(db);

    let store = open(dir.path());
    assert_eq!(stored_json(&read_all(&store, &id).await), json(&log));
    while store.fold(9).await.unwrap() > 0 {}
    assert_eq!(stored_json(&read_all(&store, &id).await), json(&log));
    store.close().await;
    let db = Db::Sqlite(Connection::open(connection::file(dir.path())).unwrap());
    let stream = StreamRow::named(&db, 1, "text:p").unwrap().unwrap();
    assert!(stream.has_segments(&db).unwrap());
}

fn one_stream(id: &SessionId, n_deltas: usize) -> Vec<Record> {
    let part_id = PartId::new("p");
    let delta = |n: usize| Event::TextDelta {
        part_id: part_id.clone(),
        parent_call_id: None,
        delta: format!("word{n} "),
    };
    let done = Event::TextDone {
        part_id: part_id.clone(),
        parent_call_id: None,
        text: "all".into(),
        phase: None,
        discarded: false,
    };
    records(id, (0..n_deltas).map(delta).chain([done]))
}

fn all_steps() -> i64 {
    seen().values().map(|it| i64::from(*it)).sum()
}

/// Questions with their answers, from one number to the other.
pub(crate) fn turns(id: &SessionId, from: usize, to: usize) -> Vec<Record> {
    let events = (from..to).flat_map(|n| {
        let (call_id, tool_name) = (CallId::new(format!("c{n}")), "shell".to_owned());
        let part_id = PartId::new(format!("p{n}"));
        [
            Event::UserMessage {
                sent: None,
                message_id: MessageId::new(format!("m{n}")),
                client_id: Some(transcript::ClientId::new(format!("k{n}"))),
                role: Default::default(),
                text: format!("question {n}"),
                attachments: Vec::new(),
                from: None,
            },
            Event::RunStart {
                agent: "demo".into(),
                model: None,
                trigger: Trigger::User,
                exchange_id: None,
            },
            Event::ToolCallStart {
                call_id,
                provider_call_id: None,
                tool_name,
                arguments: None,
                parent_call_id: None,
                executor: Executor::Server,
            },
            Event::TextDelta {
                part_id: part_id.clone(),
                parent_call_id: None,
                delta: "an answer".into(),
            },
            Event::TextDone {
                part_id,
                parent_call_id: None,
                text: format!("answer {n}"),
                phase: None,
                discarded: false,
            },
            Event::RunFinish {
                status: RunStatus::Completed,
                error: None,
                usage: None,
                cost: None,
                duration_ms: Some(1),
            },
        ]
    });
    let mut log = records(id, events);
    for (idx, record) in log.iter_mut().enumerate() {
        record.seq = Seq((6 * from + idx) as u64 + 1);
        if idx % 6 > 0 {
            record.response_id = Some(ResponseId::new(format!("r{}", from + idx / 6)));
        }
    }
    log
}
