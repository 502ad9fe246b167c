//! Label, state and copied text of badges.

use expect_test::{Expect, expect};
use transcript::{
    CallId, Event, Executor, Millis, Record, ResponseId, Seq, SessionId, Transcript, Validation,
};

use crate::page::conversation::{Reach, messages};
use crate::testing::dom::{Node, element};
use crate::{Bodies, View};

/// Draws the badges of one answer: class, label, copied text.
fn badges(events: Vec<Event>) -> String {
    let records: Vec<Record> = (1..)
        .zip(events)
        .map(|(seq, event)| {
            let run = Some(ResponseId::new("r"));
            Record::new(Seq(seq), Millis(0), SessionId::new("s"), run, event)
        })
        .collect();
    let view = View::new(SessionId::new("s"), Bodies::Cut);
    let page = element(
        "page",
        &messages(&view, &Transcript::replay(&records).messages, Reach::End).to_html(),
    );
    let has_class = |node: &Node, class: &str| {
        node.attribute("class").is_some_and(|it| it.split(' ').any(|it| it == class))
    };
    let mut shown = String::new();
    for badge in page.elements().into_iter().filter(|it| has_class(it, "badge")) {
        let parts = badge.elements();
        let button = parts.iter().find(|it| it.name() == "button").expect("a button");
        let tip = parts.iter().find(|it| has_class(it, "tooltip")).expect("a tooltip");
        let class = button.attribute("class").unwrap_or_default();
        let label = button.attribute("aria-label").unwrap_or_default();
        shown += &format!("[{class}] {label}\n{}\n", tip.text());
    }
    let has_list = page.elements().iter().any(|it| has_class(it, "tool-calls-container"));
    if has_list { shown } else { "no list".to_owned() }
}

fn start(call: &str, name: &str, provider: Option<&str>) -> Event {
    Event::ToolCallStart {
        call_id: CallId::new(call),
        provider_call_id: provider.map(str::to_owned),
        tool_name: name.to_owned(),
        arguments: None,
        parent_call_id: None,
        executor: Executor::Server,
    }
}

fn delta(call: &str, delta: &str) -> Event {
    Event::ToolArgumentsDelta { call_id: CallId::new(call), delta: delta.to_owned() }
}

fn done(call: &str, arguments: &str) -> Event {
    Event::ToolArgumentsDone {
        call_id: CallId::new(call),
        arguments: arguments.to_owned(),
        summary: String::new(),
        incomplete: false,
        validation: Validation::NotRequired,
        provider_data: None,
    }
}

fn check(events: Vec<Event>, expected: Expect) {
    expected.assert_eq(&badges(events));
}

#[test]
fn a_badge_with_all_fields() {
    check(
        vec![start("c1", "search", Some("call_123")), done("c1", r#"{"query":"weather"}"#)],
        expect![[r#"
            [tool-call-badge] Tool call: search
            {
              "id": "call_123",
              "type": "function",
              "function": {
                "name": "search",
                "arguments": {
                  "query": "weather"
                }
              }
            }
        "#]],
    );
}

#[test]
fn a_badge_with_missing_fields() {
    check(
        vec![start("c1", "", None), done("c1", "")],
        expect![[r#"
        [tool-call-badge] Tool call: Call #1
        {
          "type": "function",
          "function": {
            "arguments": {}
          }
        }
    "#]],
    );
}

#[test]
fn malformed_arguments_are_unchanged() {
    check(
        vec![start("c1", "search", None), done("c1", r#"{"query": "#)],
        expect![[r#"
        [tool-call-badge] Tool call: search
        {
          "type": "function",
          "function": {
            "name": "search",
            "arguments": "{\"query\": "
          }
        }
    "#]],
    );
}

#[test]
fn an_unreadable_call_gets_a_fallback_badge() {
    check(
        vec![start("c1", "", None), done("c1", "[{broken")],
        expect![[r#"
        [tool-call-badge tool-call-badge--fallback] Tool call: [{broken
        [{broken
    "#]],
    );
}

#[test]
fn deltas_add_up() {
    let streamed = vec![
        start("c1", "search", Some("a")),
        start("c2", "time", Some("b")),
        delta("c1", r#"{"query":"#),
        delta("c2", "{"),
        delta("c1", r#""weather"}"#),
        delta("c2", "}"),
        done("c1", r#"{"query":"weather"}"#),
        done("c2", "{}"),
    ];
    check(
        streamed,
        expect![[r#"
        [tool-call-badge] Tool call: search
        {
          "id": "a",
          "type": "function",
          "function": {
            "name": "search",
            "arguments": {
              "query": "weather"
            }
          }
        }
        [tool-call-badge] Tool call: time
        {
          "id": "b",
          "type": "function",
          "function": {
            "name": "time",
            "arguments": {}
          }
        }
    "#]],
    );
}

#[test]
fn a_repeated_name_gets_a_number() {
    let twice = vec![start("c1", "search", None), start("c2", "search", None)];
    let labels = badges(twice);
    assert!(labels.contains("Tool call: search\n"), "{labels}");
    assert!(labels.contains("Tool call: search #2\n"), "{labels}");
}

#[test]
fn without_calls_there_is_no_list() {
    assert_eq!(badges(Vec::new()), "no list");
}

#[test]
fn blank_names_and_ids_count_as_missing() {
    check(
        vec![start("c1", "  ", Some("")), done("c1", r#"{"q":1}"#), start("c2", " search ", None)],
        expect![[r#"
            [tool-call-badge] Tool call: Call #1
            {
              "type": "function",
              "function": {
                "arguments": {
                  "q": 1
                }
              }
            }
            [tool-call-badge] Tool call: search
            {
              "type": "function",
              "function": {
                "name": " search ",
                "arguments": {}
              }
            }
        "#]],
    );
}
