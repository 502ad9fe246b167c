//! Every recording as the AI SDK's clients read it after each record, and as they are told it. They check
//! messages part by part, and chunk by chunk, by the names and kinds of fields. So one of each shape is
//! written down, and `e2e/chat_messages.test.mjs` shows those to the real packages.

use std::collections::BTreeSet;
use std::path::PathBuf;

use expect_test::expect_file;
use formats::ui::{Profile, Stream, message};
use serde_json::{Map, Value, json};
use transcript::{Attachment, Record, ResponseId, Transcript};

use super::all;

const PROFILES: [(u8, Profile); 3] = [(5, Profile::V5), (6, Profile::V6), (7, Profile::V7)];

#[test]
#[expect(clippy::print_stdout, reason = "how much was looked at is part of the result")]
fn messages_have_these_shapes() {
    let (_, of_5) = shapes(Profile::V5);
    let (n_prefixes, of_6) = shapes(Profile::V6);
    assert_eq!(of_6, shapes(Profile::V7).1, "both keep the same");
    let of_5 = of_5.iter().map(|it| line(5, "message", it));
    let lines: String = of_5.chain(of_6.iter().map(|it| line(6, "message", it))).collect();
    expect_file![file("ui_messages.jsonl")].assert_eq(&lines);
    println!("{n_prefixes} prefixes");
    assert!(n_prefixes > 7000, "{n_prefixes} prefixes");
}

#[test]
fn chunks_have_these_shapes() {
    let mut lines = String::new();
    for (number, profile) in PROFILES {
        let chunks = all().flat_map(|session| told(&session.records, profile));
        let shapes: BTreeSet<String> = chunks.map(|it| fields_shape(&it).to_string()).collect();
        lines.extend(shapes.iter().map(|it| line(number, "chunk", it)));
    }
    expect_file![file("ui_chunks.jsonl")].assert_eq(&lines);
}

/// Every run, record by record.
fn told(records: &[Record], profile: Profile) -> Vec<Value> {
    let runs = records.iter().filter_map(|it| it.response_id.as_ref());
    let runs: BTreeSet<&str> = runs.map(ResponseId::as_str).collect();
    let streams = runs.into_iter().map(|run| Stream::new(ResponseId::new(run), profile));
    streams.flat_map(|mut it| records.iter().flat_map(move |record| it.apply(record))).collect()
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn line(profile: u8, what: &str, shape: &str) -> String {
    format!("{{\"profile\":{profile},\"{what}\":{shape}}}\n")
}

/// Of the last messages after every record: the others have not changed. With the number of records.
fn shapes(profile: Profile) -> (usize, BTreeSet<String>) {
    let file_url = |file: &Attachment| format!("http://localhost/{}", file.blob);
    let mut n_prefixes = 0;
    let mut shapes = BTreeSet::new();
    for session in all() {
        let mut transcript = Transcript::default();
        for record in &session.records {
            transcript.apply(record);
            n_prefixes += 1;
            let last = transcript.messages.iter().rev().take(2);
            let told = last.filter_map(|it| message(it, profile, &file_url));
            shapes.extend(told.map(|it| shape(&it).to_string()));
        }
    }
    (n_prefixes, shapes)
}

/// Each kind of part once.
fn shape(message: &Value) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    for part in message["parts"].as_array().unwrap() {
        let part = fields_shape(part);
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    json!({ "id": "x", "role": message["role"], "metadata": {}, "parts": parts })
}

fn fields_shape(part: &Value) -> Value {
    let fields = part.as_object().unwrap().iter();
    let fields: Map<String, Value> = fields
        .map(|(name, value)| {
            let kind = match name.as_str() {
                "type" if part.get("toolCallId").is_some() && part.get("state").is_some() => {
                    json!("tool-x")
                }
                "type" | "state" | "finishReason" => value.clone(),
                // May be anything.
                "input" | "output" | "data" | "messageMetadata" if value.is_object() => json!({}),
                _ => blank(value),
            };
            (name.clone(), kind)
        })
        .collect();
    Value::Object(fields)
}

/// Its kind alone.
fn blank(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Number(_) => json!(0),
        Value::String(_) => json!("x"),
        Value::Array(_) => json!([]),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), blank(value))).collect()
        }
    }
}
