//! Chunks put together, as the official clients do it, are the answer that does not stream.

use std::collections::HashSet;

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::logs::any_log;
use transcript::{CallId, PartKind, Record, ResponseId, RunMessage, TextRole};

use super::folding::{Client, Folded, fold};
use crate::openai::{Chunks, Completion, Options, OtherCalls, request};
use crate::tests::logs::{corpus, read, sound_log};
use crate::tests::{finished_runs, whole};

fn options(other_calls: OtherCalls) -> Options {
    Options { model: "demo".into(), include_usage: true, other_calls }
}

const ALL_OPTIONS: [OtherCalls; 2] = [OtherCalls::Reasoning, OtherCalls::Hidden];

/// All of one response, and the same at once.
struct Response {
    chunks: Vec<Value>,
    completion: Value,
}

fn whole_response(stream: &Chunks) -> Value {
    match stream.completion().unwrap() {
        Completion::Answer(whole) | Completion::Failed(whole) => whole,
    }
}

/// A run as its client gets it, who answers calls by asking again: up to the cut in one go, then record
/// by record.
fn responses(log: &[Record], cut: usize, run: &ResponseId, calls: OtherCalls) -> Vec<Response> {
    let mut stream = Chunks::new(run.clone(), options(calls));
    let mut responses: Vec<Response> = Vec::new();
    let mut chunks = stream.replay(&log[..cut]);
    for n_sent in cut..=log.len() {
        if stream.is_over() && !chunks.is_empty() {
            let completion = whole_response(&stream);
            responses.push(Response { chunks: std::mem::take(&mut chunks), completion });
        }
        let Some(next) = log.get(n_sent) else { break };
        if !stream.is_over() {
            chunks.extend(stream.apply(next));
        } else if let Some(body) = results(&log[..=n_sent], run, &responses) {
            stream = Chunks::new(run.clone(), options(calls));
            chunks = stream.replay_unknown(&log[..=n_sent], &request(&body).unwrap().known);
        }
    }
    check_canonical(&chunks);
    responses.iter().for_each(|it| check_canonical(&it.chunks));
    responses
}

/// Returns the client's request as soon as it has a result for each call of the last response.
fn results(log: &[Record], run: &ResponseId, responses: &[Response]) -> Option<Value> {
    let last = &responses.last()?.completion["choices"][0]["message"];
    let transcript = whole(log);
    let answer = transcript.message(run.as_str())?.run()?;
    let mut messages: Vec<Value> =
        responses.iter().map(|it| it.completion["choices"][0]["message"].clone()).collect();
    for call in last["tool_calls"].as_array()? {
        let id = CallId::new(call["id"].as_str()?);
        answer.call(&id)?.outcome.as_ref()?;
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": "red" }));
    }
    Some(json!({ "model": "m", "messages": messages }))
}

/// The one form that every reader takes: who speaks comes first; a call's id, type and name once, with
/// the next index; one reason to end, then the usage; or an error, and nothing after it.
fn check_canonical(chunks: &[Value]) {
    let (mut n_calls, mut has_begun, mut has_ended, mut is_over) = (0, false, false, false);
    let mut ids = HashSet::new();
    for chunk in chunks {
        assert!(!is_over, "after the end: {chunk}");
        if !chunk["error"].is_null() {
            is_over = true;
            continue;
        }
        assert_eq!(chunk["object"], "chat.completion.chunk");
        ids.insert(chunk["id"].as_str().unwrap());
        let Some(choice) = chunk["choices"].get(0) else {
            assert!(has_ended && chunk["usage"].is_object());
            is_over = true;
            continue;
        };
        assert!(!has_ended, "after the end: {chunk}");
        let delta = choice["delta"].as_object().unwrap();
        assert_eq!(delta.contains_key("role"), !has_begun, "{chunk}");
        has_begun = true;
        has_ended = choice["finish_reason"].is_string();
        for name in ["content", "reasoning_content"] {
            assert!(delta.get(name).is_none_or(Value::is_string), "{chunk}");
        }
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let is_new = call["index"] == n_calls;
            n_calls += u64::from(is_new);
            assert!(call["index"].as_u64().unwrap() < n_calls);
            assert!(call["function"]["arguments"].is_string());
            for named in [&call["id"], &call["type"], &call["function"]["name"]] {
                assert_eq!(named.is_string(), is_new, "{chunk}");
            }
        }
    }
    assert!(ids.len() <= 1, "one response has one id");
}

fn check_law(log: &[Record], cuts: impl Iterator<Item = usize> + Clone) {
    for (run, _) in finished_runs(log).into_iter().filter(|(_, it)| !takes_back(it)) {
        for (calls, cut) in
            ALL_OPTIONS.into_iter().flat_map(|it| cuts.clone().map(move |cut| (it, cut)))
        {
            let responses = responses(log, cut, &run, calls);
            assert!(!responses.is_empty(), "{run} has ended");
            for Response { chunks, completion } in responses {
                let last = chunks.last().unwrap();
                if !last["error"].is_null() {
                    assert_eq!(*last, completion);
                    continue;
                }
                let choice = &completion["choices"][0];
                let whole = Folded {
                    message: choice["message"].clone(),
                    finish_reason: choice["finish_reason"].as_str().map(str::to_owned),
                    usage: completion["usage"].clone(),
                };
                assert_eq!(fold(&chunks, Client::Python), whole, "{run} cut at {cut}");
                assert_eq!(
                    without_reasoning(fold(&chunks, Client::Node)),
                    without_reasoning(whole)
                );
                assert_eq!(completion["id"], last["id"]);
            }
        }
    }
}

/// Removes the reasoning, of which the Node client keeps only the last piece.
fn without_reasoning(mut folded: Folded) -> Folded {
    folded.message.as_object_mut().unwrap().shift_remove("reasoning_content");
    folded
}

/// Returns whether a run contains texts that were discarded after they were sent.
fn takes_back(answer: &RunMessage) -> bool {
    answer.parts.iter().any(|part| match &part.kind {
        PartKind::Text(text) => text.leaked || text.role == TextRole::Discarded,
        PartKind::Thinking(thinking) => thinking.discarded,
        _ => false,
    })
}

#[test]
fn a_conversation_streamed_is_the_answer_at_once() {
    for (_, log) in corpus().into_iter().filter(|(name, _)| *name != "odd") {
        check_law(&log, 0..=log.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_random_run_streamed_is_the_answer_at_once(log in sound_log(60)) {
        check_law(&log, (0..=log.len()).step_by(7));
    }

    #[test]
    fn every_reader_takes_any_log_cut_anywhere(log in any_log(60)) {
        for run in ["r1", "r2"].map(ResponseId::new) {
            for calls in ALL_OPTIONS {
                for cut in (0..=log.len()).step_by(15) {
                    responses(&log, cut, &run, calls);
                    responses(&log[..cut], 0, &run, calls);
                }
            }
        }
    }
}

/// Two calls at once, then a third: three responses, beside calls of others.
const CLIENT_LOG: &str = r#"
    - {"type":"user_message","messageId":"m1","text":"look around"}
    r1 {"type":"run_start","agent":"demo","trigger":"user"}
    r1 {"type":"step_start","index":0}
    r1 {"type":"thinking_done","partId":"p0","text":"Hm."}
    r1 {"type":"text_done","partId":"p1","text":"Let me look."}
    r1 {"type":"tool_call_start","callId":"c1","toolName":"list","executor":"server"}
    r1 {"type":"tool_call_start","callId":"c2","toolName":"ask","executor":"client"}
    r1 {"type":"tool_call_start","callId":"c3","toolName":"ask","executor":"client"}
    r1 {"type":"tool_arguments_delta","callId":"c2","delta":"{\"a\":"}
    r1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"path\":\".\"}","summary":"path: '.'","validation":"not_required"}
    r1 {"type":"tool_arguments_done","callId":"c2","arguments":"{\"a\":1}","validation":"not_required"}
    r1 {"type":"tool_arguments_done","callId":"c3","arguments":"","validation":"not_required"}
    r1 {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":5,"outputTokens":7,"totalTokens":12}}
    r1 {"type":"tool_running","callId":"c2"}
    r1 {"type":"tool_running","callId":"c3"}
    r1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":false}}
    r1 {"type":"tool_approval_resolved","callId":"c1","decision":"accepted","scope":"once","by":"user"}
    r1 {"type":"tool_result","callId":"c1","toolName":"list","ok":true,"result":{"n":3}}
    r1 {"type":"tool_result","callId":"c3","toolName":"ask","ok":true,"result":"blue"}
    r1 {"type":"tool_result","callId":"c2","toolName":"ask","ok":true,"result":"red"}
    r1 {"type":"step_start","index":1}
    r1 {"type":"tool_call_start","callId":"c4","toolName":"read","executor":"server"}
    r1 {"type":"tool_arguments_done","callId":"c4","arguments":"{}","validation":"not_required"}
    r1 {"type":"tool_result","callId":"c4","toolName":"read","ok":false,"error":{"code":"tool_error","message":"gone"}}
    r1 {"type":"tool_call_start","callId":"c5","toolName":"ask","executor":"client"}
    r1 {"type":"tool_arguments_done","callId":"c5","arguments":"{}","validation":"not_required"}
    r1 {"type":"step_finish","index":1,"finishReason":"tool-calls","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10}}
    r1 {"type":"tool_running","callId":"c5"}
    r1 {"type":"tool_result","callId":"c5","toolName":"ask","ok":true,"result":"red"}
    r1 {"type":"step_start","index":2}
    r1 {"type":"text_done","partId":"p9","text":"Red it is."}
    r1 {"type":"step_finish","index":2,"finishReason":"stop","usage":{"inputTokens":20,"outputTokens":3,"totalTokens":23}}
    r1 {"type":"run_finish","status":"completed"}
"#;

#[test]
fn waiting_run_is_sent_in_several_responses() {
    let log = read(CLIENT_LOG);
    check_law(&log, 0..=log.len());
    let responses = responses(&log, 0, &ResponseId::new("r1"), OtherCalls::Reasoning);
    let lines = responses.iter().map(|it| format!("{}\n", it.completion)).collect::<String>();
    expect![[r#"
        {"id":"chatcmpl-r1","object":"chat.completion","created":1700000000,"model":"demo","choices":[{"index":0,"message":{"role":"assistant","content":"Let me look.","reasoning_content":"Hm.\n\nlist(path: '.')\nwaits for a person to allow it, on Callboard's page\n→ n: 3","tool_calls":[{"id":"c2","type":"function","function":{"name":"ask","arguments":"{\"a\":1}"}},{"id":"c3","type":"function","function":{"name":"ask","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}
        {"id":"chatcmpl-r1-2","object":"chat.completion","created":1700000000,"model":"demo","choices":[{"index":0,"message":{"role":"assistant","content":"","reasoning_content":"read()\n→ failed: gone","tool_calls":[{"id":"c5","type":"function","function":{"name":"ask","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}
        {"id":"chatcmpl-r1-3","object":"chat.completion","created":1700000000,"model":"demo","choices":[{"index":0,"message":{"role":"assistant","content":"Red it is."},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23}}
    "#]].assert_eq(&lines);
}

#[test]
fn client_gets_only_its_own_calls() {
    let log = read(
        r#"
        r1 {"type":"run_start","agent":"demo","trigger":"user"}
        r1 {"type":"step_start","index":0}
        r1 {"type":"text_done","partId":"p0","text":"Let me look."}
        r1 {"type":"tool_call_start","callId":"c1","toolName":"list","executor":"server"}
        r1 {"type":"tool_result","callId":"c1","toolName":"list","ok":true,"result":1}
        r1 {"type":"tool_call_start","callId":"c2","toolName":"ask","executor":"client"}
        r1 {"type":"tool_arguments_done","callId":"c2","arguments":"","validation":"not_required"}
        r1 {"type":"tool_running","callId":"c2"}
        "#,
    );
    let mut chunks = Chunks::new(ResponseId::new("r1"), options(OtherCalls::Hidden));
    let lines: String =
        log.iter().flat_map(|it| chunks.apply(it)).map(|it| format!("{it}\n")).collect();
    expect![[r#"
        {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":1700000000,"model":"demo","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
        {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":1700000000,"model":"demo","choices":[{"index":0,"delta":{"content":"Let me look."},"finish_reason":null}]}
        {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":1700000000,"model":"demo","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c2","type":"function","function":{"name":"ask","arguments":""}}]},"finish_reason":null}]}
        {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":1700000000,"model":"demo","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":null}]}
        {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":1700000000,"model":"demo","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
        {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":1700000000,"model":"demo","choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}
    "#]].assert_eq(&lines);
}

#[test]
fn stop_reasons_are_those_of_openai() {
    let words = [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "stop"),
        ("end_turn", "stop"),
    ];
    for (reason, received) in words {
        let log = read(&format!(
            r#"r1 {{"type":"run_start","agent":"demo","trigger":"user"}}
               r1 {{"type":"step_start","index":0}}
               r1 {{"type":"step_finish","index":0,"finishReason":"{reason}"}}
               r1 {{"type":"run_finish","status":"completed"}}"#
        ));
        let run = ResponseId::new("r1");
        let told_here = responses(&log, log.len(), &run, OtherCalls::Hidden);
        let [Response { chunks, completion }] = told_here.as_slice() else { panic!("{reason}") };
        let ends = chunks.iter().map(|it| &it["choices"][0]["finish_reason"]);
        let ends: Vec<&Value> = ends.filter(|it| !it.is_null()).collect();
        assert_eq!(ends, [received]);
        assert_eq!(completion["choices"][0]["finish_reason"], received);
    }
}
