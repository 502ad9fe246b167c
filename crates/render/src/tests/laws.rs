//! The law that makes the product: a page of the log up to m, plus the patches for m+1 to n, is the
//! page of the log up to n.

use std::collections::HashSet;

use proptest::prelude::*;
use transcript::logs::any_log;
use transcript::{Record, Seq, SessionId, Transcript, stream};

use super::corpus;
use crate::conversation::messages;
use crate::dom::{Node, difference, element};
use crate::surroundings::Surroundings;
use crate::{Bodies, Live, Op, View};

fn view() -> View {
    View::new(SessionId::new("s"), Bodies::Cut).with_raw(true)
}

/// All of a page that comes from the log.
fn page(transcript: &Transcript) -> Node {
    let view = view();
    let Surroundings { heading, queue, now, dock } = Surroundings::new(&view, transcript);
    let parts = [&heading, &messages(&view, transcript), &queue, &now, &dock];
    element("page", &parts.map(crate::Element::to_html).concat())
}

fn apply(page: &mut Node, ops: &[Op]) {
    ops.iter().for_each(|op| page.apply(op));
}

fn assert_same(shown: &Node, expected: &Node, when: &str) {
    if let Some(difference) = difference(shown, expected) {
        panic!("{when}: {difference}");
    }
}

/// One record at a time: what is shown after each is a fresh page of that log. Gives the number of
/// cuts that were compared.
fn check_every_prefix(records: &[Record]) -> usize {
    let mut live = Live::new(view(), Transcript::default());
    let mut shown = page(live.transcript());
    let mut fresh = Transcript::default();
    let mut compared = 0;
    for (idx, record) in records.iter().enumerate() {
        apply(&mut shown, &live.apply([record]));
        fresh.apply(record);
        let is_delta = stream::continued_by(&record.event).is_some();
        if records.len() <= 500 || !is_delta || idx % 7 == 0 {
            assert_same(&shown, &page(&fresh), &format!("after {}", record.seq));
            compared += 1;
        }
    }
    assert_same(&shown, &page(&fresh), "at the end");
    compared
}

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

/// From any page to any later one, in one patch or by catching up.
fn check_any_two(records: &[Record], m: usize, n: usize) {
    let (earlier, between) = (&records[..m], &records[m..n]);
    let expected = page(&Transcript::replay(&records[..n]));

    let mut live = Live::new(view(), Transcript::replay(earlier));
    let mut shown = page(live.transcript());
    apply(&mut shown, &live.apply(between));
    assert_same(&shown, &expected, &format!("in one patch from {m} to {n}"));

    let mut shown = page(&Transcript::replay(earlier));
    let seen = earlier.last().map_or(Seq(0), |it| it.seq);
    if let Some(ops) = Live::new(view(), Transcript::replay(&records[..n])).since(seen) {
        apply(&mut shown, &ops);
        assert_same(&shown, &expected, &format!("catching up from {m} to {n}"));
    }
}

#[test]
fn every_two_pages_of_a_log_are_one_patch_apart() {
    for (_, records) in corpus::logs().into_iter().filter(|(_, records)| records.len() < 80) {
        for n in (0..=records.len()).step_by(9) {
            (0..=n).for_each(|m| check_any_two(&records, m, n));
        }
    }
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
    fn ids_in_a_random_log_are_unique(records in any_log(40)) {
        check_ids(&records);
    }
}

/// The same element twice, and a patch would reach only one of them.
fn check_ids(records: &[Record]) {
    let mut seen = HashSet::new();
    for id in
        page(&Transcript::replay(records)).elements().iter().filter_map(|it| it.attribute("id"))
    {
        assert!(seen.insert(id.to_owned()), "{id} is there twice");
    }
}

#[test]
fn ids_are_unique() {
    corpus::logs().iter().for_each(|(_, records)| check_ids(records));
}

/// An exported page is the same page; only long bodies are there in full, files in colour, what is
/// attached is in it, and nothing leads to what only a server has.
#[test]
fn an_export_is_the_page_with_its_bodies() {
    for (name, records) in corpus::logs() {
        let view = View::new(SessionId::new("s"), Bodies::Whole);
        let mut whole = Transcript::whole();
        whole.extend(&records);
        let mut export = element("page", &messages(&view, &whole).to_html());
        let shown = self::view().with_raw(false);
        let mut page = element("page", &messages(&shown, &Transcript::replay(&records)).to_html());
        for it in [&mut export, &mut page] {
            ["cut", "file", "attachment"].iter().for_each(|class| it.take_out(class));
        }
        assert_same(&page, &export, name);
    }
}
