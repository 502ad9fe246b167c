//! Recorded sessions of Claude Code, replayed unchanged and with every kind of corruption.

mod command_line;
mod examples;
mod fuzz;
mod laws;
mod recording;
mod snapshots;
mod stage;
mod versions;
mod watch;

use backends::Exit;
use serde_json::json;
use transcript::Record;

use crate::pages::Session;

/// Returns the runs that each recording gives when it is played live.
pub(crate) fn live() -> Vec<(String, Vec<transcript::RunMessage>)> {
    let answers = |recording: recording::Recording| {
        let mut player = recording::Player::new(&recording.steps);
        recording.steps.iter().for_each(|it| player.play(it));
        let closed = player.stage.closed.into_iter();
        (recording.name, closed.map(|it| it.answer).collect())
    };
    recording::recordings().into_iter().map(answers).collect()
}

/// Returns the session that each recording gives when it is played to its end.
pub(crate) fn sessions() -> Vec<Session> {
    let session = |recording: recording::Recording| {
        let mut player = recording::Player::new(&recording.steps);
        recording.steps.iter().for_each(|it| player.play(it));
        let output = recording.steps.into_iter().filter_map(|it| match it {
            recording::Step::Output(line) => Some(line),
            _ => None,
        });
        Session {
            outline: recording::folder().join(format!("{}.page.txt", recording.name)),
            name: format!("claude/{}", recording.name),
            records: player.stage.session.records,
            output: output.collect(),
        }
    };
    recording::recordings().into_iter().map(session).collect()
}

/// Returns the log of a run in which the program writes these lines and exits.
pub(crate) fn replayed(output: &[String]) -> Vec<Record> {
    let mut stage = stage::Stage::new();
    stage.start(&json!({ "role": "user", "content": "go" }));
    output.iter().for_each(|it| drop(stage.line(it)));
    stage.exit(Exit { code: Some(0), stderr: String::new() });
    stage.session.records
}
