//! A driver for tests: plays a run to its end and answers its tool calls.

use serde_json::{Value, json};
use transcript::{CallId, ErrorCode, ErrorInfo, Event, Millis, ResponseId};

use crate::{
    Demo, Ending, ModelBackend, ModelEffect, ModelInput, Pace, ReadyCall, RunEffect, RunInput,
    ToolOutcome,
};

/// Effects of a run, without the times of its pauses.
#[derive(Debug, PartialEq)]
pub(super) struct Played {
    pub(super) effects: Vec<ModelEffect>,
    pub(super) ending: Ending,
}

impl Played {
    pub(super) fn events(&self) -> impl Iterator<Item = &Event> {
        self.effects.iter().filter_map(|it| match it {
            ModelEffect::Run(RunEffect::Emit(event)) => Some(event),
            _ => None,
        })
    }

    /// Returns the text of the last part, which is the answer.
    pub(super) fn answer(&self) -> &str {
        let texts = self.events().filter_map(|it| match it {
            Event::TextDone { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.last().unwrap_or_default()
    }
}

pub(super) fn ask(message: &str) -> Vec<Value> {
    vec![json!({"role": "user", "content": message})]
}

/// Returns a call in the form of the history.
pub(super) fn called(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// Returns a call's result in the form of the history.
pub(super) fn result(id: &str, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

pub(super) fn play(history: Vec<Value>, pace: Pace) -> Played {
    play_with(history, pace, canned)
}

/// Plays a run with tools that return the results of `tool`, in the order of the calls.
pub(super) fn play_with(
    history: Vec<Value>,
    pace: Pace,
    tool: impl Fn(&str, &Value) -> ToolOutcome,
) -> Played {
    let mut stage = Stage::start(history, pace);
    while stage.ending.is_none() {
        let input = stage.next_input(&tool);
        stage.give(input);
    }
    Played { effects: stage.effects, ending: stage.ending.unwrap() }
}

/// An active run.
#[derive(Debug)]
pub(super) struct Stage {
    demo: Demo,
    now: Millis,
    wake_at: Option<Millis>,
    open_calls: Vec<(CallId, String, Value)>,
    pub(super) effects: Vec<ModelEffect>,
    pub(super) ending: Option<Ending>,
}

impl Stage {
    pub(super) fn start(history: Vec<Value>, pace: Pace) -> Self {
        let mut stage = Self {
            demo: Demo::new(pace),
            now: Millis(1_000_000),
            wake_at: None,
            open_calls: Vec::new(),
            effects: Vec::new(),
            ending: None,
        };
        stage.give(RunInput::Start { response_id: ResponseId::new("r"), history });
        stage
    }

    /// Returns a tool's result if a call is open, or else the next wake.
    pub(super) fn next_input(&mut self, tool: &impl Fn(&str, &Value) -> ToolOutcome) -> ModelInput {
        if !self.open_calls.is_empty() {
            let (call_id, name, arguments) = self.open_calls.remove(0);
            return ModelInput::ToolResult { call_id, outcome: tool(&name, &arguments) };
        }
        self.now = self.wake_at.take().expect("the run waits for nothing and has not ended");
        RunInput::Wake.into()
    }

    /// Feeds the input and returns the number of deltas.
    pub(super) fn give(&mut self, input: impl Into<ModelInput>) -> usize {
        assert!(self.ending.is_none(), "nothing is called after the end");
        let mut n_deltas = 0;
        for effect in self.demo.on(self.now, input.into()) {
            assert!(self.ending.is_none(), "nothing comes after the end: {effect:?}");
            match effect {
                ModelEffect::Run(RunEffect::WakeAt(at)) => {
                    assert!(at > self.now);
                    self.wake_at = Some(at);
                    continue;
                }
                ModelEffect::Run(RunEffect::End(ending)) => {
                    self.ending = Some(ending);
                    continue;
                }
                ModelEffect::RunTool(ReadyCall { ref call_id, ref tool_name, ref arguments }) => {
                    let arguments = serde_json::from_str(arguments).unwrap();
                    self.open_calls.push((call_id.clone(), tool_name.clone(), arguments));
                }
                ModelEffect::Run(RunEffect::Emit(ref event)) => {
                    n_deltas += usize::from(is_delta(event))
                }
                other => panic!("it needs nothing: {other:?}"),
            }
            self.effects.push(effect);
        }
        n_deltas
    }

    pub(super) fn never_slept(&self) -> bool {
        self.wake_at.is_none()
    }
}

pub(super) fn is_delta(event: &Event) -> bool {
    matches!(
        event,
        Event::TextDelta { .. } | Event::ThinkingDelta { .. } | Event::ToolArgumentsDelta { .. }
    )
}

pub(super) fn succeeded(result: Value) -> ToolOutcome {
    ToolOutcome { ok: true, result, error: None }
}

pub(super) fn failed(message: &str) -> ToolOutcome {
    let error = Some(ErrorInfo::new(ErrorCode::ToolError, message));
    ToolOutcome { ok: false, result: Value::Null, error }
}

/// Returns the results that the real tools would have in a small workspace.
pub(super) fn canned(tool: &str, arguments: &Value) -> ToolOutcome {
    let path = arguments["path"].as_str().unwrap_or(".");
    match (tool, arguments["zone"].as_str(), path) {
        ("time", Some("Atlantis"), _) => failed("There is no time zone 'Atlantis'."),
        ("time", zone, _) => succeeded(json!({
            "zone": zone.unwrap_or("UTC"),
            "time": "2026-11-15T18:44:28+09:00",
            "text": "Sunday, 15 November 2026, 18:44",
        })),
        ("list_files", ..) => succeeded(json!({
            "path": path,
            "entries": [
                {"name": "src", "kind": "folder"},
                {"name": "latest", "kind": "link"},
                {"name": "notes.txt", "kind": "file", "size": 1},
                {"name": "big.bin", "kind": "file", "size": 1_234_567},
            ],
            "total": 4,
        })),
        ("read_file", _, "missing.txt") => {
            failed("There is no file 'missing.txt' in the workspace.")
        }
        ("read_file", ..) => {
            succeeded(json!({"path": path, "text": "one\n```\ntwo\n", "lines": 3}))
        }
        ("search_files", ..) => succeeded(json!({
            "query": arguments["query"],
            "matches": [{"path": "src/main.rs", "line": 3, "text": "    // `TODO`: more"}],
            "total": 7,
            "files": 2,
        })),
        ("agents_list", ..) => succeeded(json!({ "agents": [
            {"id": "demo", "kind": "demo", "description": "Built in.", "state": "ready", "you": true},
            {"id": "coder", "kind": "claude", "description": "Writes code.", "state": "busy"},
        ]})),
        ("callboard_note", ..) => succeeded(json!({ "noted": true })),
        ("agents_message", ..) => {
            succeeded(json!({ "agent": "coder", "answer": "Done.\n\nReally." }))
        }
        (other, ..) => panic!("no such tool: {other}"),
    }
}
