//! Every recording in the message format of our own API: a message is consistent after each record,
//! and ended calls do not change.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use transcript::Transcript;

use super::{Session, all};

#[test]
fn messages_are_consistent_after_every_record() {
    for session in all() {
        let mut transcript = Transcript::default();
        let mut ended = HashMap::new();
        for record in &session.records {
            transcript.apply(record);
            for message in &transcript.messages {
                let message = serde_json::to_value(formats::callboard::message(message)).unwrap();
                if message["role"] == "assistant" {
                    let when = format!("{} after {}", session.name, record.seq);
                    check(&message, &mut ended, &when);
                }
            }
        }
        check_end(&session, &transcript);
    }
}

fn check(message: &Value, ended: &mut HashMap<String, Value>, when: &str) {
    let calls = message["toolCalls"].as_array().unwrap();
    let mut ids = HashSet::new();
    for call in calls {
        let id = call["id"].as_str().unwrap();
        assert!(ids.insert(id), "{when}: {id} is there twice");
        check_state(call, when);
        if is_over(call)
            && let Some(before) = ended.insert(id.to_owned(), call.clone())
        {
            assert_eq!(settled(&before), settled(call), "{when}: what is over does not change");
        }
        assert!(is_over(call) || !ended.contains_key(id), "{when}: {id} has come to life again");
    }
    assert_eq!(message["content"], final_text(message), "{when}");
    let placed = message["parts"].as_array().unwrap().iter();
    let placed: HashSet<&str> = placed.filter_map(|it| it["id"].as_str()).collect();
    assert!(ids.is_subset(&placed), "{when}: every call has a place");
}

/// Checks the state of a call, and the status that other clients read.
fn check_state(call: &Value, when: &str) {
    let (state, status) = (call["state"].as_str().unwrap(), call["status"].as_str().unwrap());
    let expected = match state {
        "streaming_input" | "awaiting_approval" | "queued" => "pending",
        "running" => "running",
        "succeeded" => "completed",
        "failed" | "denied" | "interrupted" => "error",
        other => panic!("{when}: no such state: {other}"),
    };
    assert_eq!(status, expected, "{when}: {call}");
    // A call may be denied before the agent reports its end.
    assert_eq!(call.get("error").is_some(), is_over(call) && status == "error", "{when}: {call}");
    assert!(is_over(call) || !matches!(state, "succeeded" | "failed"), "{when}: {call}");
    assert!(call.get("result").is_none() || is_over(call), "{when}: {call}");
    assert!(!call["name"].as_str().unwrap().is_empty(), "{when}: {call}");
}

/// Returns the call without its commentary, which becomes the answer if the run ends without one.
fn settled(call: &Value) -> Value {
    let mut call = call.clone();
    call.as_object_mut().unwrap().shift_remove("commentary");
    call
}

/// Checks whether the call has its result.
fn is_over(call: &Value) -> bool {
    call.get("resultSummary").is_some()
}

/// Returns the final text, derived from the parts alone.
fn final_text(message: &Value) -> String {
    let is_final = |it: &&Value| it["role"] == "final" && it.get("parentCallId").is_none();
    let texts = message["parts"].as_array().unwrap().iter().filter(is_final);
    let texts = texts.filter(|it| it.get("leaked").is_none());
    let texts: Vec<&str> = texts.map(|it| it["text"].as_str().unwrap()).collect();
    texts.into_iter().filter(|it| !it.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Checks the messages at the end: nothing is open, and commentary belongs to the call after it.
fn check_end(session: &Session, transcript: &Transcript) {
    for message in &transcript.messages {
        let message = serde_json::to_value(formats::callboard::message(message)).unwrap();
        if message["role"] != "assistant" {
            continue;
        }
        let name = &session.name;
        assert_ne!(message["status"], Value::Null, "{name}: a run is open");
        assert_eq!(message["toolActivity"]["isActive"], false, "{name}");
        for call in message["toolCalls"].as_array().unwrap() {
            assert!(is_over(call), "{name}: {call}");
        }
        let parts = message["parts"].as_array().unwrap();
        for (idx, part) in parts.iter().enumerate() {
            assert_ne!(part["open"], true, "{name}: {part}");
            assert_ne!(part["role"], "undecided", "{name}: {part}");
            if part["role"] == "commentary" && part.get("leaked").is_none() {
                let Some(call) = call_after(&message, &parts[idx..], &part["parentCallId"]) else {
                    assert_ne!(
                        message["content"], "",
                        "{name}: {part} is all there is of an answer"
                    );
                    continue;
                };
                let words = part["text"].as_str().unwrap().trim();
                let commentary = call["commentary"].as_str().unwrap_or_default();
                assert!(commentary.contains(words), "{name}: {words:?} led to {call}");
            }
        }
    }
}

fn call_after<'a>(message: &'a Value, parts: &[Value], parent: &Value) -> Option<&'a Value> {
    let is_next = |it: &&Value| it["type"] == "tool_call" && it["parentCallId"] == *parent;
    let id = &parts.iter().find(is_next)?["id"];
    message["toolCalls"].as_array().unwrap().iter().find(|it| it["id"] == *id)
}
