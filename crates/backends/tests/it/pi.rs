//! Recordings of Pi, both packages, through its state machine.

mod examples;
mod fuzz;
mod laws;
mod recording;
mod snapshots;
mod stage;

/// What each recording becomes, as it was seen live.
pub(crate) fn live() -> Vec<(String, Vec<transcript::Answer>)> {
    let answers = |recording: recording::Recording| {
        let finished = stage::Stage::play(&recording).finished.into_iter();
        (recording.name, finished.map(|it| it.answer).collect())
    };
    recording::Recording::all().into_iter().map(answers).collect()
}
