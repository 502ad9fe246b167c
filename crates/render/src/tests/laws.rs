//! The central property: the page at record m plus the patches for m+1 to n equals the page at record n.

use proptest::prelude::*;
use testkit::logs::any_log;
use transcript::{CallId, Event, Record, Seq, SessionId, Transcript};

use super::bodies::KINDS;
use super::corpus;
use crate::page::chrome::Chrome;
use crate::page::conversation::{Reach, messages};
use crate::testing::dom::{Changed, Node, element};
use crate::testing::{
    apply, assert_same, check_any_two, check_every_prefix, check_ids, check_words, view, window,
};
use crate::{Bodies, Files, Live, OpenSession, View, embedded, html_at, messages_page, whole_body};

#[test]
#[expect(clippy::print_stdout, reason = "the number of comparisons is part of the result")]
fn patches_give_the_page_of_every_prefix() {
    let mut compared = 0;
    for (name, records) in corpus::logs() {
        let cuts = check_every_prefix(&records);
        assert!(cuts > 0, "{name} is empty");
        compared += cuts;
    }
    println!("{compared} cuts compared");
    assert!(compared > 300, "{compared} cuts");
}

#[test]
fn one_patch_connects_any_two_pages() {
    for (_, records) in corpus::short_logs() {
        for n in (0..=records.len()).step_by(9) {
            (0..=n).for_each(|m| check_any_two(&records, m, n));
        }
    }
}

/// A text that becomes long, or short again, within one patch.
#[test]
fn one_patch_connects_pages_of_long_texts() {
    let records = corpus::long_words();
    for n in (0..=records.len()).step_by(4) {
        (0..=n).step_by(3).for_each(|m| check_any_two(&records, m, n));
    }
}

/// Checks that patches turn every window of a page into the same window of a later page, whether or not it
/// reaches the end. Returns the number of windows that end before the end.
fn check_windows(records: &[Record], m: usize, n: usize) -> usize {
    let (before, after) = (Transcript::replay(&records[..m]), Transcript::replay(&records[..n]));
    let (len, later_len) = (before.messages.len(), after.messages.len());
    let seen = before.head;
    let patch = Live::new(view(), before.clone()).apply(&records[m..n]);
    let caught_up = Live::new(view(), after.clone()).since(seen);
    let mut partial = 0;
    for ops in patch.iter().chain(&caught_up) {
        for (start, end) in
            (0..len).flat_map(|start| (start + 1..=len).map(move |end| (start, end)))
        {
            let later_end = if end == len { later_len } else { end };
            let mut shown = window(&before, start..end);
            apply(&mut shown, ops);
            let when = format!("messages {start} to {end}, from {m} to {n}");
            assert_same(&shown, &window(&after, start..later_end), &when);
            partial += usize::from(end < len);
        }
    }
    partial
}

/// Checks the patches of a server that keeps only the last messages: pages that show earlier ones are updated,
/// others ignore the operations. Returns the number of cuts.
fn check_cuts(records: &[Record], m: usize, n: usize) -> usize {
    let (before, after) = (Transcript::replay(&records[..m]), Transcript::replay(&records[..n]));
    if !records[m..n].iter().all(|it| is_well_formed(&before, &after, it)) {
        return 0;
    }
    let list = |transcript: &Transcript| {
        let list = messages(&view(), &transcript.messages, Reach::End);
        element("page", &list.to_html())
    };
    let expected = list(&after);
    for cut in 0..=before.messages.len() {
        let mut kept = before.clone();
        kept.drop_earlier(cut);
        let mut live = Live::new(view(), kept);
        let Some(mut ops) = live.apply(&records[m..n]) else { continue };
        let missed = live.take_missed();
        ops.extend(missed.iter().filter_map(|id| Some(live.put(after.message(id.as_str())?))));
        let mut shown = list(&before);
        apply(&mut shown, &ops);
        assert_same(&shown, &expected, &format!("without the first {cut}, from {m} to {n}"));
    }
    before.messages.len()
}

/// Returns whether a server could write the record: a run begins with its start, and nothing starts twice.
fn is_well_formed(before: &Transcript, after: &Transcript, record: &Record) -> bool {
    let run = record.response_id.as_ref().map(|it| it.as_str());
    match (&record.event, run) {
        (Event::UserMessage { message_id, .. }, _) => before.message(message_id.as_str()).is_none(),
        (Event::RunStart { .. }, Some(run)) => before.message(run).is_none(),
        (Event::HistoryRewound { .. }, _) => false,
        (event, Some(run)) if !event.is_session_event() => {
            before.message(run).is_some()
                || after.message(run).is_none_or(|it| it.first < record.seq)
        }
        _ => true,
    }
}

#[test]
fn patches_of_the_last_messages_update_every_page() {
    let mut cuts = 0;
    for (_, records) in corpus::short_logs() {
        for n in (0..=records.len()).step_by(9) {
            cuts += (0..=n).step_by(7).map(|m| check_cuts(&records, m, n)).sum::<usize>();
        }
    }
    assert!(cuts > 100, "{cuts} cuts");
}

/// A page that has been open for long equals one that was just loaded.
#[test]
fn the_chrome_depends_only_on_the_last_messages() {
    let (_, exchange) = corpus::logs().into_iter().find(|(name, _)| *name == "exchange").unwrap();
    let mut long = Transcript::replay(&exchange);
    let mut head = long.head;
    while long.messages.len() < 2 * crate::WINDOW {
        head = head.next();
        let message = r#"{"type":"user_message","messageId":"m","text":"more"}"#
            .replace("\"m\"", &format!("\"m{head}\""));
        let at = exchange[0].at;
        let event = serde_json::from_str(&message).unwrap();
        long.apply(&Record::new(head, at, SessionId::new("s"), None, event));
        let mut loaded = long.clone();
        loaded.drop_earlier(long.messages.len().saturating_sub(crate::WINDOW));
        let around = |it: &Transcript| {
            let Chrome { heading, sequence, .. } = Chrome::new(&view(), it);
            heading.to_html() + &sequence.to_html()
        };
        assert_eq!(around(&long), around(&loaded), "with {} messages", long.messages.len());
    }
}

/// Messages that are fetched are drawn like those of the page, with the links of their session.
#[test]
fn messages_loaded_later_equal_those_of_the_page() {
    for (name, records) in corpus::logs() {
        let transcript = &Transcript::replay(&records);
        let drawn = messages(&view(), &transcript.messages, Reach::End).to_html();
        let (earlier, later, at, pulse, unknown) = (None, None, None, None, None);
        let open = OpenSession {
            view: view(),
            transcript,
            end: transcript,
            earlier,
            later,
            at,
            pulse,
            unknown,
        };
        assert!(messages_page(&open).contains(&drawn), "{name}");
        for message in transcript.messages.iter().filter(|it| !it.superseded) {
            let alone = crate::message::message(&view(), message).to_html();
            assert!(embedded(&view(), transcript.head, message).contains(&alone), "{name}");
            assert!(drawn.contains(&alone), "{name}");
        }
    }
}

#[test]
fn patches_update_every_window() {
    let mut partial = 0;
    for (_, records) in corpus::short_logs() {
        for n in (0..=records.len()).step_by(9) {
            partial += (0..=n).step_by(7).map(|m| check_windows(&records, m, n)).sum::<usize>();
        }
    }
    assert!(partial > 100, "{partial} windows that ended before the end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn patches_give_the_page_of_every_prefix_of_a_random_log(records in any_log(40)) {
        check_every_prefix(&records);
    }

    #[test]
    fn one_patch_connects_any_two_pages_of_a_random_log(
        (records, m, n) in any_log(40).prop_flat_map(|records| {
            let len = records.len();
            (Just(records), 0..=len, 0..=len)
        })
    ) {
        check_any_two(&records, m.min(n), m.max(n));
    }

    #[test]
    fn patches_update_every_window_of_a_random_log(
        (records, m, n) in any_log(40).prop_flat_map(|records| {
            let len = records.len();
            (Just(records), 0..=len, 0..=len)
        })
    ) {
        check_windows(&records, m.min(n), m.max(n));
        check_cuts(&records, m.min(n), m.max(n));
    }

    #[test]
    fn ids_in_a_random_log_are_unique(records in any_log(40)) {
        check_ids(&records);
    }
}

/// Drops the records of runs after their end.
fn without_records_after_the_end(mut records: Vec<Record>) -> Vec<Record> {
    let mut ended = std::collections::HashSet::new();
    records.retain(|it| {
        let is_kept = it.response_id.as_ref().is_none_or(|run| !ended.contains(run));
        if let Event::RunFinish { .. } = it.event {
            ended.extend(it.response_id.clone());
        }
        is_kept
    });
    records
}

#[test]
fn no_text_is_unreachable() {
    for (_, records) in corpus::logs() {
        (0..=records.len()).step_by(5).for_each(|cut| check_words(&records[..cut]));
        check_words(&records);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_text_of_a_random_log_is_unreachable(records in any_log(60)) {
        check_words(&without_records_after_the_end(records));
    }
}

#[test]
fn ids_are_unique() {
    corpus::logs().iter().for_each(|(_, records)| check_ids(records));
}

/// Fills in everything that a page would fetch, and removes links that need a server.
fn completed(mut page: Node, whole: &Transcript) -> Node {
    let fetched = |address: &str| {
        if let Some((_, first)) = address.split_once("/texts?first=") {
            let first = Seq(first.parse().unwrap());
            let mut found = whole.messages.iter();
            return found.find_map(|it| html_at(&SessionId::new("s"), it, first)).unwrap();
        }
        let (_, address) = address.split_once("/calls/").unwrap();
        let (call, stream) = address.split_once("/output?stream=").unwrap();
        let kind = *KINDS.iter().find(|it| Some(it.as_str()) == stream.split('&').next()).unwrap();
        let mut answers = whole.messages.iter().filter_map(|it| Some((it, it.run()?)));
        let found = answers.find_map(|(it, answer)| Some((it, answer.call(&CallId::new(call))?)));
        let (message, call) = found.unwrap();
        whole_body(&SessionId::new("s"), message, call, kind)
    };
    page.change_each(&|node| {
        let inside = node.has_class("cut").then(|| {
            let link = node.elements().into_iter().find(|it| it.has_class("show-all"));
            fetched(link.unwrap().attribute("href").unwrap())
        });
        if let Some(html) = inside {
            node.set_children(&html);
            return Changed::Inside;
        }
        if let Some(address) = node.attribute("data-src").map(str::to_owned) {
            if node.has_class("file") {
                node.set_children(&fetched(&address));
                node.set_attribute("data-src", None);
            }
            if node.has_class("edit") {
                node.add_children(&fetched(&address));
                node.set_attribute("data-src", None);
            }
        }
        if node.has_class("there") {
            node.set_children("");
            node.set_attribute("href", None);
        }
        if node.has_class("attachment") {
            let name = node.elements().into_iter().find(|it| it.has_class("name")).map(Node::text);
            node.set_attribute("data-file", None);
            node.set_attribute("download", name.as_deref());
        }
        Changed::NotInside
    });
    page
}

/// An export is the page with every body that it would fetch.
#[test]
fn an_export_equals_the_page_with_its_bodies() {
    let shown = |view: &View, transcript: &Transcript| {
        let Chrome { heading, sequence, queue, .. } = Chrome::new(view, transcript);
        let list = messages(view, &transcript.messages, Reach::End);
        let parts = [&heading, &sequence, &list, &queue];
        element("page", &parts.map(crate::Element::to_html).concat())
    };
    let mut cut = 0;
    for (name, records) in corpus::logs() {
        let mut whole = Transcript::whole();
        for record in &records {
            whole.apply(record);
            let is_last = record.seq.0 as usize == records.len();
            let is_question = matches!(record.event, Event::ToolApprovalRequested { .. });
            if !is_last && !is_question && record.seq.0 % 100 > 0 {
                continue;
            }
            let page = Transcript::replay(&records[..record.seq.0 as usize]);
            let page = shown(&view().with_raw(false), &page);
            cut += page.elements().iter().filter(|it| it.has_class("cut")).count();
            let files = attached(&page);
            let alone = View::new(SessionId::new("s"), Bodies::Whole).with_files(files);
            let when = format!("{name} at {}", record.seq);
            assert_same(&completed(page, &whole), &shown(&alone, &whole), &when);
        }
    }
    assert!(cut > 40, "{cut} bodies were cut");
}

/// Returns the attachments of a page by their addresses.
fn attached(page: &Node) -> Files {
    let links = page.elements().into_iter().filter(|it| it.has_class("attachment"));
    let addresses = links.filter_map(|it| it.attribute("href"));
    addresses.map(|it| (it.replace("/api/blobs/", ""), it.to_owned())).collect()
}
