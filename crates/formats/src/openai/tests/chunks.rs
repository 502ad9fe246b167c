//! Chunks put together, as the strictest reader does it, are the answer that does not stream.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::logs::any_log;
use transcript::{Answer, PartKind, Record, ResponseId, TextRole};

use crate::openai::{Calls, Chunks, Options, completion};
use crate::tests::finished_runs;
use crate::tests::logs::{corpus, read, sound_log};

fn options(calls: Calls) -> Options {
    Options { model: "demo".into(), include_usage: true, calls }
}

/// As the helper of the Python library, which takes the canonical form alone.
#[derive(Default)]
struct Reader {
    message: Value,
    finish_reason: Option<String>,
    usage: Value,
    error: Value,
}

impl Reader {
    fn take(&mut self, chunks: Vec<Value>) {
        for chunk in chunks {
            assert!(self.error.is_null() && self.usage.is_null(), "after the end: {chunk}");
            if let Some(error) = chunk.get("error") {
                self.error = error.clone();
                continue;
            }
            assert_eq!(chunk["object"], "chat.completion.chunk");
            let choices = chunk["choices"].as_array().unwrap();
            let Some(choice) = choices.first() else {
                assert!(self.finish_reason.is_some());
                self.usage = chunk["usage"].clone();
                continue;
            };
            assert!(self.finish_reason.is_none(), "after the end: {chunk}");
            self.fold(&choice["delta"]);
            self.finish_reason = choice["finish_reason"].as_str().map(str::to_owned);
        }
    }

    fn fold(&mut self, delta: &Value) {
        if self.message.is_null() {
            assert_eq!(delta["role"], "assistant", "the first delta says who speaks");
            self.message = delta.clone();
            return;
        }
        assert!(delta.get("role").is_none());
        for name in ["content", "reasoning_content"] {
            if let Some(more) = delta.get(name) {
                let before = self.message[name].as_str().unwrap_or_default().to_owned();
                self.message[name] = json!(before + more.as_str().unwrap());
            }
        }
        for more in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = more["index"].as_u64().unwrap() as usize;
            if self.message.get("tool_calls").is_none() {
                self.message["tool_calls"] = json!([]);
            }
            let calls = self.message["tool_calls"].as_array_mut().unwrap();
            if index == calls.len() {
                let mut call = more.clone();
                call.as_object_mut().unwrap().shift_remove("index");
                assert!(call["id"].is_string() && call["function"]["name"].is_string());
                assert_eq!(call["type"], "function");
                calls.push(call);
                continue;
            }
            assert!(more.get("id").is_none() && more["function"].get("name").is_none());
            let text = calls[index]["function"]["arguments"].as_str().unwrap().to_owned();
            let more = more["function"]["arguments"].as_str().unwrap();
            calls[index]["function"]["arguments"] = json!(text + more);
        }
    }
}

fn read_through(log: &[Record], cut: usize, run: &ResponseId, calls: Calls) -> Reader {
    let mut chunks = Chunks::new(run.clone(), options(calls));
    let mut reader = Reader::default();
    reader.take(chunks.replay(&log[..cut]));
    for record in &log[cut..] {
        reader.take(chunks.apply(record));
        let has_ended = reader.finish_reason.is_some() || !reader.error.is_null();
        assert_eq!(chunks.is_over(), has_ended);
    }
    reader
}

/// What was said before it turned out to count for nothing.
fn takes_back(answer: &Answer) -> bool {
    answer.parts.iter().any(|part| match &part.kind {
        PartKind::Text(text) => text.leaked || text.role == TextRole::Discarded,
        PartKind::Thinking(thinking) => thinking.discarded,
        _ => false,
    })
}

fn check_law(log: &[Record], cuts: impl Iterator<Item = usize> + Clone) {
    for (run, answer) in finished_runs(log).into_iter().filter(|(_, it)| !takes_back(it)) {
        for calls in [Calls::OfClient, Calls::All] {
            let whole = completion(&answer, &options(calls));
            for cut in cuts.clone() {
                let reader = read_through(log, cut, &run, calls);
                if let Some(error) = whole.get("error") {
                    assert_eq!(reader.error, *error);
                    continue;
                }
                let choice = &whole["choices"][0];
                assert_eq!(reader.message, choice["message"], "{run} cut at {cut}");
                assert_eq!(reader.finish_reason.as_deref(), choice["finish_reason"].as_str());
                assert_eq!(reader.usage, whole["usage"]);
            }
        }
    }
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
    fn the_strictest_reader_takes_any_log(log in any_log(60)) {
        for run in ["r1", "r2"].map(ResponseId::new) {
            for calls in [Calls::OfClient, Calls::All] {
                read_through(&log, 0, &run, calls);
            }
        }
    }
}

#[test]
fn a_client_hears_of_its_own_calls_and_has_the_next_word() {
    let log = read(
        r#"
        r1 {"type":"run_start","agent":"demo","trigger":"user"}
        r1 {"type":"step_start","index":0}
        r1 {"type":"text_done","partId":"p0","text":"Let me look."}
        r1 {"type":"tool_call_start","callId":"c1","toolName":"list","executor":"server"}
        r1 {"type":"tool_result","callId":"c1","toolName":"list","ok":true,"result":1}
        r1 {"type":"tool_call_start","callId":"c2","toolName":"ask","executor":"client"}
        r1 {"type":"tool_arguments_done","callId":"c2","arguments":"","validation":"not_required"}
        "#,
    );
    let mut chunks = Chunks::new(ResponseId::new("r1"), options(Calls::OfClient));
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
