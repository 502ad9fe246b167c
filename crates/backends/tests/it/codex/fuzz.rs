//! Fuzz tests: recordings with lines lost, doubled, swapped, cut and changed, and people who act at
//! any time. Nothing panics, and the stage checks every event (see `stage.rs`).

use std::sync::LazyLock;

use backends::{Exit, ProgramInput, RunInput, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::recording::{Line, Recording, Replay, recordings};
use super::stage::Stage;

/// The recordings except the largest, and one with messages that were never recorded.
static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(|| {
    let mut recordings = recordings();
    recordings.retain(|it| it.name != "app-bigout");
    let mut made_up = recordings.iter().find(|it| it.name == "app-plain").unwrap().clone();
    let is_start = |it: &Line| matches!(it, Line::Output(it) if it.contains("turn/started"));
    let start = made_up.lines.iter().position(is_start).unwrap();
    let Line::Output(line) = &made_up.lines[start] else { unreachable!() };
    let started: Value = serde_json::from_str(line).unwrap();
    let ids = (&started["params"]["threadId"], &started["params"]["turn"]["id"]);
    let lines: Vec<Line> = never_recorded(ids.0, ids.1).into_iter().map(Line::Output).collect();
    made_up.lines.splice(start + 1..=start, lines);
    // Repeated, so that it is chosen often enough.
    recordings.extend(std::iter::repeat_n(made_up, 20));
    recordings
});

fn never_recorded(thread: &Value, turn: &Value) -> Vec<String> {
    let call = json!({ "type": "mcpToolCall", "id": "p", "server": "s", "tool": "t" });
    let search = json!({ "type": "webSearch", "id": "w", "query": "" });
    let meta = json!({ "codex_approval_kind": "mcp_tool_call", "tool_params": {} });
    let messages = [
        (None, "turn/plan/updated", json!({ "plan": [{ "step": "x", "status": "pending" }] })),
        (None, "item/started", json!({ "item": search })),
        (None, "item/reasoning/textDelta", json!({ "itemId": "r", "delta": "hm" })),
        (Some(0), "item/tool/requestUserInput", json!({ "questions": [{ "id": "q" }] })),
        (Some(1), "mcpServer/elicitation/request", json!({ "serverName": "s" })),
        (Some(2), "item/permissions/requestApproval", json!({ "permissions": {} })),
        (None, "item/started", json!({ "item": call })),
        (Some(3), "mcpServer/elicitation/request", json!({ "serverName": "s", "_meta": meta })),
        (Some(4), "item/fileChange/requestApproval", json!({ "itemId": "gone" })),
        (None, "item/mcpToolCall/progress", json!({ "itemId": "p", "message": "half" })),
        (None, "serverRequest/resolved", json!({ "requestId": 1 })),
        (None, "item/completed", json!({ "item": call })),
        (None, "item/completed", json!({ "item": search })),
        (None, "error", json!({ "error": { "message": "again" }, "willRetry": true })),
        (None, "turn/started", json!({ "turn": { "id": "turn-2" } })),
    ];
    let line = |(id, method, mut params): (Option<u64>, &str, Value)| {
        params["threadId"] = thread.clone();
        params["turnId"] = turn.clone();
        json!({ "id": id, "method": method, "params": params }).to_string()
    };
    messages.into_iter().map(line).collect()
}

#[derive(Debug, Clone)]
enum Change {
    Drop(usize),
    Double(usize),
    Swap(usize, usize),
    Cut(usize, usize),
    /// Replaces the n-th value of the line's JSON.
    Put(usize, usize, Value),
    Do(usize, Action),
}

#[derive(Debug, Clone)]
enum Action {
    Interrupt,
    Steer,
    Allow,
    Deny,
    TimeOut,
    Wake,
    Start,
    Print(String),
}

fn change() -> impl Strategy<Value = Change> {
    let at = || any::<usize>();
    let value = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(u64::MAX)),
        Just(json!(-1)),
        Just(json!(1e300)),
        Just(json!("")),
        Just(json!("ä")),
        Just(json!([])),
        Just(json!([7])),
        Just(json!({})),
        Just(json!("failed")),
        Just(json!("reasoning")),
        Just(json!("item/completed")),
    ];
    prop_oneof![
        at().prop_map(Change::Drop),
        at().prop_map(Change::Double),
        (at(), at()).prop_map(|(a, b)| Change::Swap(a, b)),
        (at(), at()).prop_map(|(a, b)| Change::Cut(a, b)),
        (at(), at(), value).prop_map(|(a, b, value)| Change::Put(a, b, value)),
        (at(), action()).prop_map(|(at, action)| Change::Do(at, action)),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Interrupt),
        Just(Action::Steer),
        Just(Action::Allow),
        Just(Action::Deny),
        Just(Action::TimeOut),
        Just(Action::Wake),
        Just(Action::Start),
        ".{0,20}".prop_map(Action::Print),
    ]
}

fn put(value: &mut Value, place: usize, new: &Value) {
    let mut places = Vec::new();
    collect(value, String::new(), &mut places);
    if let Some(at) = places.get(place % places.len().max(1)) {
        *value.pointer_mut(at).unwrap() = new.clone();
    }
}

fn collect(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, it) in fields {
                collect(it, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        Value::Array(values) => {
            for (idx, it) in values.iter().enumerate() {
                collect(it, format!("{at}/{idx}"), places);
            }
        }
        _ => (),
    }
    places.push(at);
}

enum Step {
    Line(Line),
    Do(Action),
}

/// Returns the recording with the changes applied to it.
fn changed(recording: &Recording, changes: &[Change]) -> Vec<Step> {
    let mut steps: Vec<Step> = recording.lines.iter().cloned().map(Step::Line).collect();
    for change in changes {
        let n = steps.len().max(1);
        match change {
            Change::Drop(at) if !steps.is_empty() => {
                steps.remove(at % n);
            }
            Change::Double(at) => {
                if let Some(Step::Line(line)) = steps.get(at % n) {
                    let line = line.clone();
                    steps.insert(at % n, Step::Line(line));
                }
            }
            Change::Swap(a, b) if !steps.is_empty() => steps.swap(a % n, b % n),
            Change::Cut(at, to) => {
                if let Some(Step::Line(Line::Output(line))) = steps.get_mut(at % n) {
                    let n_letters = line.chars().count();
                    *line = line.chars().take(to % (n_letters + 1)).collect();
                }
            }
            Change::Put(at, place, value) => {
                if let Some(Step::Line(Line::Output(line))) = steps.get_mut(at % n) {
                    let mut message: Value = serde_json::from_str(line).unwrap_or_default();
                    put(&mut message, *place, value);
                    *line = message.to_string();
                }
            }
            Change::Do(at, action) => steps.insert(at % n, Step::Do(action.clone())),
            Change::Drop(_) | Change::Swap(..) => (),
        }
    }
    steps
}

fn perform(stage: &mut Stage, action: &Action, n: usize) {
    match action {
        Action::Interrupt => stage.give(RunInput::Interrupt),
        Action::Steer => stage.steer(&format!("fuzz{n}"), "and this"),
        Action::Allow => stage.allow(),
        Action::Deny => stage.decide(Verdict::Denied { feedback: Some("no".to_owned()) }),
        Action::TimeOut => stage.decide(Verdict::TimedOut),
        Action::Wake => stage.wake(),
        Action::Start if !stage.is_running() => stage.start("again"),
        Action::Start => (),
        Action::Print(words) => stage.line(words),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..Default::default() })]

    #[test]
    fn changed_recordings_give_well_formed_runs(
        which in any::<usize>(),
        changes in prop::collection::vec(change(), 0..12),
    ) {
        let recording = &RECORDINGS[which % RECORDINGS.len()];
        let mut replay = Replay::new(recording);
        let mut is_over = false;
        for (n, step) in changed(recording, &changes).iter().enumerate() {
            // No input follows the exit.
            if is_over {
                break;
            }
            match step {
                Step::Line(line) => replay.step(line),
                Step::Do(action) => perform(&mut replay.stage, action, n),
            }
            is_over = matches!(step, Step::Line(Line::Ended(_)));
        }
        if !is_over {
            replay.stage.give(ProgramInput::Exited(Exit { code: None, stderr: String::new() }));
        }
        prop_assert!(!replay.stage.is_running());
    }
}
