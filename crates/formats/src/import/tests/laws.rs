//! Laws of every format that is exported and imported: an export that is imported gives the same export again,
//! and every file is either imported completely or refused.

use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::{Attachment, Content, Message, Record, ResponseId, RunMessage, Transcript};

use super::{setting, transcript};
use crate::import::{FORMATS, Format};
use crate::openai::{Files, Reader};
use crate::tests::logs::{corpus, sound_log};
use crate::tests::{any_json, whole};
use crate::ui::Profile;
use crate::{agui, call, callboard, contract, fullstream, openai, ui, ui_v4};

/// How a format is written, and what it cannot express.
struct Law {
    word: &'static str,
    export: fn(&Transcript) -> Vec<Value>,
    /// Answers that it can express.
    says: fn(&RunMessage) -> bool,
    /// Removes what it does not contain.
    forgive: fn(&mut [Value]),
}

const LAWS: [Law; 8] = [
    Law { word: "callboard", export: ours, says: every, forgive: but_for_ours },
    Law { word: "ui", export: ui_messages, says: every, forgive: nothing },
    Law { word: "ui-v4", export: v4_messages, says: no_hidden_leak, forgive: but_for_places },
    Law { word: "agui", export: agui_messages, says: every, forgive: nothing },
    Law {
        word: "openai",
        export: chat_messages,
        says: no_json,
        forgive: but_for_call_ids_and_quotes,
    },
    Law { word: "openai-stored", export: stored_messages, says: every, forgive: nothing },
    Law { word: "fullstream", export: streams, says: as_proposed, forgive: nothing },
    Law {
        word: "contract",
        export: contract_messages,
        says: every,
        forgive: but_for_odd_arguments,
    },
];

impl Law {
    /// Exports the messages. Everything that still ran then has been interrupted since.
    fn exported(&self, mut transcript: Transcript) -> Vec<Value> {
        transcript.messages.retain(|it| it.run().is_none_or(|it| !it.is_open() && (self.says)(it)));
        (self.export)(&transcript)
    }

    fn check(&self, log: &[Record]) {
        let log = whole(log);
        // The contract skips the assistant message of a run that says nothing, so its statuses cannot be
        // distinguished from those of the run before.
        let is_silent = |it: &RunMessage| it.content().is_empty() && it.n_calls() == 0;
        if self.word == "contract" && log.messages.iter().any(|it| it.run().is_some_and(is_silent))
        {
            return;
        }
        let mut once = self.exported(log);
        if once.is_empty() {
            return;
        }
        let file = json!({ "messages": once }).to_string();
        let document = Format::find(self.word).unwrap().parse(&file);
        let document = document.unwrap_or_else(|why| panic!("{}: {why}", self.word));
        let mut twice = self.exported(transcript(document.entries(&setting())));
        (self.forgive)(&mut once);
        (self.forgive)(&mut twice);
        assert_eq!(json!(twice), json!(once), "{}", self.word);
    }
}

#[test]
fn every_format_has_its_law() {
    assert_eq!(LAWS.map(|it| it.word), FORMATS.map(|it| it.word));
}

#[test]
fn a_conversation_exported_and_imported_is_the_same() {
    for law in &LAWS {
        for (_, log) in corpus() {
            law.check(&log);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_random_conversation_exported_and_imported_is_the_same(log in sound_log(60)) {
        for law in &LAWS {
            law.check(&log);
        }
    }

    #[test]
    fn nothing_is_too_odd_to_be_imported_or_refused(one in any_json(), other in any_json()) {
        let pair = json!([one, other]);
        for file in [one, json!({ "messages": pair }), json!([other, other]), pair] {
            check_whole_or_refused(&file.to_string());
        }
    }

    /// Damages a valid file.
    #[test]
    fn nothing_is_too_broken(
        log in sound_log(30), law in 0..LAWS.len(), place in any::<prop::sample::Index>(),
        instead in any_json(), cut in any::<prop::sample::Index>(),
    ) {
        let mut file = json!(LAWS[law].exported(whole(&log)));
        let n_values = count(&file);
        replace(&mut file, &mut place.index(n_values), &instead);
        let text = file.to_string();
        check_whole_or_refused(&text);
        let cut = text.floor_char_boundary(cut.index(text.len() + 1));
        check_whole_or_refused(&text[..cut]);
    }
}

/// An AG-UI client that followed a run has the messages that an export contains.
fn check_events_of_agui(log: &[Record]) {
    let transcript = whole(log);
    for answer in transcript.messages.iter().filter(|it| it.run().is_some_and(|it| !it.is_open())) {
        let run = ResponseId::new(answer.id());
        let of_run = |it: &&Record| it.response_id.as_ref() == Some(&run);
        let records: Vec<Record> = log.iter().filter(of_run).cloned().collect();
        let events = agui::Stream::new(run, "thread", "run").replay(&records);
        let file = json!(events).to_string();
        let document = Format::find("agui").unwrap().parse(&file).unwrap();
        let again = self::transcript(document.entries(&setting()));
        let file_url = |_: &Attachment| String::new();
        let kept = agui::messages(answer, agui::Version::V1, &file_url);
        let [again, kept] = [agui_messages(&again), kept].map(|it| results_apart(&it));
        assert_eq!(again, kept, "{file}");
    }
}

/// Told at once, results come in another order than they did.
fn results_apart(messages: &[Value]) -> Value {
    let is_result = |it: &&Value| it["role"] == "tool";
    let (mut results, words): (Vec<&Value>, Vec<&Value>) = messages.iter().partition(is_result);
    results.sort_by_key(|it| it["id"].to_string());
    json!([words, results])
}

#[test]
fn events_of_agui_are_the_messages_that_they_make() {
    for (_, log) in corpus() {
        check_events_of_agui(&log);
    }
}

proptest! {
    #[test]
    fn agui_events_of_random_runs_make_the_exported_messages(log in sound_log(60)) {
        check_events_of_agui(&log);
    }
}

fn check_whole_or_refused(file: &str) {
    for format in &FORMATS {
        match format.parse(file) {
            Ok(document) => drop(transcript(document.entries(&setting()))),
            Err(why) => assert!(!why.to_string().is_empty()),
        }
    }
}

/// The values in a value, itself included.
fn count(value: &Value) -> usize {
    let inner: usize = match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    };
    1 + inner
}

/// Puts something else in place of one of them; `place` counts down to it.
fn replace(value: &mut Value, place: &mut usize, instead: &Value) -> bool {
    if *place == 0 {
        value.clone_from(instead);
        return true;
    }
    *place -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|it| replace(it, place, instead)),
        Value::Object(fields) => fields.values_mut().any(|it| replace(it, place, instead)),
        _ => false,
    }
}

fn every(_: &RunMessage) -> bool {
    true
}

fn nothing(_: &mut [Value]) {}

fn file_url(file: &Attachment) -> String {
    format!("/api/blobs/{}", file.blob)
}

fn ours(transcript: &Transcript) -> Vec<Value> {
    let received = transcript.messages.iter().filter(|it| !matches!(it.content, Content::Aside(_)));
    received.map(|it| serde_json::to_value(callboard::message(it)).unwrap()).collect()
}

/// Removes the fields that only Callboard writes.
fn but_for_ours(messages: &mut [Value]) {
    let only = |value: &mut Value, fields: &[&str]| {
        value.as_object_mut().unwrap().retain(|name, _| fields.contains(&name.as_str()));
    };
    for message in messages {
        only(message, &["id", "role", "content", "createdAt", "toolCalls"]);
        let calls = message.get_mut("toolCalls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            only(call, &["id", "name", "args", "result", "status", "error", "commentary"]);
        }
    }
}

fn ui_messages(transcript: &Transcript) -> Vec<Value> {
    let messages = transcript.messages.iter();
    messages.filter_map(|it| ui::message(it, Profile::V6, &file_url)).collect()
}

/// In the order of their times: random runs go on side by side.
fn v4_messages(transcript: &Transcript) -> Vec<Value> {
    let messages = transcript.messages.iter().filter_map(|it| ui_v4::message(it, &file_url));
    let mut messages: Vec<Value> = messages.collect();
    messages.sort_by_key(|it| it["createdAt"].to_string());
    messages
}

/// Without the call, a text cannot be recognised as its arguments.
fn no_hidden_leak(answer: &RunMessage) -> bool {
    let leaks = answer.texts().any(|(_, text)| text.leaked);
    !(leaks && answer.parts.iter().any(|it| it.parent.is_some()))
}

/// The order of an answer's annotations and the number of an aside are not contained.
fn but_for_places(messages: &mut [Value]) {
    for annotations in messages.iter_mut().filter_map(|it| it.get_mut("annotations")) {
        let annotations = annotations.as_array_mut().unwrap();
        for data in annotations.iter_mut().filter(|it| it["type"].is_string()) {
            if data["type"] == "data-notice" || data["type"] == "data-unrecognized" {
                data["id"] = Value::Null;
            }
        }
        annotations.sort_by_key(Value::to_string);
    }
}

fn agui_messages(transcript: &Transcript) -> Vec<Value> {
    let messages = transcript.messages.iter();
    messages.flat_map(|it| agui::messages(it, agui::Version::V1, &file_url)).collect()
}

fn chat_messages(transcript: &Transcript) -> Vec<Value> {
    let reader = Reader { agent: "", model: None, system: None, files: Files::LeftOut };
    openai::conversation(transcript, &reader)
}

/// Where one answer follows another, they may become one; what is JSON may then be the arguments of a
/// call of the other.
fn no_json(answer: &RunMessage) -> bool {
    answer.texts().all(|(_, it)| serde_json::from_str::<Value>(&it.text).is_err())
}

/// Each id is replaced by a new one; and what a call printed comes back as its result, which is
/// quoted.
fn but_for_call_ids_and_quotes(messages: &mut [Value]) {
    let mut n_calls = 0;
    let mut number = || {
        n_calls += 1;
        json!(n_calls)
    };
    for message in messages {
        if message["role"] == "tool" {
            message["tool_call_id"] = number();
            let content = message["content"].as_str().unwrap();
            if let Ok(text @ Value::String(_)) = serde_json::from_str(content) {
                message["content"] = text;
            }
        }
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            call["id"] = number();
        }
    }
}

fn stored_messages(transcript: &Transcript) -> Vec<Value> {
    transcript.messages.iter().flat_map(openai::stored).collect()
}

fn streams(transcript: &Transcript) -> Vec<Value> {
    transcript.messages.iter().filter_map(fullstream::message).collect()
}

/// Edited arguments are in the call that runs, not in the proposed one.
fn as_proposed(answer: &RunMessage) -> bool {
    let was_edited = |it| call::accepted(it).is_some_and(|it| it.arguments.is_some());
    !answer.calls().any(was_edited)
}

fn contract_messages(transcript: &Transcript) -> Vec<Value> {
    let received = |it: &Message| contract::messages(it, contract::Statuses::Lasting);
    let messages = transcript.messages.iter().flat_map(received);
    messages.map(|it| serde_json::to_value(it).unwrap()).collect()
}

/// Arguments that are no object are not contained.
fn but_for_odd_arguments(messages: &mut [Value]) {
    for message in messages {
        let calls = message["metadata"].get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            call.as_object_mut().unwrap().entry("args").or_insert_with(|| json!({}));
        }
    }
}
