//! Properties that hold for every message, every history and every result.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::{CallId, Event, PartId, RunStatus};

use super::stage::{Played, Stage, ask, canned, failed, play, play_with, succeeded};
use crate::{ModelEffect, Pace, ReadyCall, RunEffect, RunInput};

const MESSAGES: &[&str] = &[
    "",
    "What time is it in Paris and Tokyo?",
    "list the files, then read notes.txt and search for \"some words\"; think about tea",
    "list the agents and ls",
    "note: tea, then cake",
    "ask coder: list the files, then ask demo: help",
    "ask coder in the background: think about tea",
    "From the agent 'coder', about exchange x:\n\nlist the files",
    "From the agent 'coder', which gets your answer:\n\nlist the files",
    "think about tea, then time in Oslo and time in Rome. ls",
    "tell me a story",
    "write a report about tea",
    "ls and break and ls",
    "break",
    "help",
    "make me a sandwich",
];

#[test]
fn every_phrase_is_well_formed_at_every_pace() {
    for message in MESSAGES {
        check_laws(ask(message), &canned_or_failed);
    }
}

#[test]
fn interrupt_ends_the_run_immediately() {
    for message in MESSAGES {
        for pace in [Pace::Natural, Pace::Instant] {
            for n_inputs in 0.. {
                let mut stage = Stage::start(ask(message), pace);
                for _ in 0..n_inputs {
                    if stage.ending.is_none() {
                        let input = stage.next_input(&canned);
                        stage.give(input);
                    }
                }
                if stage.ending.is_some() {
                    break;
                }
                let n_effects = stage.effects.len();
                stage.give(RunInput::Interrupt);
                assert_eq!(stage.effects.len(), n_effects, "nothing is emitted any more");
                assert_eq!(stage.ending.unwrap().status, RunStatus::Cancelled);
            }
        }
    }
}

#[test]
fn natural_pace_gives_one_delta_at_a_time() {
    let mut stage = Stage::start(ask("ls, then tell me a story"), Pace::Natural);
    while stage.ending.is_none() {
        let input = stage.next_input(&canned);
        assert!(stage.give(input) <= 1);
    }
}

#[test]
fn instant_pace_never_sleeps() {
    assert!(Stage::start(ask("think about tea, then ls"), Pace::Instant).never_slept());
}

proptest! {
    #[test]
    fn any_text(message in "\\PC*") {
        check_laws(ask(&message), &canned_or_failed);
    }

    #[test]
    fn any_sentence(words in proptest::collection::vec(prop::sample::select(WORDS), 0..30)) {
        check_laws(ask(&words.join(" ")), &canned_or_failed);
    }

    #[test]
    fn any_history(messages in proptest::collection::vec(any_message(), 0..6)) {
        check_laws(messages, &canned_or_failed);
    }

    #[test]
    fn any_result(result in any_json(), ok in any::<bool>()) {
        let message = "time in Paris, ls, read notes.txt and search for x";
        check_laws(ask(message), &|_: &str, _: &Value| {
            crate::ToolOutcome { ok, ..succeeded(result.clone()) }
        });
    }
}

const WORDS: &[&str] = &[
    "time", "what", "in", "Paris", "new york", "and", "then", ",", ".", "\n", "ls", "list",
    "files", "read", "a.txt", "\"a b\"", "`", "'", "search", "for", "find", "think", "about",
    "story", "write", "report", "break", "help", "hello", "please", "the", "..", "?", "src/",
    "tell", "of",
];

fn any_message() -> impl Strategy<Value = Value> {
    let call =
        json!({"id": "c", "function": {"name": "list_files", "arguments": "{\"path\":\".\"}"}});
    prop_oneof![
        prop::sample::select(MESSAGES).prop_map(|it| json!({"role": "user", "content": it})),
        any_json().prop_map(|it| json!({"role": "user", "content": it})),
        any_json()
            .prop_map(|it| json!({"role": "tool", "tool_call_id": "c", "content": it.to_string()})),
        any_json().prop_map(|it| json!({"role": "assistant", "tool_calls": it})),
        Just(json!({"role": "assistant", "tool_calls": [call]})),
        any_json(),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,30}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 5, |inner| {
        let key = prop::sample::select(
            &[
                "ok",
                "entries",
                "total",
                "matches",
                "text",
                "name",
                "error",
                "message",
                "code",
                "lines",
                "kind",
                "size",
                "path",
                "line",
                "id",
                "function",
                "arguments",
            ][..],
        );
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..6).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(key, it)| (key.to_owned(), it)).collect())
            }),
        ]
    })
}

fn canned_or_failed(tool: &str, arguments: &Value) -> crate::ToolOutcome {
    if arguments.to_string().len().is_multiple_of(3) {
        failed("No.")
    } else {
        canned(tool, arguments)
    }
}

#[track_caller]
fn check_laws(history: Vec<Value>, tool: &dyn Fn(&str, &Value) -> crate::ToolOutcome) {
    let played = play_with(history.clone(), Pace::Instant, tool);
    assert_eq!(played, play_with(history.clone(), Pace::Instant, tool), "it is deterministic");
    assert_eq!(played, play_with(history, Pace::Natural, tool), "the pace changes no event");
    check_well_formed(&played);
}

#[derive(Debug, Default)]
struct Open {
    parts: HashMap<PartId, String>,
    arguments: HashMap<CallId, String>,
    to_run: HashMap<CallId, String>,
    step: Option<u32>,
    steps: u32,
}

fn check_well_formed(played: &Played) {
    let mut open = Open::default();
    for effect in &played.effects {
        match effect {
            ModelEffect::Run(RunEffect::Emit(event)) => open.apply(event),
            ModelEffect::RunTool(ReadyCall { call_id, arguments, .. }) => {
                assert_eq!(open.to_run.remove(call_id).as_ref(), Some(arguments));
            }
            ModelEffect::Run(RunEffect::WakeAt(_) | RunEffect::End(_)) => (),
            other => panic!("it needs nothing: {other:?}"),
        }
    }
    assert!(open.arguments.is_empty() && open.to_run.is_empty());
    match played.ending.status {
        RunStatus::Completed => {
            assert!(open.parts.is_empty() && open.step.is_none());
            assert!(!played.answer().is_empty() && played.ending.usage.is_some());
        }
        RunStatus::Failed => assert!(played.ending.error.is_some()),
        RunStatus::Cancelled => panic!("nobody cancelled"),
    }
}

impl Open {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::StepStart { index, .. } => {
                assert_eq!((self.step, *index), (None, self.steps));
                self.step = Some(*index);
                self.steps += 1;
            }
            Event::StepFinish { index, usage, .. } => {
                assert!(usage.is_some() && self.parts.is_empty() && self.to_run.is_empty());
                assert_eq!(self.step.take(), Some(*index));
            }
            Event::TextStart { part_id, .. } | Event::ThinkingStart { part_id, .. } => {
                assert!(self.step.is_some());
                assert_eq!(self.parts.insert(part_id.clone(), String::new()), None);
            }
            Event::TextDelta { part_id, delta, .. }
            | Event::ThinkingDelta { part_id, delta, .. } => {
                self.parts.get_mut(part_id).unwrap().push_str(delta);
            }
            Event::TextDone { part_id, text, .. } | Event::ThinkingDone { part_id, text, .. } => {
                assert_eq!(self.parts.remove(part_id).as_ref(), Some(text));
            }
            Event::ToolCallStart { call_id, .. } => {
                assert!(self.step.is_some() && self.parts.is_empty());
                assert_eq!(self.arguments.insert(call_id.clone(), String::new()), None);
            }
            Event::ToolArgumentsDelta { call_id, delta } => {
                self.arguments.get_mut(call_id).unwrap().push_str(delta);
            }
            Event::ToolArgumentsDone { call_id, arguments, .. } => {
                assert_eq!(self.arguments.remove(call_id).as_ref(), Some(arguments));
                self.to_run.insert(call_id.clone(), arguments.clone());
            }
            Event::Continuation { .. } => assert!(self.step.is_none()),
            other => panic!("the demo agent does not emit {other:?}"),
        }
    }
}

#[test]
fn usage_is_the_sum_of_the_steps() {
    let played = play(ask("time in Paris, then ls"), Pace::Instant);
    let steps: Vec<_> = played
        .events()
        .filter_map(|it| match it {
            Event::StepFinish { usage, .. } => *usage,
            _ => None,
        })
        .collect();
    let total = played.ending.usage.unwrap();
    assert_eq!(steps.len(), 3);
    assert_eq!(total.input_tokens, steps.iter().map(|it| it.input_tokens).sum::<u64>());
    assert_eq!(total.output_tokens, steps.iter().map(|it| it.output_tokens).sum::<u64>());
    assert_eq!(total.total_tokens, total.input_tokens + total.output_tokens);
}
