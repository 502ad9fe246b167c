//! The bytes of a model's answer to what it said: our decoder against a general parser of
//! server-sent events with structs that own their strings, in the same run.
//!
//! Then whether a piece costs more because much came before it.

use std::time::{Duration, Instant};

use backends::openai::{AnswerDelta, Decoder};
use bench::say;
use eventsource_stream::Eventsource;
use futures_util::{FutureExt, StreamExt};
use serde::Deserialize;
use serde_json::json;

const CHUNKS: usize = 200_000;
/// Size of a piece as the network delivers it.
const PIECE: usize = 16 * 1024;
const ROUNDS: usize = 5;

fn main() -> anyhow::Result<()> {
    compare("chunks that differ in their text alone", &text_answer())?;
    compare("chunks that differ elsewhere too", &varying_answer())?;
    for (what, body) in [("text", text_answer()), ("arguments", arguments_answer())] {
        say(&format!("last tenth / first tenth, {what}: {:.2}", growth(&body)));
    }
    Ok(())
}

fn compare(what: &str, body: &[u8]) -> anyhow::Result<()> {
    let megabytes = body.len() as f64 / 1e6;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(timed(|| decode(body))?);
        theirs.push(timed(|| decode_with_owned_structs(body))?);
    }
    let speed = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        megabytes / times[ROUNDS / 2].as_secs_f64()
    };
    let (ours, theirs) = (speed(&mut ours), speed(&mut theirs));
    let ratio = ours / theirs;
    say(&format!("{what}: {ours:.0} MB/s, eventsource-stream and owned structs {theirs:.0} MB/s"));
    say(&format!("ratio {ratio:.2}"));
    Ok(())
}

fn text_answer() -> Vec<u8> {
    answer(|n| json!({ "content": format!(" word{}", n % 10) }))
}

/// Some services add unused fields to every chunk.
fn varying_answer() -> Vec<u8> {
    answer(|n| json!({ "content": format!(" word{}", n % 10), "noise": n }))
}

/// One call with its id and name in every piece, as some providers send it.
fn arguments_answer() -> Vec<u8> {
    answer(|n| {
        let arguments = if n == 0 { "{\"text\":\"" } else { "more " };
        let function = json!({ "name": "write", "arguments": arguments });
        json!({ "tool_calls": [{ "index": 0, "id": "c", "function": function }] })
    })
}

fn answer(delta: impl Fn(usize) -> serde_json::Value) -> Vec<u8> {
    let event = |n| {
        let choice = json!({ "index": 0, "delta": delta(n), "finish_reason": null });
        let event = json!({
            "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG", "object": "chat.completion.chunk",
            "created": 1_741_570_283, "model": "gpt-4o-2024-08-06", "service_tier": "default",
            "system_fingerprint": "fp_fc9f1d7035", "choices": [choice], "usage": null,
        });
        format!("data: {event}\n\n").into_bytes()
    };
    (0..CHUNKS).flat_map(event).collect()
}

fn decode(body: &[u8]) -> usize {
    let mut decoder = Decoder::default();
    let said = body.chunks(PIECE).flat_map(|piece| decoder.feed(piece));
    said.map(|it| if let AnswerDelta::Text(text) = it { text.len() } else { 0 }).sum()
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a general client reads everything")]
struct OwnedChunk {
    id: String,
    object: String,
    created: u64,
    model: String,
    system_fingerprint: Option<String>,
    choices: Vec<OwnedChoice>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a general client reads everything")]
struct OwnedChoice {
    index: u32,
    delta: OwnedDelta,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct OwnedDelta {
    content: Option<String>,
}

fn decode_with_owned_structs(body: &[u8]) -> usize {
    let pieces = body.chunks(PIECE).map(Ok::<_, std::convert::Infallible>);
    let events = futures_util::stream::iter(pieces).eventsource();
    let lengths = events.map(|event| {
        let event = event.ok().and_then(|it| serde_json::from_str::<OwnedChunk>(&it.data).ok());
        let texts = event.into_iter().flat_map(|it| it.choices).filter_map(|it| it.delta.content);
        texts.map(|it| it.len()).sum::<usize>()
    });
    let sum = lengths.fold(0, |sum, it| std::future::ready(sum + it));
    sum.now_or_never().unwrap_or(0)
}

/// Time of the last tenth of an answer, relative to the first.
fn growth(body: &[u8]) -> f64 {
    let mut decoder = Decoder::default();
    let tenth = body.len() / 10 / PIECE * PIECE;
    let times = body.chunks(tenth).take(10).map(|tenth| {
        let began = Instant::now();
        tenth.chunks(PIECE).for_each(|piece| drop(decoder.feed(piece)));
        began.elapsed().as_secs_f64()
    });
    let times: Vec<f64> = times.collect();
    times[9] / times[0]
}

fn timed(work: impl FnOnce() -> usize) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let letters = work();
    anyhow::ensure!(letters == CHUNKS * " word0".len(), "not everything was read: {letters}");
    Ok(began.elapsed())
}
