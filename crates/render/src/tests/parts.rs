//! Answers with very many parts: a page shows the last ones and can fetch the others.

use serde_json::{Value, json};
use transcript::{Record, Transcript};

use super::corpus::numbered;
use crate::testing::dom::element;
use crate::testing::{check_any_two, check_every_prefix, check_ids, page, view};
use crate::{Bodies, View, earlier_parts};

/// Returns notices and calls, some of them under a call that started long before.
fn many_parts(n: usize) -> Vec<Record> {
    let call = |id: String| json!({"type": "tool_call_start", "callId": id, "toolName": "Task", "executor": "agent"});
    let done = |id: String| json!({"type": "tool_result", "callId": id, "toolName": "Task", "ok": true, "durationMs": 1});
    let part = |idx: usize| -> Vec<Value> {
        match idx % 50 {
            7 => vec![call(format!("c{idx}"))],
            // Under the call before, and under one that is hidden by then.
            20 => vec![nested(idx, idx - 13), done(format!("c{}", idx - 13))],
            33 if idx > 300 => vec![nested(idx, 7)],
            40 if idx > 300 => vec![nested(idx, idx - 233), done(format!("c{}", idx - 233))],
            _ => vec![json!({"type": "notice", "level": "info", "text": format!("notice {idx}")})],
        }
    };
    let start = json!({"type": "run_start", "agent": "claude", "trigger": "user"});
    let end = json!({"type": "run_finish", "status": "completed", "durationMs": 9});
    numbered([start].into_iter().chain((0..n).flat_map(part)).chain([end]))
}

fn nested(idx: usize, under: usize) -> Value {
    json!({"type": "text_done", "partId": format!("p{idx}"), "text": format!("text {idx}"),
        "parentCallId": format!("c{under}")})
}

#[test]
fn patches_give_the_page_of_many_parts() {
    let records = many_parts(460);
    check_every_prefix(&records);
    check_ids(&records);
    for (m, n) in [(0, 250), (150, 210), (190, 330), (210, 460), (330, 340), (100, 470)] {
        check_any_two(&records, m, n);
    }
}

#[test]
fn a_page_shows_few_of_many_parts() {
    let elements = |n: usize| page(&Transcript::replay(&many_parts(n))).elements().len();
    let (few, many) = (elements(400), elements(20_000));
    assert!(many < 2 * few, "{few} and {many} elements");
}

/// All parts can be fetched in steps; an exported file contains them all.
#[test]
fn all_parts_can_be_fetched() {
    let transcript = Transcript::replay(&many_parts(460));
    let message = &transcript.messages[0];
    let mut fetched = crate::message::message(&view(), message).to_html();
    let mut before = 300;
    while before > 0 {
        fetched += &earlier_parts(&view(), message, before);
        before -= 100;
    }
    let whole = View::new(view().session, Bodies::Whole);
    let whole = crate::message::message(&whole, message).to_html();
    for idx in 0..message.run().unwrap().parts.len() {
        let id = format!("id=\"s-1-{idx}\"");
        assert_eq!(fetched.matches(&id).count(), 1, "part {idx} on the page or fetched");
        assert_eq!(whole.matches(&id).count(), 1, "part {idx} in the file");
    }
    assert!(element("page", &whole).elements().iter().all(|it| !it.has_class("earlier-parts")));
}
