//! Recorded behaviour of the real clients. The client of these tests may refuse more than they do, because it
//! also checks for chunks that Callboard never sends; if it accepts a stream, so do they, with the same message.

use std::panic::catch_unwind;

use expect_test::expect;
use serde_json::{Value, json};
use transcript::ResponseId;

use super::client::{Client, Status};
use crate::import::tests::{records, setting};
use crate::ui::{Profile, Stream};

/// A case, with what the newest release and all that differ from it have made of it.
fn cases() -> impl Iterator<Item = Value> {
    let lines = include_str!("../../../fixtures/ui/folded.jsonl").lines();
    let cases = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    // A client that resumes starts over; that and what is below the chunks is tried with the real clients.
    cases.filter(|it| it["chunks"].is_array() && it["resumes"].is_null())
}

fn seen<'a>(case: &'a Value, release: &str) -> &'a Value {
    let releases = &case["releases"];
    releases.get(release).unwrap_or(&releases["ai-7"])
}

/// None if the client would not take it.
fn fold(case: &Value, profile: Profile) -> Option<Client> {
    let mut client = Client::with_message(profile, &case["initial"]);
    let chunks = case["chunks"].as_array().unwrap().clone();
    catch_unwind(move || {
        client.take(chunks);
        client
    })
    .ok()
}

/// But for arguments that are not whole, of which clients show what they like, and for the ids of
/// thoughts, which the first releases do not keep.
fn comparable(mut message: Value) -> Value {
    for part in message["parts"].as_array_mut().unwrap() {
        let fields = part.as_object_mut().unwrap();
        if fields["type"] == "reasoning" {
            fields.shift_remove("id");
        }
        if fields.get("state").is_some_and(|it| it == "input-streaming") {
            fields.shift_remove("input");
            fields.shift_remove("rawInput");
        }
    }
    message
}

/// The names of the cases that the client takes.
fn taken(release: &str, profile: Profile) -> String {
    let mut names = String::new();
    for case in cases() {
        let Some(client) = fold(&case, profile) else { continue };
        let (name, seen) = (case["name"].as_str().unwrap(), seen(&case, release));
        let status = if client.status == Status::Failed { "error" } else { "ready" };
        assert_eq!(status, seen["status"], "{name} in {release}");
        let real = comparable(seen["assistant"][0].clone());
        assert_eq!(comparable(client.message()), real, "{name} in {release}");
        names += &format!("{name}\n");
    }
    names
}

#[test]
fn version_5() {
    let names = taken("ai-5", Profile::V5);
    expect![[r#"
        ui-abort-chunk-plain
        ui-finish-reason-absent
        ui-text-unterminated
        ui-tool-static-partial-input
    "#]]
    .assert_eq(&names);
    assert_eq!(taken("ai-5-first", Profile::V5), names);
}

#[test]
fn versions_6_and_7() {
    let names = taken("ai-6", Profile::V6);
    expect![[r#"
        ui-abort-chunk-plain
        ui-approval-request
        ui-continuation-same-id
        ui-finish-reason-absent
        ui-metadata-merge
        ui-reasoning-then-text
        ui-sources-and-file
        ui-text-no-done-marker
        ui-text-two-interleaved
        ui-text-unterminated
        ui-tool-output-error
        ui-tool-output-in-later-step
        ui-tool-static-partial-input
        ui-tool-static-streamed
    "#]]
    .assert_eq(&names);
    assert_eq!(taken("ai-6-first", Profile::V6), names);
    assert_eq!(taken("ai-7", Profile::V7), names);
    assert_eq!(taken("ai-7-first", Profile::V7), names);
}

/// The library's own server makes a stream of what its model does: from ours, a client has the same.
#[test]
fn stream_equals_that_of_the_library() {
    for line in include_str!("../../../fixtures/fullstream/real.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let log = records(crate::fullstream::import(&case["fullStream"], &setting()));
        let mut ours = Client::new(Profile::V7);
        ours.take(Stream::new(ResponseId::new("r1"), Profile::V7).replay(&log));
        let mut theirs = Client::new(Profile::V7);
        theirs.take(as_we_would(case["uiMessageStream"].as_array().unwrap()));
        let [ours, theirs] = [ours, theirs].map(|it| without_wording(it.message()));
        assert_eq!(ours["parts"], theirs["parts"], "{}", case["name"]);
    }
}

/// In chunks that every version knows, up to an error, after which clients read nothing.
fn as_we_would(chunks: &[Value]) -> Vec<Value> {
    let mut received = Vec::new();
    for chunk in chunks {
        let mut chunk = chunk.clone();
        let fields = chunk.as_object_mut().unwrap();
        fields.shift_remove("dynamic");
        match fields["type"].as_str().unwrap() {
            "tool-input-error" => {
                let error = fields.shift_remove("errorText");
                let id = fields["toolCallId"].clone();
                fields.insert("type".to_owned(), json!("tool-input-available"));
                received.push(chunk);
                received.push(
                    json!({ "type": "tool-output-error", "toolCallId": id, "errorText": error }),
                );
            }
            "error" => {
                received.push(chunk);
                break;
            }
            _ => received.push(chunk),
        }
    }
    received
}

/// Normalises the differences: texts of errors, which the library hides; ids; a text that an error cut off, which
/// we close; and a message without parts, to which we add one.
fn without_wording(mut message: Value) -> Value {
    let parts = message["parts"].as_array_mut().unwrap();
    if parts.is_empty() {
        parts.push(json!({ "type": "step-start" }));
    }
    for part in parts {
        let fields = part.as_object_mut().unwrap();
        fields.shift_remove("id");
        fields.shift_remove("errorText");
        if fields.get("state").is_some_and(|it| it == "streaming") {
            fields.insert("state".to_owned(), json!("done"));
        }
    }
    message
}
