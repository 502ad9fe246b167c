//! Fuzz tests: with any lines in any order nothing panics, and everything that starts ends once.
//! The stage checks this at every effect.

use std::sync::LazyLock;

use backends::{Exit, RunInput, Verdict};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use transcript::{Millis, Scope};

use super::recording::{Recorded, Recording};
use super::stage::Stage;

/// A change of a recording.
#[derive(Debug, Clone)]
enum Change {
    Drop(Index),
    Double(Index),
    Swap(Index, Index),
    Truncate(Index, Index),
    /// Replaces a value of a line's JSON.
    Flip(Index, Index, Value),
    /// Inserts an action of a person, of the clock or of the program.
    Insert(Index, Happening),
}

#[derive(Debug, Clone)]
enum Happening {
    Start,
    Steer,
    Interrupt,
    Wake,
    Allow,
    Deny,
    States,
    Exit,
}

enum Step {
    Line(Millis, Recorded),
    Happens(Happening),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_recordings_give_well_formed_runs(
        which in any::<Index>(),
        asks in any::<bool>(),
        changes in prop::collection::vec(change(), 1..12),
    ) {
        let recording = &RECORDINGS[which.index(RECORDINGS.len())];
        let mut steps = recording.lines.iter().cloned().map(|(at, it)| Step::Line(at, it)).collect();
        for change in &changes {
            apply(change, &mut steps);
        }
        let mut stage = Stage::new(asks);
        for step in &steps {
            match step {
                Step::Line(at, recorded) => stage.play_line(*at, recorded),
                Step::Happens(happening) => happen(happening, &mut stage),
            }
        }
        stage.exit(Exit { code: None, stderr: String::new() });
        prop_assert!(stage.is_idle());
    }

    #[test]
    fn arbitrary_lines_leave_no_run_open(lines in prop::collection::vec(".{0,40}", 1..20)) {
        let mut stage = Stage::new(true);
        stage.start("go");
        for line in &lines {
            stage.line(line);
        }
        stage.exit(Exit { code: Some(0), stderr: lines.concat() });
        prop_assert!(stage.is_idle());
    }
}

/// The recordings except the largest, which differs from others only in the length of its texts.
static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(|| {
    let mut recordings = Recording::all();
    recordings.retain(|it| it.name != "1.5/bigout");
    recordings
});

fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    prop_oneof![
        index().prop_map(Change::Drop),
        index().prop_map(Change::Double),
        (index(), index()).prop_map(|(a, b)| Change::Swap(a, b)),
        (index(), index()).prop_map(|(at, end)| Change::Truncate(at, end)),
        (index(), index(), value()).prop_map(|(at, place, to)| Change::Flip(at, place, to)),
        (index(), happening()).prop_map(|(at, it)| Change::Insert(at, it)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-zäß{\"]{0,8}".prop_map(Value::from),
        Just(json!([])),
        Just(json!([{ "type": "text", "text": "other" }])),
        Just(json!({ "type": "toolCall", "id": "x", "name": "bash", "arguments": {} })),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    prop::sample::select(vec![
        Happening::Start,
        Happening::Steer,
        Happening::Interrupt,
        Happening::Wake,
        Happening::Allow,
        Happening::Deny,
        Happening::States,
        Happening::Exit,
    ])
}

fn apply(change: &Change, steps: &mut Vec<Step>) {
    if steps.is_empty() {
        return;
    }
    let n = steps.len();
    match change {
        Change::Drop(at) => {
            steps.remove(at.index(n));
        }
        Change::Double(at) => {
            if let Step::Line(moment, recorded) = &steps[at.index(n)] {
                let step = Step::Line(*moment, recorded.clone());
                steps.insert(at.index(n), step);
            }
        }
        Change::Swap(a, b) => steps.swap(a.index(n), b.index(n)),
        Change::Truncate(at, end) => {
            if let Step::Line(_, Recorded::Output(line)) = &mut steps[at.index(n)] {
                let ends: Vec<usize> = line.char_indices().map(|(it, _)| it).collect();
                line.truncate(if ends.is_empty() { 0 } else { ends[end.index(ends.len())] });
            }
        }
        Change::Flip(at, place, to) => {
            if let Step::Line(_, Recorded::Output(line)) = &mut steps[at.index(n)] {
                *line = flipped(line, place, to);
            }
        }
        Change::Insert(at, it) => steps.insert(at.index(n), Step::Happens(it.clone())),
    }
}

fn flipped(line: &str, place: &Index, to: &Value) -> String {
    let Ok(mut line_value) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    let mut places = Vec::new();
    list_places(&line_value, "", &mut places);
    let pointer = &places[place.index(places.len())];
    if let Some(value) = line_value.pointer_mut(pointer) {
        *value = to.clone();
    }
    line_value.to_string()
}

fn list_places(value: &Value, here: &str, places: &mut Vec<String>) {
    places.push(here.to_owned());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, it)| list_places(it, &format!("{here}/{name}"), places));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(idx, it)| list_places(it, &format!("{here}/{idx}"), places));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

fn happen(happening: &Happening, stage: &mut Stage) {
    match happening {
        Happening::Start => stage.start("again"),
        Happening::Steer => stage.steer("look out"),
        Happening::Interrupt => stage.give(RunInput::Interrupt),
        Happening::Wake => stage.wake(),
        Happening::Allow => {
            let arguments = Some("no object".to_owned());
            stage.decide(Verdict::Allowed { arguments, scope: Scope::Session });
        }
        Happening::Deny => stage.decide(Verdict::TimedOut),
        Happening::States => stage.answer_states(),
        Happening::Exit => stage.exit(Exit { code: Some(3), stderr: "gone".to_owned() }),
    }
}
