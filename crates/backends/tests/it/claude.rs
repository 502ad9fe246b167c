//! Recorded sessions of Claude Code, as they were and in all the ways in which they could have gone
//! wrong.

mod command_line;
mod examples;
mod fuzz;
mod laws;
mod recording;
mod snapshots;
mod stage;
mod watch;

/// What each recording becomes, as it was seen live.
pub(crate) fn live() -> Vec<(String, Vec<transcript::Answer>)> {
    let answers = |recording: recording::Recording| {
        let mut player = recording::Player::new(&recording.steps);
        recording.steps.iter().for_each(|it| player.play(it));
        let closed = player.stage.closed.into_iter();
        (recording.name, closed.map(|it| it.answer).collect())
    };
    recording::recordings().into_iter().map(answers).collect()
}
