//! Recorded and made-up sessions of both packages of Pi.

mod examples;
mod fuzz;
mod guard;
mod laws;
mod recording;
mod snapshots;
mod stage;
mod tool_results;

use backends::Exit;
use transcript::Record;

pub(crate) use self::stage::ANNOUNCEMENT;
use crate::pages::Session;

/// Returns the runs that each recording gives when it is played live.
pub(crate) fn live() -> Vec<(String, Vec<transcript::RunMessage>)> {
    let answers = |recording: recording::Recording| {
        let finished = stage::Stage::play(&recording).finished.into_iter();
        (recording.name, finished.map(|it| it.answer).collect())
    };
    recording::Recording::all().into_iter().map(answers).collect()
}

/// Returns the session that each recording gives when it is played to its end.
pub(crate) fn sessions() -> Vec<Session> {
    let session = |recording: recording::Recording| {
        let records = stage::Stage::play(&recording).session.records;
        let outline = recording.page_file();
        let output = recording.lines.into_iter().filter_map(|(_, it)| match it {
            recording::Recorded::Output(line) => Some(line),
            _ => None,
        });
        Session {
            name: format!("pi/{}", recording.name),
            outline,
            records,
            output: output.collect(),
        }
    };
    recording::Recording::all().into_iter().map(session).collect()
}

/// Returns the log of a run in which the program writes these lines and exits.
pub(crate) fn replayed(output: &[String]) -> Vec<Record> {
    let mut stage = examples::working();
    output.iter().for_each(|it| stage.line(it));
    stage.answer_states();
    stage.exit(Exit { code: Some(0), stderr: String::new() });
    stage.session.records
}
