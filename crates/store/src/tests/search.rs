//! Search, against the records themselves.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use transcript::{
    Body, CallId, ErrorCode, ErrorInfo, Event, Executor, Level, MessageId, OutputStream, PartId,
    Record, ResponseId, Seq, SteerState, Validation,
};

use super::{append, open, records, session};
use super::{check_index, inspect};
use crate::files::connection;
use crate::sql::{Row, params};
use crate::tests::log::{Log, Step, steps};
use crate::{Cursor, Found, Hit, ItemKind, Query, Store};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_word_is_found_where_it_is(steps in steps()) {
        runtime().block_on(check_words(&steps));
    }

    #[test]
    fn it_does_not_matter_when_the_index_is_made(
        steps in steps(),
        moments in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        runtime().block_on(check_moments(&steps, &moments));
    }

    #[test]
    fn no_query_is_a_mistake(text in any::<String>(), odd in "[\"*():^{}+ \\-a\u{0}\u{301}]{0,12}") {
        runtime().block_on(async {
            let dir = TempDir::new().unwrap();
            let store = open(dir.path());
            append(&store, &records(&session("s"), [notice("a b")])).await.unwrap();
            for text in [text, odd] {
                store.search(Query { text, limit: 9, ..Query::default() }).await.unwrap();
            }
        });
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

pub(super) async fn check_words(steps: &[Step]) {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let mut log = Log::new(id.clone());
    steps.iter().for_each(|step| log.take(step));
    append(&store, &log.records).await.unwrap();

    let items = model(&log.records);
    let words: BTreeSet<String> = items.iter().flat_map(|it| words(&it.2)).collect();
    for word in words {
        let expected: BTreeSet<_> = items
            .iter()
            .filter(|it| self::words(&it.2).iter().any(|own| own.starts_with(&word)))
            .map(|it| (it.0, it.1))
            .collect();
        let found = find(&store, &word).await;
        assert_eq!(places(&found), expected, "{word}");
        assert!(found.iter().all(|it| it.snippet.iter().any(|piece| piece.1)), "{word}");
    }
}

async fn check_moments(steps: &[Step], moments: &[prop::sample::Index]) {
    let (dir, late_dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (store, late) = (open(dir.path()), open(late_dir.path()));
    let id = session("s");
    let mut log = Log::new(id.clone());
    steps.iter().for_each(|step| log.take(step));

    let moments: HashSet<usize> = moments.iter().map(|it| it.index(log.records.len())).collect();
    let mut start = 0;
    for end in (1..=log.records.len()).filter(|it| moments.contains(it)) {
        append(&store, &log.records[start..end]).await.unwrap();
        store.fold(end % 3).await.unwrap();
        store.catch_up().await.unwrap();
        start = end;
    }
    if start < log.records.len() {
        append(&store, &log.records[start..]).await.unwrap();
    }
    append(&late, &log.records).await.unwrap();
    for word in ["e", "s", "a", "r", "n"] {
        assert_eq!(find(&store, word).await, find(&late, word).await);
    }
    assert_eq!(kept_items(dir.path()), kept_items(late_dir.path()));
}

type KeptItem = (i64, String, Option<String>, String);

fn kept_items(dir: &Path) -> Vec<KeptItem> {
    check_index(dir);
    let sql = "SELECT seq, kind, message, text FROM items ORDER BY key";
    inspect(dir, |db| {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        db.all(sql, params![], read).unwrap()
    })
}

/// Reference implementation of the search over these records.
fn model(records: &[Record]) -> Vec<(u64, ItemKind, String)> {
    let mut items = Vec::new();
    for record in records {
        let mut add = |kind, text: &str| items.push((record.seq.0, kind, text.to_owned()));
        match &record.event {
            Event::SessionUpdated { title: Some(title), .. } => add(ItemKind::Title, title),
            Event::UserMessage { text, .. } => add(ItemKind::Message, text),
            Event::TextDone { text, .. } => add(ItemKind::Text, text),
            Event::ThinkingDone { text, .. } => add(ItemKind::Thinking, text),
            Event::ToolArgumentsDone { arguments, .. } => add(ItemKind::Arguments, arguments),
            Event::Notice { text, .. } => add(ItemKind::Notice, text),
            Event::ToolResult { result: Some(Value::Object(result)), output, call_id, .. } => {
                add(ItemKind::Result, &format!("é {}", result["é"].as_str().unwrap()));
                let streamed = || streamed(records, call_id, record.seq);
                add(ItemKind::Output, &output.clone().unwrap_or_else(streamed));
            }
            _ => (),
        }
    }
    items
}

/// The output of a call that this number closes: of each stream the deltas that are plain, and of the
/// run that began it.
fn streamed(records: &[Record], call: &CallId, closed: Seq) -> String {
    let mut outputs: BTreeMap<bool, (Option<Body>, Option<ResponseId>)> = BTreeMap::new();
    let mut finished = HashSet::new();
    for record in records.iter().take_while(|it| it.seq < closed) {
        let is_late = record.response_id.as_ref().is_some_and(|it| finished.contains(it));
        match &record.event {
            Event::ToolResult { call_id, .. } if call_id == call => {
                outputs.values_mut().for_each(|it| it.0 = None);
            }
            Event::RunFinish { .. } => finished.extend(record.response_id.clone()),
            Event::ToolOutputDelta { call_id, stream, offset, delta }
                if call_id == call && record.extra.is_empty() && !is_late =>
            {
                let new = || (Some(Body::keeping(usize::MAX)), record.response_id.clone());
                let output = outputs.entry(*stream == OutputStream::Stderr).or_insert_with(new);
                if let (Some(body), run) = output
                    && *run == record.response_id
                {
                    body.replace_from(*offset, delta);
                }
            }
            _ => (),
        }
    }
    let open = outputs.values().filter_map(|it| it.0.as_ref());
    open.map(|it| it.whole().unwrap() + "\n").collect()
}

fn words(text: &str) -> Vec<String> {
    let plain = text.to_lowercase().replace('é', "e");
    let words = plain.split(|c: char| !c.is_alphanumeric());
    // Of an endless word, FTS5 knows no more than this.
    words.filter(|it| !it.is_empty()).map(|it| it[..it.len().min(32_768)].to_owned()).collect()
}

async fn find(store: &Store, text: &str) -> Vec<Hit> {
    let query = Query { text: text.to_owned(), limit: usize::MAX, ..Query::default() };
    store.search(query).await.unwrap().hits
}

fn places(hits: &[Hit]) -> BTreeSet<(u64, ItemKind)> {
    hits.iter().map(|it| (it.seq.0, it.kind)).collect()
}

#[tokio::test]
async fn each_kind_is_found_in_its_message() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    let call_id = CallId::new("c");
    let mut log = records(
        &id,
        [
            Event::SessionCreated {
                agent: "a".into(),
                workspace: None,
                workspace_confirmed: false,
                title: Some("apple".into()),
            },
            said("m1", "Pear, naïve"),
            start(&call_id, "grep"),
            arguments(&call_id, r#"{"pattern":"x\ncherry"}"#),
            output(&call_id, 0, "plum damson"),
            output(&call_id, 5, "quince"),
            result(&call_id),
            text_done("fig", false),
            text_done("grape", true),
            notice("lemon"),
            notice("orange"),
            Event::MessageSteered {
                message_id: MessageId::new("m2"),
                text: "melon".into(),
                state: SteerState::HandedOver,
            },
        ],
    );
    for seq in [1, 3, 4, 5, 6, 7, 8, 9, 11, 12] {
        log[seq - 1].response_id = Some(ResponseId::new("r1"));
    }
    append(&store, &log).await.unwrap();

    for (text, seq, message, kind) in [
        ("apple", 1, None, ItemKind::Title),
        ("PEAR", 2, Some("m1"), ItemKind::Message),
        ("naive pear", 2, Some("m1"), ItemKind::Message),
        ("pea", 2, Some("m1"), ItemKind::Message),
        ("grep cherry", 4, Some("r1"), ItemKind::Arguments),
        ("plum-quince", 7, Some("r1"), ItemKind::Output),
        ("banana", 7, Some("r1"), ItemKind::Result),
        ("kiwi", 7, Some("r1"), ItemKind::Result),
        ("fig", 8, Some("r1"), ItemKind::Text),
        ("lemon", 10, Some("n10"), ItemKind::Notice),
        ("orange", 11, Some("r1"), ItemKind::Notice),
        ("melon", 12, Some("r1"), ItemKind::Message),
    ] {
        let found = find(&store, text).await;
        let [hit] = &found[..] else { panic!("{text}: {found:?}") };
        assert_eq!((hit.seq, hit.kind), (Seq(seq), kind), "{text}");
        assert_eq!(hit.message_id.as_deref(), message, "{text}");
    }
    for text in ["", " \n", "--", "grape", "damson", "pe naive", "quince-plum", "apple fig"] {
        assert_eq!(find(&store, text).await, [], "{text}");
    }
}

#[tokio::test]
async fn snippets_show_the_matches() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let long = "x".repeat(10_000);
    let many = "é ".repeat(30_000) + "plum" + &" é".repeat(30_000);
    let texts = ["a <b>\u{2}Pear</b> tree\u{0}", &long, &many];
    let log = records(&session("s"), texts.map(notice));
    append(&store, &log).await.unwrap();
    let pieces: Vec<_> = find(&store, "pear").await.remove(0).snippet;
    let pieces: Vec<_> = pieces.iter().map(|(text, is_match)| (text.as_str(), *is_match)).collect();
    assert_eq!(pieces, [("a <b> ", false), ("Pear", true), ("</b> tree ", false)]);

    let endless = find(&store, "xxx").await.remove(0).snippet;
    assert_eq!(endless, [("x".repeat(200), true), ("…".to_owned(), false)]);
    // Where most of the words are, and without delay.
    let many = find(&store, "é plum").await.remove(0).snippet;
    let shown: String = many.iter().map(|it| it.0.as_str()).collect();
    assert!(shown.starts_with("…é é é") && shown.contains("plum"), "{shown}");
    assert!(many.iter().filter(|it| it.1).all(|it| it.0 == "é" || it.0 == "plum"));
}

/// However many matches there are, and wherever: found in one pass, and marked as FTS5 would.
#[tokio::test]
async fn snippets_of_long_texts_are_marked() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let filler = "the tide turns twice ".repeat(20_000);
    let log = records(
        &session("s"),
        [
            notice(&format!("{filler} harbour\u{a0}master {filler}")),
            notice(&format!("{filler}\u{3000}\u{3000}naïve-harbour")),
        ],
    );
    append(&store, &log).await.unwrap();
    for (query, matches) in [
        ("t", &["the", "tide", "turns", "twice"][..]),
        ("harbour master", &["harbour", "master"]),
        ("NAIVE-har", &["naïve-harbour"]),
        ("twice naive", &["twice", "naïve"]),
    ] {
        let found = find(&store, query).await;
        assert!(!found.is_empty(), "{query}");
        for hit in found {
            let marked: Vec<&str> =
                hit.snippet.iter().filter(|it| it.1).map(|it| it.0.as_str()).collect();
            assert!(matches.iter().all(|it| marked.contains(it)), "{query}: {:?}", hit.snippet);
            // The last one may be cut off.
            let is_one = |marked: &&str| matches.iter().any(|it| it.starts_with(marked));
            assert!(marked.iter().all(is_one), "{query}: {:?}", hit.snippet);
        }
    }
}

/// Searches and other reads have permits of their own: either goes on while the other has none left.
#[tokio::test]
async fn searches_and_other_reads_do_not_wait_for_each_other() {
    let dir = TempDir::new().unwrap();
    let (store, id) = (open(dir.path()), session("s"));
    append(&store, &records(&id, [notice("pear")])).await.unwrap();
    let guard = std::time::Duration::from_secs(60);

    let reads =
        store.inner.reader_permits.acquire_many(crate::READING_THREADS as u32).await.unwrap();
    let found = tokio::time::timeout(guard, find(&store, "pear")).await;
    assert_eq!(found.expect("a search needs no permit of other reads").len(), 1);
    drop(reads);

    let _searches = store.inner.search_permits.acquire_many(crate::SEARCHING_THREADS as u32).await;
    let head = tokio::time::timeout(guard, store.head(&id))
        .await
        .expect("a read needs no permit of searches");
    assert_eq!(head.unwrap(), Some(Seq(1)));
}

#[tokio::test]
async fn pages_follow_each_other_and_filters_hold() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    for (name, archived) in [("one", false), ("two", true), ("three", false)] {
        let archive = Event::SessionUpdated {
            agent: None,
            workspace: None,
            workspace_confirmed: false,
            title: None,
            archived: Some(archived),
        };
        let pears = (1..=7).map(|n| notice(&"pear ".repeat(n % 3 + 1)));
        append(&store, &records(&session(name), [archive].into_iter().chain(pears))).await.unwrap();
    }
    let query = Query { text: "pear".into(), limit: usize::MAX, ..Query::default() };
    let all = store.search(query.clone()).await.unwrap();
    assert_eq!((all.hits.len(), all.next), (21, None));

    let mut paged = Vec::new();
    let mut page = Query { limit: 4, ..query.clone() };
    loop {
        let Found { hits, next } = store.search(page.clone()).await.unwrap();
        paged.extend(hits);
        let Some(next) = next else { break };
        page.before = Cursor::parse(&next.to_string());
        assert_eq!(page.before, Some(next));
    }
    assert_eq!(paged, all.hits);

    let one = Query { session: Some(session("one")), ..query.clone() };
    let hits = store.search(one).await.unwrap().hits;
    assert!(hits.len() == 7 && hits.iter().all(|it| it.session == session("one")));
    for (archived, n_hits) in [(true, 7), (false, 14)] {
        let filtered = Query { archived: Some(archived), ..query.clone() };
        let hits = store.search(filtered).await.unwrap().hits;
        assert_eq!(hits.len(), n_hits);
        assert!(hits.iter().all(|it| (it.session == session("two")) == archived));
    }
    assert_eq!(Cursor::parse("no cursor"), None);
}

/// Also when nobody searches, and after the store was closed in between.
#[tokio::test]
async fn the_index_goes_on_where_it_was() {
    let dir = TempDir::new().unwrap();
    let id = session("s");
    let texts: Vec<String> = (0..3000).map(|n| format!("word{n} pear")).collect();
    let log = records(&id, texts.iter().map(|it| notice(it)));
    let store = open(dir.path());
    append(&store, &log[..2000]).await.unwrap();
    // One batch of several.
    let (done, answer) = tokio::sync::oneshot::channel();
    store.send(crate::writer::Job::Index { done });
    assert!(answer.await.unwrap().unwrap());
    store.close().await;
    let n_indexed = kept_items(dir.path()).len();
    assert!((1..2000).contains(&n_indexed), "{n_indexed}");

    let store = open(dir.path());
    assert_eq!(find(&store, "word1999").await.len(), 1);
    append(&store, &log[2000..]).await.unwrap();
    assert_eq!(find(&store, "pear").await.len(), 3000);
    assert_eq!(find(&store, "word1234").await.len(), 1);
}

fn notice(text: &str) -> Event {
    Event::Notice { level: Level::Info, text: text.to_owned() }
}

fn said(id: &str, text: &str) -> Event {
    Event::UserMessage {
        sent: None,
        message_id: MessageId::new(id),
        client_id: None,
        role: Default::default(),
        text: text.into(),
        attachments: Vec::new(),
        from: None,
    }
}

fn start(call: &CallId, name: &str) -> Event {
    Event::ToolCallStart {
        call_id: call.clone(),
        provider_call_id: None,
        tool_name: name.into(),
        arguments: None,
        parent_call_id: None,
        executor: Executor::Server,
    }
}

fn arguments(call: &CallId, arguments: &str) -> Event {
    Event::ToolArgumentsDone {
        call_id: call.clone(),
        arguments: arguments.into(),
        summary: String::new(),
        incomplete: false,
        validation: Validation::NotRequired,
        provider_data: None,
    }
}

fn output(call: &CallId, offset: u64, delta: &str) -> Event {
    let stream = OutputStream::Stdout;
    Event::ToolOutputDelta { call_id: call.clone(), stream, offset, delta: delta.into() }
}

fn result(call: &CallId) -> Event {
    Event::ToolResult {
        call_id: call.clone(),
        tool_name: "grep".into(),
        ok: false,
        result: Some(json!(["banana", 1])),
        output: None,
        error: Some(ErrorInfo::new(ErrorCode::ToolError, "no kiwi")),
        summary: None,
        duration_ms: Some(1),
        truncated: None,
    }
}

fn text_done(text: &str, discarded: bool) -> Event {
    Event::TextDone {
        part_id: PartId::new(text),
        parent_call_id: None,
        text: text.into(),
        phase: None,
        discarded,
    }
}

/// Tests of the embedded database alone: of its files, plans and errors.
mod embedded {
    use super::*;

    /// Every Latin, Greek and Cyrillic letter is the same to the snippet as it is to the index.
    #[tokio::test]
    async fn letters_are_folded_as_the_index_folds_them() {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        let ranges = ['\u{30}'..='\u{24f}', '\u{370}'..='\u{4ff}', '\u{1e00}'..='\u{1eff}'];
        let letters: Vec<char> =
            ranges.into_iter().flatten().filter(|it| it.is_alphanumeric()).collect();
        let texts = letters.iter().map(|it| notice(&format!("x{it}z")));
        append(&store, &records(&session("s"), texts)).await.unwrap();
        store.catch_up().await.unwrap();
        let db = Connection::open(connection::file(dir.path())).unwrap();
        db.execute_batch("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, search, instance)")
            .unwrap();
        let mut find = db.prepare("SELECT term, doc FROM temp.words").unwrap();
        let rows = find.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let terms: Vec<(String, i64)> = rows.collect::<Result<_, _>>().unwrap();
        assert!(terms.len() >= letters.len());
        let mut different = Vec::new();
        for (term, doc) in terms {
            let letter = letters[doc as usize - 1];
            if term != format!("x{}z", crate::search::words::fold(letter)) {
                different.push((letter, term));
            }
        }
        // Greek letters that have two forms, and letters that are younger than the index's tables.
        assert!(different.len() < 16, "{different:?}");
    }

    #[test]
    fn a_read_ends_with_its_caller() {
        use crate::search::interrupt::{Interrupt, InterruptOnDrop};

        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        let interrupt = std::sync::Arc::new(Interrupt::default());
        let caller = InterruptOnDrop(interrupt.clone());
        let (begun, has_begun) = std::sync::mpsc::channel();
        let read = std::thread::spawn(move || {
            store.inner.readers.read_until(&interrupt, |db| {
                let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
                               SELECT max(i) FROM n";
                begun.send(()).unwrap();
                db.one(endless, params![], |row| row.get::<i64>(0))
            })
        });
        has_begun.recv().unwrap();
        drop(caller);
        assert!(read.join().unwrap().is_err());
    }
}
