//! The ids of messages that represent a step of a run or a status of it.

use transcript::ResponseId;

/// Returns the id of a step's message: `run.step1`. Ids of parts are `run.1`, so they never
/// collide.
pub(crate) fn step_id(run: &ResponseId, number: usize) -> String {
    format!("{run}.step{number}")
}

/// Returns the run id in the id of a step's message: `run.step1`, or `run.1` from older versions.
/// `None` for other ids.
pub(crate) fn run_of_step(id: &str) -> Option<&str> {
    let (run, number) = id.rsplit_once('.')?;
    let number = number.strip_prefix("step").unwrap_or(number);
    number.parse::<u32>().ok().map(|_| run)
}

/// Returns the number of a step, from 1, from the id of its message. `None` for ids of older
/// versions, whose steps all have messages.
pub(super) fn number_of_step(id: &str) -> Option<usize> {
    id.rsplit_once(".step")?.1.parse().ok()
}

/// Returns the run id in the id of a status message: `status_cont_run`, `status_error_run`,
/// `status_run_notice1`. `None` for other ids.
pub(crate) fn run_of_status(id: &str) -> Option<&str> {
    let id = id.strip_prefix("status_")?;
    let of_end = id.strip_prefix("cont_").or_else(|| id.strip_prefix("error_"));
    of_end.or_else(|| {
        let (run, word) = id.trim_end_matches(|it: char| it.is_ascii_digit()).rsplit_once('_')?;
        ["problem", "notice", "unread", "exchange", "thought"].contains(&word).then_some(run)
    })
}
