//! Snapshots of the events of every recording.

use backends::{ProgramEffect, RunEffect};
use expect_test::expect_file;
use serde_json::Value;
use transcript::{Event, stream};

use super::recording::Recording;
use super::stage::{Played, Stage};

#[test]
fn every_recording_matches_its_event_snapshot() {
    for recording in Recording::all() {
        let stage = Stage::play(&recording);
        expect_file![recording.events_file()].assert_eq(&shown(&stage.played));
    }
}

/// Returns a line for each effect and each input except Pi's lines. Adjacent deltas are merged.
pub(super) fn shown(played: &[Played]) -> String {
    let mut text = String::new();
    let mut pending: Option<Event> = None;
    for it in played {
        if let Played::Wanted(effect) = it
            && let ProgramEffect::Run(RunEffect::Emit(event)) = effect.as_ref()
        {
            let is_merged = pending.as_mut().is_some_and(|it| stream::merge(it, event));
            if !is_merged {
                text.extend(pending.replace(event.clone()).map(|it| event_line(&it)));
            }
            continue;
        }
        let line = match it {
            Played::Given(line) if line.starts_with('{') => continue,
            Played::Given(input) => format!("> {input}\n"),
            Played::Wanted(effect) => effect_line(effect),
        };
        text.extend(pending.take().map(|it| event_line(&it)));
        text += &line;
    }
    text.extend(pending.map(|it| event_line(&it)));
    text
}

fn event_line(event: &Event) -> String {
    let mut fields = serde_json::to_value(event).unwrap();
    let kind = fields.as_object_mut().and_then(|it| it.shift_remove("type")).unwrap();
    cut_texts(&mut fields);
    format!("{} {fields}\n", kind.as_str().unwrap())
}

fn cut_texts(value: &mut Value) {
    const MAX_CHARS: usize = 160;
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(MAX_CHARS) {
                let cut = format!("{}… ({} bytes)", &text[..end], text.len());
                *text = cut;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(cut_texts),
        Value::Object(fields) => fields.values_mut().for_each(cut_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => (),
    }
}

fn effect_line(effect: &ProgramEffect) -> String {
    match effect {
        ProgramEffect::Write(line) => format!("< {line}\n"),
        ProgramEffect::Begin => "begin\n".to_owned(),
        ProgramEffect::Ask { call_id, can_edit, .. } => {
            format!("ask {call_id} can_edit={can_edit}\n")
        }
        ProgramEffect::Withdraw(call_id) => format!("withdraw {call_id}\n"),
        ProgramEffect::Run(RunEffect::CannotSteer(id)) => format!("cannot_steer {id}\n"),
        ProgramEffect::Run(RunEffect::WakeAt(at)) => format!("wake_at {}\n", at.0),
        ProgramEffect::Quit => "quit\n".to_owned(),
        ProgramEffect::Outdated => "outdated\n".to_owned(),
        ProgramEffect::Run(RunEffect::End(ending)) => {
            let error = ending.error.as_ref().map(|it| format!(" {}: {}", it.code, it.message));
            format!("end {:?}{}\n", ending.status, error.unwrap_or_default())
        }
        ProgramEffect::Run(RunEffect::Emit(_)) | ProgramEffect::CloseInput => {
            format!("{effect:?}\n")
        }
    }
}
