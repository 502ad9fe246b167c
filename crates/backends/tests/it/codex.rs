//! Recorded and made-up sessions of Codex, with its app-server and with `codex exec`.

mod agents;
mod asides;
mod fuzz;
mod laws;
mod open_thread;
mod program;
mod questions;
mod recording;
mod scenarios;
mod snapshots;
mod stage;
mod versions;

use backends::{Exit, ProgramInput};
use serde_json::Value;
use transcript::Record;

use crate::pages::Session;

/// Returns the runs that each recording gives when it is played live.
pub(crate) fn live() -> Vec<(String, Vec<transcript::RunMessage>)> {
    let recordings = recording::recordings().into_iter();
    recordings.map(|it| (it.name.clone(), it.replay().stage.ended)).collect()
}

/// Returns the session that each recording gives when it is played to its end.
pub(crate) fn sessions() -> Vec<Session> {
    let session = |recording: recording::Recording| {
        let records = recording.replay().stage.session.records;
        let output = recording.lines.into_iter().filter_map(|it| match it {
            recording::Line::Output(line) => Some(line),
            _ => None,
        });
        Session {
            outline: recording::folder().join(format!("{}.page.txt", recording.name)),
            name: format!("codex/{}", recording.name),
            records,
            output: output.collect(),
        }
    };
    recording::recordings().into_iter().map(session).collect()
}

/// Returns the log of a run in which the program sends these notifications and exits. A
/// notification that names no turn is one of the current turn.
pub(crate) fn replayed(output: &[String]) -> Vec<Record> {
    let of_turn = |line: &String| {
        let line: Value = serde_json::from_str(line).unwrap();
        open_thread::notification(line["method"].as_str().unwrap(), line["params"].clone())
    };
    replayed_unchanged(&output.iter().map(of_turn).collect::<Vec<_>>())
}

/// Returns the log of a run in which the program writes exactly these lines and exits.
pub(crate) fn replayed_unchanged(output: &[String]) -> Vec<Record> {
    let mut stage = open_thread::in_turn();
    output.iter().for_each(|it| stage.line(it));
    stage.give(ProgramInput::Exited(Exit { code: Some(0), stderr: String::new() }));
    stage.session.records
}
