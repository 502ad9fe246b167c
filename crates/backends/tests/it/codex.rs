//! Codex, as it was recorded: by its app-server and by `codex exec`.

mod fuzz;
mod laws;
mod program;
mod questions;
mod recording;
mod snapshots;
mod stage;
mod stories;
mod talk;

/// What each recording becomes, as it was seen live.
pub(crate) fn live() -> Vec<(String, Vec<transcript::Answer>)> {
    let recordings = recording::recordings().into_iter();
    recordings.map(|it| (it.name.clone(), it.replay().stage.ended)).collect()
}
