//! Small logs, and what is looked up in them.

use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;
use transcript::{
    Event, FOREIGN_PART, MAX_UNRECOGNIZED, MessageId, Millis, PartId, Record, ResponseId,
    RewindReason, RunStatus, Seq, SteerState, Transcript, Trigger,
};

use super::{append, json, open, read_all, records, session, stored_json};
use crate::files::connection;
use crate::log::read;
use crate::{AppendError, MessageKind, ReadRange, Stored, Window};

#[tokio::test]
async fn an_append_that_expects_another_head_writes_nothing() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let log = records(&id, [created(), said("m1"), said("m2")]);
    assert_eq!(append(&store, &log[1..]).await, Err(AppendError::Conflict { head: Seq(0) }));
    assert_eq!(store.head(&id).await.unwrap(), None);

    append(&store, &log[..2]).await.unwrap();
    assert_eq!(append(&store, &log[..2]).await, Err(AppendError::Conflict { head: Seq(2) }));
    let gap = store.append(&id, Seq(2), Arc::from(&log[..1])).await;
    assert_eq!(gap, Err(AppendError::Misnumbered));
    assert_eq!(stored_json(&read_all(&store, &id).await), json(&log[..2]));
}

#[tokio::test]
async fn sessions_do_not_disturb_each_other() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let (one, two) = (session("one"), session("two"));
    let log_of = |id| records(id, (0..50).map(|n| text_delta("p", &n.to_string())));
    let (log_one, log_two) = (log_of(&one), log_of(&two));
    for (a, b) in log_one.chunks(3).zip(log_two.chunks(3)) {
        let (a, b) = tokio::join!(append(&store, a), append(&store, b));
        a.and(b).unwrap();
    }
    assert_eq!(stored_json(&read_all(&store, &one).await), json(&log_one));
    assert_eq!(stored_json(&read_all(&store, &two).await), json(&log_two));
}

#[tokio::test]
async fn messages_have_their_place() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let mut log = records(
        &id,
        [
            created(),
            said("m1"),
            run_start(),
            text_delta("p", "a"),
            queued("m2"),
            notice(),
            run_finish(),
            notice(),
            said("m1"),
            Event::HistoryRewound {
                before_message_id: "r1".into(),
                reason: RewindReason::Regenerate,
            },
            Event::MessageDequeued { message_id: MessageId::new("m2") },
            said("m2"),
        ],
    );
    for seq in 3..=7 {
        log[seq - 1].response_id = Some(ResponseId::new("r1"));
    }
    append(&store, &log).await.unwrap();

    let rows = store.messages(&id, Window { before: None, limit: 10 }).await.unwrap();
    let short: Vec<_> = rows
        .iter()
        .map(|it| (it.id.as_str(), it.kind, it.first.0, it.last.0, it.open, it.superseded))
        .collect();
    assert_eq!(
        short,
        [
            ("m1", MessageKind::Said, 2, 2, false, false),
            ("r1", MessageKind::Answer, 3, 7, false, true),
            ("n8", MessageKind::Aside, 8, 8, false, true),
            ("m2", MessageKind::Said, 12, 12, false, false),
        ]
    );
    assert_eq!(store.message_row(&id, "n8").await.unwrap().as_ref(), Some(&rows[2]));
    let window = Window { before: Some(Seq(8)), limit: 1 };
    assert_eq!(store.messages(&id, window).await.unwrap(), rows[1..2]);
    let of_run = store.records_of_run(&id, &ResponseId::new("r1")).await.unwrap();
    assert_eq!(of_run.iter().map(|it| it.seq.0).collect::<Vec<_>>(), [3, 4, 6, 7]);
}

#[tokio::test]
async fn the_queue_starts_where_it_was_last_empty() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let message_id = MessageId::new;
    let steps = [
        (created(), None),
        (queued("m1"), Some(2)),
        (queued("m2"), Some(2)),
        (queued("m3"), Some(2)),
        (Event::MessageDequeued { message_id: message_id("m1") }, Some(2)),
        (steered("m2", SteerState::Seen), Some(2)),
        (steered("m2", SteerState::HandedOver), Some(2)),
        (Event::MessageDropped { message_id: message_id("m3"), reason: None }, None),
        (queued("m4"), Some(9)),
    ];
    let log = records(&id, steps.iter().map(|it| it.0.clone()));
    for (record, (_, start)) in log.chunks(1).zip(&steps) {
        append(&store, record).await.unwrap();
        assert_eq!(store.queue_start(&id).await.unwrap(), start.map(Seq), "{record:?}");
    }
}

#[tokio::test]
async fn moved_messages_keep_their_place_when_others_leave() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let events = [
        created(),
        queued("m1"),
        queued("m2"),
        queued("m3"),
        Event::MessageMoved { message_id: MessageId::new("m3"), position: 1 },
        Event::MessageDequeued { message_id: MessageId::new("m1") },
    ];
    append(&store, &records(&id, events)).await.unwrap();
    let queue = store.queue(&id).await.unwrap();
    let waiting: Vec<&str> = queue.messages.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(waiting, ["m3", "m2"]);
}

#[tokio::test]
async fn a_session_needs_attention_while_something_is_open() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let steps = [
        (created(), false),
        (said("m1"), true),
        (run_start(), true),
        (run_finish(), false),
        (queued("m2"), true),
        (Event::MessageDropped { message_id: MessageId::new("m2"), reason: None }, false),
    ];
    let mut log = records(&id, steps.iter().map(|it| it.0.clone()));
    for (record, (_, expected)) in log.chunks_mut(1).zip(&steps) {
        record[0].response_id = Some(ResponseId::new("r1"));
        append(&store, record).await.unwrap();
        assert_eq!(!store.needing_attention().await.unwrap().is_empty(), *expected, "{record:?}");
    }
}

#[tokio::test]
async fn sessions_are_listed_by_their_last_change() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    for (name, at) in [("a", 3), ("b", 5), ("c", 3), ("d", 1)] {
        let id = session(name);
        let mut log = records(&id, [created(), archived(name == "b")]);
        log.iter_mut().for_each(|it| it.at = Millis(at));
        append(&store, &log).await.unwrap();
    }
    let names = async |archived, limit, before| {
        let listed = store.sessions(archived, limit, before).await.unwrap();
        listed.iter().map(|it| it.0.to_string()).collect::<Vec<_>>().concat()
    };
    assert_eq!(names(None, 9, None).await, "bcad");
    assert_eq!(names(Some(false), 2, None).await, "ca");
    assert_eq!(names(Some(true), 9, None).await, "b");
    assert_eq!(names(None, 9, Some((Millis(3), session("c")))).await, "ad");
    assert_eq!(store.sessions(None, 1, None).await.unwrap()[0].2, Seq(2));
}

async fn pages_for(store: &crate::Store, records: &[Record]) -> u64 {
    let before = store.pages_written();
    for record in records.chunks(1) {
        append(store, record).await.unwrap();
    }
    store.pages_written() - before
}

fn created() -> Event {
    Event::SessionCreated {
        agent: "a".into(),
        workspace: None,
        workspace_confirmed: false,
        title: None,
    }
}

fn archived(archived: bool) -> Event {
    Event::SessionUpdated {
        agent: None,
        workspace: None,
        workspace_confirmed: false,
        title: None,
        archived: Some(archived),
    }
}

fn said(id: &str) -> Event {
    Event::UserMessage {
        sent: None,
        message_id: MessageId::new(id),
        client_id: None,
        role: Default::default(),
        text: "hello".into(),
        attachments: Vec::new(),
        from: None,
    }
}

fn queued(id: &str) -> Event {
    Event::MessageQueued {
        sent: None,
        message_id: MessageId::new(id),
        client_id: None,
        text: "later".into(),
        attachments: Vec::new(),
        position: None,
        held: false,
        mode: Default::default(),
        from: None,
    }
}

fn steered(id: &str, state: SteerState) -> Event {
    Event::MessageSteered { message_id: MessageId::new(id), text: String::new(), state }
}

fn text_delta(part: &str, delta: &str) -> Event {
    Event::TextDelta { part_id: PartId::new(part), parent_call_id: None, delta: delta.into() }
}

fn notice() -> Event {
    Event::Notice { level: transcript::Level::Info, text: "n".into() }
}

fn run_start() -> Event {
    Event::RunStart { agent: "a".into(), model: None, trigger: Trigger::User, exchange_id: None }
}

fn run_finish() -> Event {
    Event::RunFinish {
        status: RunStatus::Completed,
        error: None,
        usage: None,
        cost: None,
        duration_ms: Some(1),
    }
}

#[tokio::test]
async fn what_is_superseded_is_neither_the_last_nor_counted() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let rewound =
        Event::HistoryRewound { before_message_id: "m2".to_owned(), reason: RewindReason::Edit };
    let log = records(&id, [created(), said("m1"), said("m2"), rewound, said("m3")]);
    append(&store, &log).await.unwrap();
    let last = store.last_of(&id, MessageKind::Said).await.unwrap().unwrap();
    assert_eq!((last.id.as_str(), last.first), ("m3", Seq(5)));
    assert!(store.last_of(&id, MessageKind::Answer).await.unwrap().is_none());
    for (before, expected) in (1..).zip([0, 0, 1, 1, 1, 2]) {
        let count = store.count_before(&id, MessageKind::Said, Seq(before)).await.unwrap();
        assert_eq!(count, expected, "before {before}");
    }
    assert_eq!(store.count_before(&id, MessageKind::Answer, Seq(6)).await.unwrap(), 0);
}

/// However many there are, what leaves the store makes the same answer.
#[tokio::test]
async fn folded_unrecognized_records_make_the_same_message() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let line = |n: u64| Event::Unrecognized {
        source: if n.is_multiple_of(5) { FOREIGN_PART.into() } else { "claude".into() },
        raw: format!("line {n}"),
        lines: 1 + n % 3,
    };
    let start = Event::RunStart {
        agent: "claude".into(),
        model: None,
        trigger: Trigger::User,
        exchange_id: None,
    };
    let run = ResponseId::new("r1");
    let events = [created(), said("m1"), start].into_iter().chain((0..400).map(line));
    let mut log = records(&id, events);
    for record in &mut log[2..] {
        record.response_id = Some(run.clone());
    }
    append(&store, &log).await.unwrap();

    let of_run = store.records_of_run(&id, &run).await.unwrap();
    assert!(of_run.len() < 1 + 80 + MAX_UNRECOGNIZED + 3, "{} records", of_run.len());
    let of_run: Vec<Record> = of_run.iter().map(Stored::record).collect();
    let answer = |records: &[Record]| Transcript::replay(records).message("r1").cloned();
    assert_eq!(answer(&of_run), answer(&log[2..]));
    let range = ReadRange { after: Seq(0), up_to: None, limit: 1000, deltas: false };
    assert_eq!(
        store.read(&id, range).await.unwrap().records.len(),
        log.len(),
        "the log has them all"
    );
}

/// Tests of the embedded database alone: of its files, plans and errors.
mod embedded {
    use super::*;

    #[tokio::test]
    async fn a_failed_write_fails_whole_and_the_next_is_tried() {
        let dir = TempDir::new().unwrap();
        let (store, id) = (open(dir.path()), session("s"));
        let log = records(&id, [created(), text_delta("p", "a"), said("m1"), text_delta("p", "b")]);
        append(&store, &log[..1]).await.unwrap();

        let other = Connection::open(connection::file(dir.path())).unwrap();
        let trigger =
            "CREATE TRIGGER full BEFORE INSERT ON messages BEGIN SELECT RAISE(ABORT, 'x'); END";
        other.execute_batch(trigger).unwrap();
        let failed = append(&store, &log[1..]).await;
        assert!(matches!(failed, Err(AppendError::Storage(_))), "{failed:?}");
        assert_eq!(stored_json(&read_all(&store, &id).await), json(&log[..1]));

        other.execute_batch("DROP TRIGGER full").unwrap();
        append(&store, &log[1..]).await.unwrap();
        assert_eq!(stored_json(&read_all(&store, &id).await), json(&log));
    }

    /// The rows go in well; it is the commit that fails.
    #[tokio::test]
    async fn a_failed_commit_is_a_failed_append() {
        let dir = TempDir::new().unwrap();
        let (store, id) = (open(dir.path()), session("s"));
        let log = records(&id, [created(), said("m1")]);
        append(&store, &log[..1]).await.unwrap();

        let other = Connection::open(connection::file(dir.path())).unwrap();
        let trap = "CREATE TABLE parent (key INTEGER PRIMARY KEY);
                    CREATE TABLE child (key REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
                    CREATE TRIGGER trap AFTER INSERT ON messages
                    BEGIN INSERT INTO child VALUES (7); END";
        other.execute_batch(trap).unwrap();
        let failed = append(&store, &log[1..]).await;
        assert!(matches!(failed, Err(AppendError::Storage(_))), "{failed:?}");
        assert_eq!(stored_json(&read_all(&store, &id).await), json(&log[..1]));

        other.execute_batch("DROP TRIGGER trap").unwrap();
        append(&store, &log[1..]).await.unwrap();
        assert_eq!(stored_json(&read_all(&store, &id).await), json(&log));
    }

    /// A message may wait for ever while a conversation goes on, and is read with every page of it.
    #[tokio::test]
    async fn what_waits_is_found_without_what_was_said_since() {
        let dir = TempDir::new().unwrap();
        let (store, id) = (open(dir.path()), session("s"));
        append(&store, &records(&id, [created(), queued("m1")])).await.unwrap();
        let db = Connection::open(connection::file(dir.path())).unwrap();
        let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {}", read::ABOUT_QUEUE)).unwrap();
        let steps = plan.query_map([1, 2], |row| row.get::<_, String>(3)).unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        let [step] = &steps[..] else { panic!("{steps:?}") };
        assert!(step.contains("records_about_queue (session=? AND seq>?)"), "{step}");
        assert_eq!(store.queue(&id).await.unwrap().messages.len(), 1);
    }

    /// Counted in pages: a lone delta costs the same, however long the session.
    #[tokio::test]
    async fn the_cost_of_a_delta_does_not_grow() {
        let dir = TempDir::new().unwrap();
        let (store, id) = (open(dir.path()), session("s"));
        let mut log: Vec<Record> =
            records(&id, (0..21_000).map(|_| text_delta("p", "some words ")));
        log.iter_mut().for_each(|it| it.response_id = Some(ResponseId::new("r1")));

        append(&store, &log[..100]).await.unwrap();
        let young = pages_for(&store, &log[100..1100]).await;
        append(&store, &log[1100..20_000]).await.unwrap();
        let old = pages_for(&store, &log[20_000..]).await;
        // One leaf for each, and what SQLite rewrites around a leaf that is full.
        assert!((1000..1250).contains(&young), "{young} pages for 1000 deltas");
        assert!(old.abs_diff(young) <= 50, "first {young}, then {old} pages for 1000 deltas");
    }
}
