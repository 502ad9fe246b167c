//! Decodes a response in any chunking, and summarizes it for comparisons.

use std::path::PathBuf;

use backends::openai::{AnswerDelta, Decoder, FinishReason, Outcome};
use serde_json::{Value, json};

fn openai_fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/openai")
}

/// Returns the path of the snapshot of a page's outline.
pub(crate) fn outline_file(name: &str) -> PathBuf {
    openai_fixtures().join(format!("pages/{name}.page.txt"))
}

pub(crate) fn fixtures(folder: &str) -> Vec<(String, String)> {
    let folder = openai_fixtures().join(folder);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|it| (name(it), std::fs::read_to_string(it).unwrap())).collect()
}

pub(crate) fn decode<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<AnswerDelta>, Outcome) {
    let mut decoder = Decoder::default();
    let mut deltas: Vec<AnswerDelta> = pieces.into_iter().flat_map(|it| decoder.feed(it)).collect();
    let (last, outcome) = decoder.finish();
    deltas.extend(last);
    (deltas, outcome)
}

/// Checks that the body decodes to the same events if it is cut in two anywhere, or into pieces of
/// one byte and of a few other sizes.
#[track_caller]
pub(crate) fn check_every_chunking(body: &[u8]) {
    let whole = decode([body]);
    // A long body has many similar positions, so not all are tried.
    for cut in (0..=body.len()).step_by(1 + body.len() / 1500) {
        assert_eq!(decode([&body[..cut], &body[cut..]]), whole, "cut at {cut}");
    }
    for size in [1, 2, 3, 7, 16, 61, 1024] {
        assert_eq!(decode(body.chunks(size)), whole, "in pieces of {size}");
    }
}

pub(crate) fn summary(body: &[u8]) -> Value {
    let (deltas, outcome) = decode([body]);
    let (mut text, mut reasoning, mut unreadable) = (String::new(), String::new(), Vec::new());
    let mut calls: Vec<Value> = Vec::new();
    let mut streamed: Vec<String> = Vec::new();
    for it in deltas {
        match it {
            AnswerDelta::Text(delta) => text.push_str(&delta),
            AnswerDelta::Thinking(delta) => reasoning.push_str(&delta),
            AnswerDelta::Call { call, name, provider_call_id } => {
                assert_eq!(call, calls.len(), "calls are numbered as they begin");
                calls.push(json!({ "id": provider_call_id, "name": name }));
                streamed.push(String::new());
            }
            AnswerDelta::Arguments { call, delta } => streamed[call].push_str(&delta),
            AnswerDelta::Unreadable(raw) => unreadable.push(raw),
        }
    }
    assert_eq!(calls.len(), outcome.calls.len(), "every call is told");
    for ((call, streamed), finished) in calls.iter_mut().zip(streamed).zip(&outcome.calls) {
        let is_same = streamed == finished.arguments || streamed.trim().is_empty();
        assert!(is_same, "what streamed is what ends: {streamed} {}", finished.arguments);
        call["arguments"] = json!(finished.arguments);
        if let Some(extra) = &finished.extra_content {
            call["extra"] = extra.clone();
        }
    }
    json!({
        "text": text,
        "reasoning": reasoning,
        "toolCalls": calls,
        "finish": outcome.finish_reason.map(FinishReason::as_str),
        "usage": outcome.usage.map(|it| json!({ "input": it.input_tokens, "output": it.output_tokens })),
        "error": outcome.error.map(|it| it.message),
        "unreadable": unreadable,
    })
}
