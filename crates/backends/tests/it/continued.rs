//! Runs that continue an interrupted answer: every program is told to continue, and no message is
//! sent again.

use std::sync::Arc;

use backends::{Launch, ProgramBackend, ProgramEffect, ProgramInput, RunInput, claude, codex, pi};
use serde_json::{Value, json};
use transcript::{Millis, ResponseId};

fn programs() -> Vec<(&'static str, Box<dyn ProgramBackend>)> {
    let launch = Launch::default();
    let codex = |app_server| {
        let settings = codex::Settings { app_server, ..codex::Settings::default() };
        codex::backend(Arc::new(settings), &launch)
    };
    let permission_mode = Some("auto".to_owned());
    let unasked = pi::Settings { permission_mode, ..pi::Settings::default() };
    vec![
        ("claude", Box::new(claude::Claude::new(Arc::default(), &launch))),
        ("codex", codex(true)),
        ("codex exec", codex(false)),
        ("pi", Box::new(pi::Pi::new(Arc::new(unasked), &launch))),
    ]
}

/// Returns all lines that the backend writes until the turn has started.
fn told(backend: &mut dyn ProgramBackend, history: &[Value]) -> String {
    let response_id = ResponseId::new("r");
    let start = RunInput::Start { response_id, history: history.to_vec() };
    let mut waiting = vec![start.into()];
    let mut written = String::new();
    while let Some(input) = waiting.pop() {
        for effect in backend.on(Millis::default(), input) {
            let ProgramEffect::Write(line) = effect else { continue };
            let request: Value = serde_json::from_str(&line).unwrap_or_default();
            // Only the backend of the app-server waits for responses.
            let result = match request["method"].as_str() {
                Some("initialize") => Some(json!({})),
                Some("thread/start") => Some(json!({ "thread": { "id": "t" } })),
                _ => None,
            };
            let answer =
                |it| ProgramInput::Line(json!({ "id": request["id"], "result": it }).to_string());
            waiting.extend(result.map(answer));
            written.push_str(&line);
        }
    }
    written
}

#[test]
fn an_answer_that_broke_off_is_continued() {
    let user = |text: &str| json!({ "role": "user", "content": text });
    let words = json!({ "role": "assistant", "content": "I beg" });
    let call = json!({ "role": "assistant", "content": null, "tool_calls": [] });
    let result = json!({ "role": "tool", "tool_call_id": "c", "content": "done" });
    let before = [user("Never mind"), json!({ "role": "assistant", "content": "Well" })];
    let broken: [&[Value]; 3] =
        [std::slice::from_ref(&words), std::slice::from_ref(&call), &[call.clone(), result]];
    for broken in broken {
        for before in [&before[..], &[]] {
            let asked = [before, &[user("Tell me")]].concat();
            for (name, mut backend) in programs() {
                let told = told(&mut *backend, &asked);
                assert!(told.contains("Tell me"), "{name}: {told}");
                assert!(!told.contains("Continue.") && !told.contains("Never mind"), "{name}");
            }
            for (name, mut backend) in programs() {
                let told = told(&mut *backend, &[&asked, broken].concat());
                assert!(told.contains("Continue."), "{name}: {told}");
                assert!(
                    !told.contains("Tell me") && !told.contains("Never mind"),
                    "{name}: {told}"
                );
            }
        }
    }
}
