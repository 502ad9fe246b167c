//! Every recording as AG-UI clients receive it: they accept every event, have the same state as a
//! snapshot after each record, and may reconnect. They keep streamed text that the agent corrects
//! later, since the protocol has no event for that.

use std::collections::{HashMap, HashSet};

use formats::agui::testing::{RunClient, folded, kept, reconnected};
use serde_json::Value;
use transcript::{Event, Record, ResponseId};

use super::all;

#[test]
fn a_strict_client_accepts_every_recording() {
    for session in all() {
        for (run, log) in runs(&session.records) {
            let taken_back = taken_back(&log);
            for later in [0, 2, 9] {
                let mut run_client = RunClient::new(&log, &run, later);
                while let Some(n_sent) = run_client.advance() {
                    let has = without(&taken_back, run_client.client.messages.clone());
                    let kept = without(&taken_back, kept(&log[..n_sent], &run));
                    assert_eq!(has, kept, "{} {run} {n_sent}", session.name);
                }
            }
        }
    }
}

#[test]
fn a_client_can_reconnect_to_every_recording() {
    for session in all() {
        for (run, log) in runs(&session.records) {
            let taken_back = taken_back(&log);
            let whole = without(&taken_back, kept(&log, &run));
            for happened in (1..=log.len()).step_by(3) {
                let had = folded(&log[..happened / 2], &run, 0).messages;
                let client = reconnected(&log, &run, &had, happened);
                let has = without(&taken_back, client.messages);
                assert_eq!(has, whole, "{} {run} {happened}", session.name);
            }
        }
    }
}

fn runs(records: &[Record]) -> Vec<(ResponseId, Vec<Record>)> {
    let starts = records.iter().filter(|it| matches!(it.event, Event::RunStart { .. }));
    let runs = starts.filter_map(|it| it.response_id.clone());
    let of_run = |run: &ResponseId| {
        records.iter().filter(|it| it.response_id.as_ref() == Some(run)).cloned().collect()
    };
    runs.map(|run| (run.clone(), of_run(&run))).collect()
}

/// Returns the ids of texts and calls whose final text does not start with their deltas.
fn taken_back(log: &[Record]) -> HashSet<String> {
    let mut streamed: HashMap<String, String> = HashMap::new();
    let mut taken_back = HashSet::new();
    for record in log {
        match &record.event {
            Event::TextDelta { part_id, delta, .. }
            | Event::ThinkingDelta { part_id, delta, .. } => {
                *streamed.entry(part_id.to_string()).or_default() += delta;
            }
            Event::ToolArgumentsDelta { call_id, delta, .. } => {
                *streamed.entry(call_id.to_string()).or_default() += delta;
            }
            Event::TextDone { part_id, text, .. } | Event::ThinkingDone { part_id, text, .. } => {
                let output = streamed.get(part_id.as_str()).map_or("", String::as_str);
                if !text.starts_with(output) {
                    taken_back.insert(part_id.to_string());
                }
            }
            Event::ToolArgumentsDone { call_id, arguments, .. } => {
                let output = streamed.get(call_id.as_str()).map_or("", String::as_str);
                if !arguments.starts_with(output) {
                    taken_back.insert(call_id.to_string());
                }
            }
            _ => (),
        }
    }
    taken_back
}

fn without(taken_back: &HashSet<String>, messages: impl Into<Value>) -> Value {
    let mut messages = messages.into();
    let is_one = |value: &Value| value["id"].as_str().is_some_and(|it| taken_back.contains(it));
    for message in messages.as_array_mut().unwrap() {
        if is_one(message) && message.get("content").is_some() {
            message["content"] = Value::Null;
        }
        let calls = message.get_mut("toolCalls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten().filter(|it| is_one(it)) {
            call["function"]["arguments"] = Value::Null;
        }
    }
    messages
}
