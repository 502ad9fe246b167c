//! More deviations of model services from the protocol, and arbitrary input.

use backends::openai::FinishReason;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::reading::{check_every_chunking, decode, summary};

/// Returns an event with this delta.
fn chunk(delta: Value) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }))
}

fn calls(deltas: &[Value]) -> String {
    deltas.iter().map(|it| chunk(json!({ "tool_calls": [it] }))).collect()
}

#[track_caller]
fn check_calls(body: &str, expected: Value) {
    let read: Vec<Value> = summary(body.as_bytes())["toolCalls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["id"], it["name"], it["arguments"]]))
        .collect();
    assert_eq!(Value::from(read), expected);
    check_every_chunking(body.as_bytes());
}

#[track_caller]
fn check(body: &str, field: &str, expected: Value) {
    assert_eq!(summary(body.as_bytes())[field], expected, "{body}");
    check_every_chunking(body.as_bytes());
}

/// The example call of the document that specifies the badges, in one delta and in pieces.
#[test]
fn a_call_in_one_delta_and_in_pieces() {
    let call = json!([["call_abc123", "search_web", "{\"query\":\"weather\"}"]]);
    let delta = |arguments: &str| {
        let function = json!({ "name": "search_web", "arguments": arguments });
        json!({ "index": 0, "id": "call_abc123", "type": "function", "function": function })
    };
    check_calls(&calls(&[delta("{\"query\":\"weather\"}")]), call.clone());
    let rest = json!({ "index": 0, "function": { "arguments": "\"weather\"}" } });
    check_calls(&calls(&[delta("{\"query\":"), rest]), call);
}

#[test]
fn calls_without_an_index() {
    let two = json!({ "tool_calls": [
        { "function": { "name": "a", "arguments": "{\"x\":1}" } },
        { "function": { "name": "b", "arguments": "{\"y\":2}" } },
    ]});
    check_calls(&chunk(two), json!([[null, "a", "{\"x\":1}"], [null, "b", "{\"y\":2}"]]));
    let by_id = calls(&[
        json!({ "id": "c1", "function": { "name": "a", "arguments": "" } }),
        json!({ "id": "c2", "function": { "name": "b", "arguments": "" } }),
        json!({ "id": "c1", "function": { "arguments": "{\"x\":1}" } }),
        json!({ "id": "c2", "function": { "arguments": "{\"y\":2}" } }),
    ]);
    check_calls(&by_id, json!([["c1", "a", "{\"x\":1}"], ["c2", "b", "{\"y\":2}"]]));
    let one_by_one = calls(&[
        json!({ "function": { "name": "a", "arguments": "{\"x\"" } }),
        json!({ "function": { "arguments": ":1}" } }),
        json!({ "function": { "name": "a", "arguments": "{\"x\":2}" } }),
    ]);
    check_calls(&one_by_one, json!([[null, "a", "{\"x\":1}"], [null, "a", "{\"x\":2}"]]));
}

#[test]
fn call_names_in_pieces_repeated_late_or_missing() {
    let pieces = calls(&[
        json!({ "index": 0, "id": "c1", "function": { "name": "get_", "arguments": "" } }),
        json!({ "index": 0, "function": { "name": "weather" } }),
        json!({ "index": 0, "function": { "arguments": "{}" } }),
    ]);
    check_calls(&pieces, json!([["c1", "get_weather", "{}"]]));
    let repeated = calls(&[
        json!({ "index": 0, "id": "c1", "function": { "name": "a", "arguments": "" } }),
        json!({ "index": 0, "id": "c1", "function": { "name": "a", "arguments": "{\"x\"" } }),
        json!({ "index": 0, "id": "c1", "function": { "name": "a", "arguments": ":1}" } }),
    ]);
    check_calls(&repeated, json!([["c1", "a", "{\"x\":1}"]]));
    let late = calls(&[
        json!({ "index": 0, "id": "c1", "function": { "name": "", "arguments": "{\"x\"" } }),
        json!({ "index": 0, "function": { "name": "a", "arguments": ":1}" } }),
    ]);
    check_calls(&late, json!([["c1", "a", "{\"x\":1}"]]));
    let never = calls(&[json!({ "index": 0, "id": "c1" })]);
    check_calls(&never, json!([["c1", "", "{}"]]));
}

#[test]
fn two_calls_at_one_index() {
    let both = |first: &str, second: Value| {
        calls(&[
            json!({ "index": 0, "id": "c1", "function": { "name": "a", "arguments": first } }),
            second,
            json!({ "index": 0, "function": { "arguments": "{\"y\":2}" } }),
        ])
    };
    // Another name and another id, whether the first call has arguments or not.
    for (first, arguments) in [("", "{}"), ("{\"x\":1}", "{\"x\":1}")] {
        let second =
            json!({ "index": 0, "id": "c2", "function": { "name": "b", "arguments": "" } });
        check_calls(
            &both(first, second),
            json!([["c1", "a", arguments], ["c2", "b", "{\"y\":2}"]]),
        );
    }
    // Another name alone, once the first call is complete.
    let second = json!({ "index": 0, "function": { "name": "b", "arguments": "" } });
    let expected = json!([["c1", "a", "{}"], [null, "b", "{\"y\":2}"]]);
    check_calls(&both("{}", second), expected);
}

#[test]
fn calls_are_ordered_by_index() {
    let call = |index: u64, id: &str, arguments: &str| json!({ "index": index, "id": id, "function": { "name": "a", "arguments": arguments } });
    let in_order = json!([["c0", "a", "{\"x\":0}"], ["c1", "a", "{\"x\":1}"], ["c2", "a", "{}"]]);
    let [zero, one, two] =
        [call(0, "c0", "{\"x\":0}"), call(1, "c1", "{\"x\":1}"), call(2, "c2", "{}")];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let shuffled = order.map(|it: usize| [&zero, &one, &two][it].clone());
        check_calls(&calls(&shuffled), in_order.clone());
        let spoken = chunk(json!({ "content": "Let me look." })) + &calls(&shuffled);
        check_calls(&spoken, in_order.clone());
    }
    let in_pieces = calls(&[
        call(1, "c1", "{\"x\""),
        call(0, "c0", ""),
        json!({ "index": 1, "function": { "arguments": ":1}" } }),
        json!({ "index": 0, "function": { "arguments": "{}" } }),
    ]);
    check_calls(&in_pieces, json!([["c0", "a", "{}"], ["c1", "a", "{\"x\":1}"]]));
    // Some services number calls from one, or leave gaps.
    check_calls(&calls(std::slice::from_ref(&two)), json!([["c2", "a", "{}"]]));
    check_calls(&calls(&[two, call(7, "c7", "{}")]), json!([["c2", "a", "{}"], ["c7", "a", "{}"]]));
}

#[test]
fn a_long_call_does_not_wait_for_a_missing_lower_index() {
    let long = format!("{{\"x\":\"{}\"", "y".repeat(5000));
    let begun = json!({ "index": 1, "id": "c1", "function": { "name": "a", "arguments": long } });
    let mut decoder = backends::openai::Decoder::default();
    let output = decoder.feed(calls(&[begun]).as_bytes());
    assert!(
        matches!(output[..], [backends::openai::AnswerDelta::Call { call: 0, .. }, _]),
        "{output:?}"
    );
}

#[test]
fn a_second_batch_of_calls_after_text() {
    let batches = calls(&[json!({ "index": 0, "id": "c1", "function": { "name": "a" } })])
        + &chunk(json!({ "content": "And now" }))
        + &calls(&[json!({ "index": 0, "id": "c2", "function": { "name": "a" } })]);
    check_calls(&batches, json!([["c1", "a", "{}"], ["c2", "a", "{}"]]));
}

#[test]
fn events_in_every_framing() {
    let event = |text: &str| json!({ "choices": [{ "delta": { "content": text } }] }).to_string();
    let (a, b) = (event("a"), event("b"));
    let split = a.split_at(a.find("\"delta\"").unwrap());
    for body in [
        format!("data: {a}\ndata: {b}\n"),
        format!("data:{a}\r\rdata:{b}\r\r"),
        format!("data: {a}\r\n\r\ndata: {b}"),
        format!(": hello\n\nid: 1\nretry: 5\ndata: {a}\n\ndata:\n\ndata: \n\ndata: {b}\n\n"),
        format!("data: {}\ndata: {}\n\ndata: {b}\n\n", split.0, split.1),
        format!("data: {}\r\ndata: {}\r\n\r\ndata: {b}\n\n", split.0, split.1),
        format!("\u{feff}\n\ndata: {a}\n\ndata: {b}\n\n"),
    ] {
        check(&body, "text", json!("ab"));
        check(&body, "unreadable", json!([]));
    }
}

#[test]
fn content_in_pieces_and_other_choices() {
    let pieces = json!([
        { "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] },
        { "type": "text", "text": "so" },
    ]);
    check(&chunk(json!({ "content": pieces })), "text", json!("so"));
    check(&chunk(json!({ "content": pieces })), "reasoning", json!("hm"));
    let others = json!({ "choices": [
        { "index": 1, "delta": { "content": "no" } },
        { "index": 0, "delta": { "content": "yes" } },
    ]});
    check(&format!("data: {others}\n\n"), "text", json!("yes"));
    check(
        "data: {}\n\ndata: {\"choices\":[{}]}\n\ndata: {\"choices\":null}\n\n",
        "text",
        json!(""),
    );
}

#[test]
fn reasoning_details_are_merged() {
    let piece = |detail: Value| chunk(json!({ "reasoning_details": [detail] }));
    let body = piece(json!({ "type": "reasoning.text", "index": 0, "text": "I " }))
        + &piece(
            json!({ "type": "reasoning.text", "index": 0, "text": "think", "signature": null }),
        )
        + &piece(json!({ "type": "reasoning.text", "index": 0, "signature": "S" }))
        + &piece(json!({ "type": "reasoning.encrypted", "index": 1, "data": "xyz" }));
    check(&body, "reasoning", json!("I think"));
    let details = decode([body.as_bytes()]).1.reasoning_details;
    assert_eq!(
        details,
        Some(json!([
            { "type": "reasoning.text", "index": 0, "text": "I think", "signature": "S" },
            { "type": "reasoning.encrypted", "index": 1, "data": "xyz" },
        ]))
    );
}

#[test]
fn a_full_message_after_its_deltas_adds_nothing() {
    let message = json!({ "choices": [{ "message": { "role": "assistant", "content": "ab" } }] });
    let body = chunk(json!({ "content": "a" })) + &chunk(json!({ "content": "b" }));
    check(&format!("{body}data: {message}\n\n"), "text", json!("ab"));
    check(&format!("data: {message}\n\n"), "text", json!("ab"));
}

#[test]
fn thinking_tags_count_only_at_the_beginning() {
    for (output, thinking, text) in [
        ("<think>hm</think>\n\nso", "hm", "so"),
        ("\n<thinking>a < b</thinking>so", "a < b", "so"),
        ("<think>never ends", "never ends", ""),
        ("<think></think>so", "", "so"),
        ("<thin air", "", "<thin air"),
        ("<", "", "<"),
        ("the tag <think>x</think>", "", "the tag <think>x</think>"),
        ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
    ] {
        // The text is cut between events, too, not only between bytes.
        for cut in (0..=output.len()).filter(|&it| output.is_char_boundary(it)) {
            let body = chunk(json!({ "content": output[..cut] }))
                + &chunk(json!({ "content": output[cut..] }));
            let read = summary(body.as_bytes());
            assert_eq!((&read["reasoning"], &read["text"]), (&json!(thinking), &json!(text)));
        }
    }
}

#[test]
fn errors_in_every_form() {
    for body in [
        "data: {\"error\":{\"message\":\"boom\",\"code\":500}}\n\n",
        "data: {\"error\":\"boom\"}\n\n",
        "data: {\"object\":\"error\",\"message\":\"boom\",\"code\":400}\n\n",
        "error: {\"message\":\"boom\"}\n\n",
        "event: error\ndata: {\"message\":\"boom\"}\n\n",
        "event: error\ndata: boom\n\n",
        "{\"error\":\"boom\"}",
        "[{\"error\":{\"code\":400,\"message\":\"boom\"}}]",
        "data: {\"choices\":[{\"error\":{\"message\":\"boom\"},\"finish_reason\":\"error\"}]}\n\n",
    ] {
        check(body, "error", json!("boom"));
    }
}

#[test]
fn a_body_without_events_has_no_answer() {
    for body in ["", "\n\n", ": ping\n\n: ping\n\n", "<html>busy</html>"] {
        let (output, outcome) = decode([body.as_bytes()]);
        assert!(output.is_empty() && !outcome.has_answer && outcome.error.is_none(), "{body:?}");
    }
}

#[test]
fn finish_reasons_in_every_spelling() {
    for (word, reason) in [
        ("stop", Some(FinishReason::Stop)),
        ("end_turn", Some(FinishReason::Stop)),
        ("MAX_TOKENS", Some(FinishReason::Length)),
        ("tool_use", Some(FinishReason::ToolCalls)),
        ("SAFETY", Some(FinishReason::ContentFilter)),
        ("network_error", Some(FinishReason::Error)),
        ("mystery", Some(FinishReason::Other)),
        ("", None),
        ("null", None),
    ] {
        let body = format!("data: {}\n\n", json!({ "choices": [{ "finish_reason": word }] }));
        assert_eq!(decode([body.as_bytes()]).1.finish_reason, reason, "{word}");
    }
}

proptest! {
    #[test]
    fn any_body_decodes_the_same_in_any_chunking(
        lines in prop::collection::vec(any_line(), 0..8),
        cuts in prop::collection::vec(0..400usize, 0..6),
    ) {
        let body: Vec<u8> = lines.concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|it| it.min(body.len())).collect();
        cuts.sort_unstable();
        let mut from = 0;
        let mut pieces = Vec::new();
        for cut in cuts {
            pieces.push(&body[from..cut]);
            from = cut;
        }
        pieces.push(&body[from..]);
        prop_assert_eq!(decode(pieces), decode([&body[..]]));
    }
}

proptest! {
    /// The text is read unchanged regardless of other fields, and even if its pieces repeat.
    #[test]
    fn any_text_is_decoded_unchanged(
        texts in prop::collection::vec("[a\"\\\\\n{}:é, ]{0,6}", 1..12),
        around in "[a\",]{0,3}",
    ) {
        let event = |text: &String| {
            let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": null });
            format!("data: {}\n\n", json!({ "id": around, "choices": [choice], "end": around }))
        };
        // The first letter prevents the text from starting with a tag.
        let body: String = std::iter::once(&"x".to_owned()).chain(&texts).map(event).collect();
        prop_assert_eq!(&summary(body.as_bytes())["text"], &json!(format!("x{}", texts.concat())));
    }
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n"), Just("\r"), Just("")];
    let line = prop_oneof![
        "[a-z{}<>:\"é ]{0,12}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..6),
        "<?/?(think)?>?é?".prop_map(|it| chunk(json!({ "content": it })).trim_end().into()),
        ("[ab]?", "[ab]?", "[{}\" x]{0,3}", 0..2u8).prop_map(|(id, name, arguments, index)| {
            let function = json!({ "name": name, "arguments": arguments });
            let call = json!({ "index": index, "id": id, "function": function });
            chunk(json!({ "tool_calls": [call] })).trim_end().into()
        }),
        Just(b"data: [DONE]".to_vec()),
        Just(b"event: error".to_vec()),
        Just(b"data: {\"usage\":{\"prompt_tokens\":1}}".to_vec()),
    ];
    (line, end).prop_map(|(line, end)| [line, end.into()].concat())
}
