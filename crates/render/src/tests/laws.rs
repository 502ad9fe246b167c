//! The law that makes the product: a page of the log up to m, plus the patches for m+1 to n, is the
//! page of the log up to n.

use proptest::prelude::*;
use transcript::logs::any_log;
use transcript::{CallId, Event, Record, SessionId, Transcript};

use super::bodies::KINDS;
use super::corpus;
use crate::conversation::{Reach, messages};
use crate::dom::{Changed, Node, element};
use crate::surroundings::Surroundings;
use crate::testing::{
    apply, assert_same, check_any_two, check_every_prefix, check_ids, view, window,
};
use crate::{Bodies, Files, Live, View, whole_body};

#[test]
#[expect(clippy::print_stdout, reason = "how much was compared is part of the result")]
fn patches_lead_to_the_page_of_every_prefix() {
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
fn every_two_pages_of_a_log_are_one_patch_apart() {
    for (_, records) in corpus::logs().into_iter().filter(|(_, records)| records.len() < 80) {
        for n in (0..=records.len()).step_by(9) {
            (0..=n).for_each(|m| check_any_two(&records, m, n));
        }
    }
}

/// Every window of a page, whether or not it reaches the end, is led to the same window of a later
/// page: what it does not show leaves it alone. Gives the number of windows that ended before the end.
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

#[test]
fn patches_lead_every_window_to_its_later_self() {
    let mut partial = 0;
    for (_, records) in corpus::logs().into_iter().filter(|(_, records)| records.len() < 80) {
        for n in (0..=records.len()).step_by(9) {
            partial += (0..=n).step_by(7).map(|m| check_windows(&records, m, n)).sum::<usize>();
        }
    }
    assert!(partial > 100, "{partial} windows that ended before the end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn patches_lead_to_the_page_of_every_prefix_of_a_random_log(records in any_log(40)) {
        check_every_prefix(&records);
    }

    #[test]
    fn any_two_pages_of_a_random_log_are_one_patch_apart(
        (records, m, n) in any_log(40).prop_flat_map(|records| {
            let len = records.len();
            (Just(records), 0..=len, 0..=len)
        })
    ) {
        check_any_two(&records, m.min(n), m.max(n));
    }

    #[test]
    fn patches_lead_every_window_of_a_random_log_to_its_later_self(
        (records, m, n) in any_log(40).prop_flat_map(|records| {
            let len = records.len();
            (Just(records), 0..=len, 0..=len)
        })
    ) {
        check_windows(&records, m.min(n), m.max(n));
    }

    #[test]
    fn ids_in_a_random_log_are_unique(records in any_log(40)) {
        check_ids(&records);
    }
}

#[test]
fn ids_are_unique() {
    corpus::logs().iter().for_each(|(_, records)| check_ids(records));
}

/// A page in which everything that it would fetch is there, and that leads to nothing that only a server has.
fn completed(mut page: Node, whole: &Transcript) -> Node {
    let fetched = |address: &str| {
        let (_, address) = address.split_once("/calls/").unwrap();
        let (call, stream) = address.split_once("/output?stream=").unwrap();
        let kind = *KINDS.iter().find(|it| Some(it.word()) == stream.split('&').next()).unwrap();
        let mut answers = whole.messages.iter().filter_map(|it| Some((it, it.answer()?)));
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

/// An exported page is the page in which every body that it would fetch is there.
#[test]
fn an_export_is_the_page_with_its_bodies() {
    let shown = |view: &View, transcript: &Transcript| {
        let Surroundings { heading, sequence, .. } = Surroundings::new(view, transcript);
        let list = messages(view, &transcript.messages, Reach::End);
        element("page", &[&heading, &sequence, &list].map(crate::Element::to_html).concat())
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

/// The attachments of a page, each under the address that it has there.
fn attached(page: &Node) -> Files {
    let links = page.elements().into_iter().filter(|it| it.has_class("attachment"));
    let addresses = links.filter_map(|it| it.attribute("href"));
    addresses.map(|it| (it.replace("/api/blobs/", ""), it.to_owned())).collect()
}
