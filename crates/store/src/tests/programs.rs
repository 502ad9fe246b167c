//! Data about programs: their lines, their processes, and unrecognized messages.

use tempfile::TempDir;
use transcript::{Event, Millis, RawLine, Seq, SessionId};

use super::{append, open, records, session};
use crate::{NumberedLine, Process, Store, Unrecognized, unrecognized_in};

/// Each line made one record, but for every third, which made none.
fn lines(n: u64) -> Vec<RawLine> {
    let line = |n: u64| RawLine {
        at: Millis(n.cast_signed()),
        from: Seq(n),
        to: Seq(if n.is_multiple_of(3) { n - 1 } else { n }),
        text: format!("line {n} \u{1f600}\"\\"),
    };
    (1..=n).map(line).collect()
}

async fn with_session(store: &Store, id: &SessionId) {
    let event = Event::SessionCreated {
        agent: "a".into(),
        workspace: None,
        workspace_confirmed: false,
        title: None,
    };
    append(store, &records(id, [event])).await.unwrap();
}

fn texts(found: &[NumberedLine]) -> Vec<&RawLine> {
    found.iter().map(|it| &it.line).collect()
}

/// However they were cut into batches, and however they are cut into pages.
#[tokio::test]
async fn lines_come_back_as_they_were_put() {
    let all = lines(20);
    for batch in 1..=20 {
        let dir = TempDir::new().unwrap();
        let (store, id) = (open(dir.path()), session("one"));
        with_session(&store, &id).await;
        for lines in all.chunks(batch) {
            store.add_raw(&id, lines.to_vec()).await.unwrap();
        }
        for page in [1, 3, 100] {
            let mut found: Vec<NumberedLine> = Vec::new();
            loop {
                let after = found.last().map_or(0, |it| it.number);
                let next = store.raw(&id, after, page).await.unwrap();
                if next.is_empty() {
                    break;
                }
                assert!(next.len() <= page);
                found.extend(next);
            }
            assert_eq!(texts(&found), all.iter().collect::<Vec<_>>(), "{batch} a batch");
            assert!(found.iter().zip(1..).all(|(it, n)| it.number == n));
        }
        for n in 1..=20 {
            let made = store.raw_of(&id, Seq(n)..=Seq(n), 0, 9).await.unwrap();
            let expected = usize::from(!n.is_multiple_of(3));
            assert_eq!(made.len(), expected, "record {n} with {batch} a batch");
            assert!(made.iter().all(|it| it.number == n));
        }
        assert_eq!(store.raw_of(&id, Seq(21)..=Seq(21), 0, 9).await.unwrap(), []);
        for (first, last) in (1..=20).flat_map(|it| (it..=20).map(move |last| (it, last))) {
            let records = Seq(first)..=Seq(last);
            let found = store.raw_of(&id, records.clone(), 0, 100).await.unwrap();
            let found: Vec<u64> = found.iter().map(|it| it.number).collect();
            let made_any = |it: &u64| !it.is_multiple_of(3);
            let expected = (first..=last).filter(|it| made_any(it) || *it > first);
            assert_eq!(found, expected.collect::<Vec<_>>(), "{records:?} with {batch} a batch");
            let rest = store.raw_of(&id, records.clone(), first, 2).await.unwrap();
            assert!(rest.len() <= 2 && rest.iter().all(|it| it.number > first));
        }
    }
}

#[tokio::test]
async fn lines_go_with_their_time_and_with_their_session() {
    let dir = TempDir::new().unwrap();
    let (store, one, two) = (open(dir.path()), session("one"), session("two"));
    for id in [&one, &two] {
        with_session(&store, id).await;
        for line in lines(5) {
            store.add_raw(id, vec![line]).await.unwrap();
        }
    }
    assert!(store.sweep_raw(Millis(3)).await.unwrap());
    assert_eq!(
        store.raw(&one, 0, 9).await.unwrap().first().unwrap().number,
        3,
        "older ones are gone"
    );
    store.add_raw(&one, lines(1)).await.unwrap();
    assert_eq!(store.raw(&one, 5, 9).await.unwrap()[0].number, 6, "numbers are not used again");
    store.delete_session(&one).await.unwrap();
    assert_eq!(store.raw(&one, 0, 9).await.unwrap(), []);
    assert_eq!(store.raw(&two, 0, 9).await.unwrap().len(), 3);
    store.add_raw(&one, lines(1)).await.unwrap();
    assert_eq!(store.raw(&one, 0, 9).await.unwrap(), [], "there is no such session");
}

#[tokio::test]
async fn processes_are_known_until_they_are_gone() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let process = |mark: &str, leader| Process { mark: mark.to_owned(), leader };
    store.put_process(process("a", None)).await.unwrap();
    store.put_process(process("b", None)).await.unwrap();
    store.put_process(process("a", Some((7, u64::MAX)))).await.unwrap();
    store.close().await;
    let store = open(dir.path());
    let known = [process("a", Some((7, u64::MAX))), process("b", None)];
    assert_eq!(store.processes().await.unwrap(), known);
    store.remove_process("a").await.unwrap();
    assert_eq!(store.processes().await.unwrap(), known[1..]);
}

/// Tests of the embedded database alone: of its files, plans and errors.
mod embedded {
    use super::*;

    #[tokio::test]
    async fn what_is_not_understood_is_counted_by_kind() {
        let dir = TempDir::new().unwrap();
        assert_eq!(unrecognized_in(dir.path()).unwrap(), [], "nothing is there yet");
        let store = open(dir.path());
        let of = |version: &str, kind: &str, n| Unrecognized {
            agent: "a".to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            n,
        };
        let found = |kind: &str, n| of("1", kind, n);
        store.count_unrecognized(vec![found("x", 2), found("y", 1)]).await.unwrap();
        store.count_unrecognized(vec![found("y", 4)]).await.unwrap();
        assert_eq!(store.unrecognized().await.unwrap(), [found("y", 5), found("x", 2)]);
        assert_eq!(unrecognized_in(dir.path()).unwrap().len(), 2, "also while the store is open");
        let many = (0..2000).map(|n| found(&format!("k{n}"), 1)).collect();
        store.count_unrecognized(many).await.unwrap();
        let rows = store.unrecognized().await.unwrap();
        assert_eq!(rows.len(), 51, "names from outside cannot fill the store");
        assert_eq!(rows[0], found("other", 1952));
        store.count_unrecognized(vec![found("y", 1), of("2", "y", 1)]).await.unwrap();
        let rows = store.unrecognized().await.unwrap();
        let counted = [found("y", 6), of("2", "y", 1)];
        assert!(
            counted.iter().all(|it| rows.contains(it)),
            "what is known is counted on: {rows:?}"
        );
        let many = (0..2000).map(|n| of(&n.to_string(), "x", 1)).collect();
        store.count_unrecognized(many).await.unwrap();
        let rows = store.unrecognized().await.unwrap();
        assert_eq!(rows.len(), 501, "nor can versions");
        assert_eq!(rows.iter().map(|it| it.n).sum::<u64>(), 4009, "nothing is lost");
    }
}
