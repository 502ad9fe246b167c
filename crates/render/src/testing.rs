//! Checks for logs of any origin: the page at record m plus the patches for m+1 to n equals the page at
//! record n. HTML is compared as a browser parses it.

pub(crate) mod dom;

use std::collections::HashSet;
use std::ops::Range;

use transcript::{Part, Record, Seq, SessionId, Transcript, stream};

use crate::message::part_id;
use crate::page::chrome::Chrome;
use crate::page::conversation::{Reach, messages};
pub use crate::testing::dom::Node;
use crate::testing::dom::{difference, element};
use crate::{Bodies, Live, Op, View};

pub(crate) fn view() -> View {
    View::new(SessionId::new("s"), Bodies::Cut).with_raw(true)
}

/// Draws everything on a page that comes from the log of a session.
pub fn page(transcript: &Transcript) -> Node {
    window(transcript, 0..transcript.messages.len())
}

/// Draws a page that shows the messages of a session with these indexes.
pub(crate) fn window(transcript: &Transcript, shown: Range<usize>) -> Node {
    let view = view();
    let reach = if shown.end == transcript.messages.len() { Reach::End } else { Reach::Part };
    let list = messages(&view, &transcript.messages[shown], reach);
    let chrome = Chrome::new(&view, transcript);
    let Chrome { heading, sequence, queue, suggestion, now, dock } = chrome;
    let parts = [&heading, &sequence, &list, &queue, &suggestion, &now, &dock];
    element("page", &parts.map(crate::Element::to_html).concat())
}

pub(crate) fn apply(page: &mut Node, ops: &[Op]) {
    ops.iter().for_each(|op| page.apply(op));
}

pub(crate) fn assert_same(shown: &Node, expected: &Node, when: &str) {
    if let Some(difference) = difference(shown, expected) {
        panic!("{when}: {difference}");
    }
}

/// Applies one record at a time to a page and compares it with a newly drawn page each time.
/// Returns the number of comparisons.
pub fn check_every_prefix(records: &[Record]) -> usize {
    let mut live = Live::new(view(), Transcript::default());
    let mut shown = page(live.transcript());
    let mut fresh = Transcript::default();
    let mut compared = 0;
    for (idx, record) in records.iter().enumerate() {
        fresh.apply(record);
        match live.apply([record]) {
            Some(ops) => apply(&mut shown, &ops),
            None => shown = page(&fresh),
        }
        let is_delta = stream::continued_by(&record.event).is_some();
        if records.len() <= 500 || !is_delta || idx % 7 == 0 {
            assert_same(&shown, &page(&fresh), &format!("after {}", record.seq));
            compared += 1;
        }
    }
    assert_same(&shown, &page(&fresh), "at the end");
    compared
}

/// Checks that one patch, or catching up, turns the page after `m` records into the page after `n`
/// records.
pub fn check_any_two(records: &[Record], m: usize, n: usize) {
    let (earlier, between) = (&records[..m], &records[m..n]);
    let expected = page(&Transcript::replay(&records[..n]));

    let mut live = Live::new(view(), Transcript::replay(earlier));
    let mut shown = page(live.transcript());
    if let Some(ops) = live.apply(between) {
        apply(&mut shown, &ops);
        assert_same(&shown, &expected, &format!("in one patch from {m} to {n}"));
    }

    let mut shown = page(&Transcript::replay(earlier));
    let seen = earlier.last().map_or(Seq(0), |it| it.seq);
    if let Some(ops) = Live::new(view(), Transcript::replay(&records[..n])).since(seen) {
        apply(&mut shown, &ops);
        assert_same(&shown, &expected, &format!("catching up from {m} to {n}"));
    }
}

/// Checks that no element id occurs twice on a page: a patch would reach only one of the elements.
pub fn check_ids(records: &[Record]) {
    let mut seen = HashSet::new();
    for id in
        page(&Transcript::replay(records)).elements().iter().filter_map(|it| it.attribute("id"))
    {
        assert!(seen.insert(id.to_owned()), "{id} is there twice");
    }
}

/// Checks that no text of an assistant message is unreachable in any tool display. Final text is
/// always visible. Commentary is visible except in `widget`, where the activity line opens it, so
/// that line must exist. A finished message with any text has final text. (Browser tests check the
/// stylesheet's part.)
pub fn check_words(records: &[Record]) {
    let transcript = Transcript::replay(records);
    let page = page(&transcript);
    let elements = page.elements();
    let find = |id: &str| elements.iter().find(|it| it.attribute("id") == Some(id));
    for message in &transcript.messages {
        let Some(answer) = message.run() else { continue };
        let id = view().message_id(message);
        let article = find(&id).unwrap_or_else(|| panic!("{id} is not drawn"));
        let has_line = article.attribute("data-activity") != Some("none");
        let mut finals = 0;
        for (idx, part) in answer.parts.iter().enumerate() {
            if !part.kind.has_visible_text() {
                continue;
            }
            let text = find(&part_id(&id, idx)).unwrap_or_else(|| panic!("a text of {id} is lost"));
            let is_led = text.has_class("commentary");
            assert!(!is_led || has_line, "nothing opens a text of {id}");
            assert!(!text.has_class("leaked") && !text.has_class("discarded"), "{id}");
            finals += usize::from(text.has_class("final") && part.parent.is_none());
        }
        let says = |part: &Part| part.kind.has_visible_text() && part.parent.is_none();
        let says = answer.parts.iter().any(says);
        assert!(answer.is_open() || !says || finals > 0, "{id} has words and no answer");
    }
}
