//! A run that is encoded, imported and encoded again is the same, whether it was streamed live or later.

use expect_test::expect_file;
use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::{Message, Record, RunMessage};

use super::{EventFormat, events, import};
use crate::follow::Follow;
use crate::import::tests::{lines, setting, transcript};
use crate::tests::finished_runs;
use crate::tests::logs::{corpus, spoken_log};

fn encoded_again(encoded: &[Value], answer: &RunMessage) -> Vec<Value> {
    let mut message = json!({ "id": answer.id, "role": "assistant", "events": encoded });
    if let Some(model) = &answer.model {
        message["model"] = json!(model);
    }
    let again = transcript(import(&json!([message]), &setting()));
    events(again.messages.first().and_then(Message::run).unwrap())
}

/// Edited arguments are in the call that runs, not in the proposed one.
fn was_edited(answer: &RunMessage) -> bool {
    answer.calls().any(|it| crate::call::accepted(it).is_some_and(|it| it.arguments.is_some()))
}

fn check_live(log: &[Record]) {
    for (run, answer) in finished_runs(log).into_iter().filter(|(_, it)| !was_edited(it)) {
        let mut follow = Follow::new(run.clone());
        let mut format = EventFormat::new(run.clone());
        let mut live = Vec::new();
        for record in log {
            live.extend(follow.apply(record).iter().flat_map(|news| format.events(news)));
        }
        assert_eq!(json!(encoded_again(&live, &answer)), json!(events(&answer)), "{run}");
    }
}

#[test]
fn live_run_survives_a_round_trip() {
    for (name, log) in corpus() {
        if name != "odd" {
            check_live(&log);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn random_live_run_survives_a_round_trip(log in spoken_log(60)) {
        check_live(&log);
    }
}

/// Streams of the real library: what they mean here.
#[test]
fn what_the_real_library_streams() {
    for line in include_str!("../../fixtures/fullstream/real.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let entries = import(&case["fullStream"], &setting());
        transcript(entries.clone());
        let name = case["name"].as_str().unwrap();
        let path = format!("{}/fixtures/fullstream/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        expect_file![path].assert_eq(&lines(&entries));
    }
}

/// The steps of the document that commentary comes from.
#[test]
fn words_before_a_call_are_its_commentary() {
    let delta = |text: &str| json!({ "type": "text-delta", "text": text });
    let call = |id: &str, name: &str| json!({ "type": "tool-call", "toolCallId": id, "toolName": name, "input": {} });
    let result = |id: &str| json!({ "type": "tool-result", "toolCallId": id, "output": 3 });
    let (start, finish) = (json!({ "type": "start-step" }), json!({ "type": "finish-step" }));
    let stream = json!([
        start,
        delta("I'll search "),
        delta("for your notes..."),
        call("1", "search_notes"),
        result("1"),
        finish,
        start,
        delta("Found 3 notes. Let me read the first one..."),
        call("2", "get_note"),
        result("2"),
        finish,
        start,
        delta("Here's what I found"),
        finish,
    ]);
    let transcript = transcript(import(&stream, &setting()));
    let answer = transcript.messages[0].run().unwrap();
    assert_eq!(answer.content(), "Here's what I found");
    let commentary: Vec<_> = answer.calls().map(|call| answer.commentary(call).unwrap()).collect();
    let words = ["I'll search for your notes...", "Found 3 notes. Let me read the first one..."];
    assert_eq!(commentary, words);
}
