//! Snapshots of all effects of each recording: a file next to it with a line for each effect.

use backends::{ProgramEffect, RunEffect};
use expect_test::expect_file;
use serde_json::Value;
use transcript::Event;

use super::recording::{Player, folder, recordings};
use super::stage::Entry;

#[test]
fn every_recording_matches_its_event_snapshot() {
    for recording in recordings() {
        let mut player = Player::new(&recording.steps);
        for step in &recording.steps {
            player.play(step);
        }
        let expected = folder().join(format!("{}.events.txt", recording.name));
        expect_file![expected].assert_eq(&shown(&player.stage.log));
    }
}

fn shown(log: &[Entry]) -> String {
    let mut lines = Vec::new();
    let mut deltas: Option<(String, String)> = None;
    for entry in log {
        let delta = match entry {
            Entry::Did(effect) => delta_of(effect),
            Entry::Given(_) => None,
        };
        match (&mut deltas, delta) {
            (Some((of, text)), Some((also_of, delta))) if *of == also_of => text.push_str(&delta),
            (deltas, delta) => {
                lines.extend(deltas.take().map(|(of, text)| format!("  {of} {text:?}")));
                match delta {
                    Some(delta) => *deltas = Some(delta),
                    None => lines.push(line(entry)),
                }
            }
        }
    }
    lines.extend(deltas.take().map(|(of, text)| format!("  {of} {text:?}")));
    lines.join("\n") + "\n"
}

/// Returns the name and the text of a delta. Consecutive deltas of the same name are shown as one.
fn delta_of(effect: &ProgramEffect) -> Option<(String, String)> {
    let ProgramEffect::Run(RunEffect::Emit(event)) = effect else { return None };
    Some(match event {
        Event::TextDelta { part_id, delta, .. } => (format!("text_delta {part_id}"), delta.clone()),
        Event::ThinkingDelta { part_id, delta, .. } => {
            (format!("thinking_delta {part_id}"), delta.clone())
        }
        Event::ToolArgumentsDelta { call_id, delta } => {
            (format!("tool_arguments_delta {call_id}"), delta.clone())
        }
        _ => return None,
    })
}

fn line(entry: &Entry) -> String {
    let effect = match entry {
        Entry::Given(what) => return format!("-> {what}"),
        Entry::Did(effect) => effect,
    };
    match &**effect {
        ProgramEffect::Run(RunEffect::Emit(event)) => {
            let mut fields = serde_json::to_value(event).unwrap();
            let kind = fields.as_object_mut().unwrap().shift_remove("type").unwrap();
            format!("  {} {}", kind.as_str().unwrap(), short(&fields))
        }
        ProgramEffect::Write(line) => format!("  WRITE {}", cut(line)),
        ProgramEffect::Run(effect) => format!("  {effect:?}"),
        effect => format!("  {effect:?}"),
    }
}

fn short(value: &Value) -> Value {
    match value {
        Value::String(text) => cut(text).into(),
        Value::Array(items) => items.iter().map(short).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, it)| (name.clone(), short(it))).collect()
        }
        other => other.clone(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(240) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
