//! The ids of messages that stand for a step of a run, or say something about it.

use transcript::ResponseId;

/// The id of a step's message: `run.step1`. Calls are called `run.1`, so that no two are alike.
pub(crate) fn step_id(run: &ResponseId, number: usize) -> String {
    format!("{run}.step{number}")
}

/// The run of a step's message. Older versions called it `run.1`.
pub(crate) fn run_of_step(id: &str) -> Option<&str> {
    let (run, number) = id.rsplit_once('.')?;
    let number = number.strip_prefix("step").unwrap_or(number);
    number.parse::<u32>().ok().map(|_| run)
}

/// The number of a step, from 1, as its message's id says it. Older ids do not count: their steps all have
/// messages.
pub(super) fn number_of_step(id: &str) -> Option<usize> {
    id.rsplit_once(".step")?.1.parse().ok()
}

/// The run that a status message is about: `status_cont_run`, `status_error_run`, `status_run_notice1`.
pub(crate) fn run_of_status(id: &str) -> Option<&str> {
    let id = id.strip_prefix("status_")?;
    let of_end = id.strip_prefix("cont_").or_else(|| id.strip_prefix("error_"));
    of_end.or_else(|| {
        let (run, word) = id.trim_end_matches(|it: char| it.is_ascii_digit()).rsplit_once('_')?;
        ["problem", "notice", "unread", "exchange", "thought"].contains(&word).then_some(run)
    })
}
