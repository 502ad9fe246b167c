//! The law that makes the product: a page of the log up to m, plus the patches for m+1 to n, is the
//! page of the log up to n.

use proptest::prelude::*;
use transcript::logs::any_log;
use transcript::{Record, SessionId, Transcript};

use super::corpus;
use crate::conversation::{Reach, messages};
use crate::dom::element;
use crate::testing::{
    apply, assert_same, check_any_two, check_every_prefix, check_ids, view, window,
};
use crate::{Bodies, Live, View};

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

/// An exported page is the same page; only long bodies are there in full, files in colour, what is
/// attached is in it, and nothing leads to what only a server has.
#[test]
fn an_export_is_the_page_with_its_bodies() {
    for (name, records) in corpus::logs() {
        let view = View::new(SessionId::new("s"), Bodies::Whole);
        let mut whole = Transcript::whole();
        whole.extend(&records);
        let mut export = element("page", &messages(&view, &whole.messages, Reach::End).to_html());
        let page = Transcript::replay(&records);
        let shown = crate::testing::view().with_raw(false);
        let mut page = element("page", &messages(&shown, &page.messages, Reach::End).to_html());
        for it in [&mut export, &mut page] {
            ["cut", "file", "attachment", "there"].iter().for_each(|class| it.take_out(class));
        }
        assert_same(&page, &export, name);
    }
}
