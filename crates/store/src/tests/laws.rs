//! Laws that hold for every log, whenever it is folded, reopened and read.

use std::collections::HashMap;

use proptest::prelude::*;
use tempfile::TempDir;
use transcript::{
    ClientId, Event, OutputStream, Record, ResponseId, Seq, SessionId, Summary, Transcript,
};

use super::{append, json, open, read_all, session, stored_json};
use crate::tests::log::{Log, Step, steps, without_covered};
use crate::{MessageKind, MessageRow, ReadRange, Store, Window};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_log_reads_back_however_it_is_kept(
        steps in steps(),
        points in prop::collection::vec((any::<prop::sample::Index>(), 1..40usize), 3),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check(&steps, &points));
    }
}

pub(super) async fn check(steps: &[Step], points: &[(prop::sample::Index, usize)]) {
    let (dir, plain_dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let id = session("s");
    let (store, records) = live(open(dir.path()), dir.path(), &id, steps).await;

    // The same in one append and never folded.
    let plain = open(plain_dir.path());
    append(&plain, &records).await.unwrap();

    for store in [&plain, &store] {
        assert_eq!(stored_json(&read_all(store, &id).await), json(&records));
        for (point, limit) in points {
            check_reads(store, &id, &records, point.index(records.len() + 1), *limit).await;
        }
        check_derived(store, &id, &records).await;
    }
    assert_eq!(rows(&store, &id).await, rows(&plain, &id).await);

    // And once more with all that can be folded.
    while store.fold(3).await.unwrap() > 0 {}
    for (point, limit) in points {
        check_reads(&store, &id, &records, point.index(records.len() + 1), *limit).await;
    }
    check_derived(&store, &id, &records).await;
    assert_eq!(rows(&store, &id).await, rows(&plain, &id).await);
}

/// Does what the steps say, in the order in which they say it.
async fn live(
    mut store: Store,
    dir: &std::path::Path,
    id: &SessionId,
    steps: &[Step],
) -> (Store, Vec<Record>) {
    let mut log = Log::new(id.clone());
    let mut n_committed = 0;
    for step in steps.iter().chain([&Step::Commit]) {
        log.take(step);
        match step {
            Step::Commit if n_committed < log.records.len() => {
                append(&store, &log.records[n_committed..]).await.unwrap();
                n_committed = log.records.len();
            }
            Step::Fold(max) => drop(store.fold(*max).await.unwrap()),
            Step::Reopen => {
                store.close().await;
                store = open(dir);
            }
            _ => (),
        }
    }
    (store, log.records)
}

/// From `point` on, and up to `point`; page by page.
async fn check_reads(
    store: &Store,
    id: &SessionId,
    records: &[Record],
    point: usize,
    limit: usize,
) {
    let at = Seq(point as u64);
    for (after, up_to) in
        [(Seq(0), None), (at, None), (Seq(0), Some(at)), (Seq(at.0 / 2), Some(at))]
    {
        let prefix = &records[..up_to.map_or(records.len(), |it| it.0 as usize)];
        let is_after = |json: &String| seq_of(json) > after;

        let every: Vec<_> = json(prefix).into_iter().filter(is_after).collect();
        let range = ReadRange { after, up_to, limit, deltas: true };
        assert_eq!(read_pages(store, id, range).await, every);

        let few: Vec<_> = without_covered(prefix).into_iter().filter(is_after).collect();
        let range = ReadRange { deltas: false, ..range };
        assert_eq!(read_pages(store, id, range).await, few);
    }
}

async fn read_pages(store: &Store, id: &SessionId, mut range: ReadRange) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let page = store.read(id, range).await.unwrap();
        assert!(page.records.len() <= range.limit);
        let Some(last) = page.records.last() else { return all };
        range.after = last.seq;
        all.extend(stored_json(&page.records));
    }
}

/// Compares look-ups with the records themselves.
async fn check_derived(store: &Store, id: &SessionId, records: &[Record]) {
    let mut summary = Summary::default();
    for record in records {
        summary.apply(record);
    }
    let head = Seq(records.len() as u64);
    assert_eq!(store.summary(id).await.unwrap(), Some((summary, head)));
    assert_eq!(store.head(id).await.unwrap(), Some(head));
    check_client_ids(store, id, records).await;
    assert_eq!(store.queue(id).await.unwrap(), Transcript::replay(records).queue);

    let rows = rows(store, id).await;
    assert!(rows.is_sorted_by_key(|it| it.first));
    assert!(rows.iter().zip(1..).all(|(row, number)| row.number == number));
    let shown: Vec<(String, Record)> = without_covered(records)
        .into_iter()
        .map(|json| (json.clone(), serde_json::from_str(&json).unwrap()))
        .collect();
    for rows in rows.chunks(2).chain([&rows[..]]) {
        let of_rows = shown.iter().filter(|(_, record)| rows.iter().any(|it| is_of(it, record)));
        let expected: Vec<_> = of_rows.map(|(json, _)| json.clone()).collect();
        assert_eq!(stored_json(&store.records_of(id, rows).await.unwrap()), expected);
    }
    for row in rows.iter().filter(|it| it.kind == MessageKind::Answer) {
        let run = store.records_of_run(id, &ResponseId::new(row.id.as_str())).await.unwrap();
        assert_eq!(run, store.records_of(id, std::slice::from_ref(row)).await.unwrap());
    }
    let before = rows.last().map(|it| it.first);
    let window = store.messages(id, Window { before, limit: 2 }).await.unwrap();
    let older = &rows[..rows.len().saturating_sub(1)];
    assert_eq!(window, older[older.len().saturating_sub(2)..]);
    for (idx, row) in rows.iter().enumerate() {
        let later = &rows[idx + 1..];
        let window = store.window_after(id, row.first, 2).await.unwrap();
        assert_eq!(store.messages(id, window).await.unwrap(), later[..later.len().min(2)]);
    }
}

async fn check_client_ids(store: &Store, id: &SessionId, records: &[Record]) {
    let mut last = HashMap::new();
    for record in records {
        if let Event::UserMessage { message_id, client_id: Some(client), .. }
        | Event::MessageQueued { message_id, client_id: Some(client), .. } = &record.event
        {
            last.insert(client.clone(), message_id.clone());
        }
    }
    for n in 0..4 {
        let client = ClientId::new(format!("k{n}"));
        let found = store.message_of_client_id(id, &client).await.unwrap();
        assert_eq!(found.as_ref(), last.get(&client));
    }
}

async fn rows(store: &Store, id: &SessionId) -> Vec<MessageRow> {
    store.messages(id, Window { before: None, limit: usize::MAX }).await.unwrap()
}

fn is_of(row: &MessageRow, record: &Record) -> bool {
    match row.kind {
        MessageKind::Said | MessageKind::Aside => record.seq == row.first,
        MessageKind::Answer => {
            record.response_id == Some(ResponseId::new(row.id.as_str()))
                && !record.event.is_session_event()
        }
    }
}

fn seq_of(json: &str) -> Seq {
    let number = json.strip_prefix(r#"{"seq":"#).and_then(|it| it.split(',').next());
    Seq(number.unwrap().parse().unwrap())
}

/// The model above is ours too, so once with everything spelled out.
#[tokio::test]
async fn covered_deltas_are_left_out_and_output_is_complete() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let mut log = Log::new(id.clone());
    for _ in 0..3 {
        log.take(&text("ab"));
        log.take(&output("out\n"));
    }
    log.take(&Step::TextDone { part: 0, repeats: true });
    log.take(&Step::Result { call: 0, size: 1 });
    log.take(&text("late"));
    append(&store, &log.records).await.unwrap();

    for _ in 0..2 {
        let read =
            store.read(&id, ReadRange { deltas: false, ..super::ALL }).await.unwrap().records;
        let events: Vec<Event> = read.iter().map(|it| it.record().event).collect();
        let [created, output, done, result, late] = &events[..] else { panic!("{events:?}") };
        assert!(matches!(created, Event::SessionCreated { .. }));
        assert!(
            matches!(output, Event::ToolOutputDelta { stream: OutputStream::Stdout, offset: 0, delta, .. }
            if delta == "out\nout\nout\n")
        );
        assert!(matches!(done, Event::TextDone { text, .. } if text == "ababab"));
        assert!(matches!(result, Event::ToolResult { .. }));
        assert!(matches!(late, Event::TextDelta { delta, .. } if delta == "late"));
        assert_eq!(read[1].seq, Seq(7));
        store.fold(9).await.unwrap();
    }
}

fn text(text: &str) -> Step {
    Step::Text { part: 0, text: text.to_owned(), oddity: super::log::Oddity::None }
}

fn output(text: &str) -> Step {
    let (place, oddity) = (super::log::Place::End, super::log::Oddity::None);
    Step::Output { call: 0, stderr: false, place, text: text.to_owned(), oddity }
}
