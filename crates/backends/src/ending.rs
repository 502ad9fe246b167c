//! The end of a run: as the agent reports it, and as the log records it.

use transcript::{ErrorCode, ErrorInfo, RunCost, RunMessage, RunStatus, Usage};

/// The end of a run, as its agent reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// Status of the ended run.
    pub status: RunStatus,
    /// Error of a failed run. `None` if the run did not fail, or the agent gave no reason.
    pub error: Option<ErrorInfo>,
    /// Token usage of the whole run. `None` if the agent does not count it: the usage of the steps
    /// is then added up.
    pub usage: Option<Usage>,
    /// Cost of the whole run in US dollars. `None` if the agent does not report it.
    pub cost: Option<f64>,
}

impl Ending {
    /// Returns the ending with which the driver closes the run `answer`. A run that a person asked
    /// to stop is cancelled, whatever the agent reports.
    pub fn of(self, answer: &RunMessage) -> transcript::Ending {
        let Self { status, error, usage, cost } = self;
        let spent = RunCost { usage, cost };
        match status {
            _ if answer.cancel_requested.is_some() => transcript::Ending::Cancelled { spent },
            RunStatus::Completed => transcript::Ending::Completed { spent },
            RunStatus::Cancelled => transcript::Ending::Cancelled { spent },
            RunStatus::Failed => {
                let why = "The agent gave no reason.";
                let unknown = || ErrorInfo::new(ErrorCode::AgentFailed, why);
                transcript::Ending::Failed { error: error.unwrap_or_else(unknown), spent }
            }
        }
    }
}

/// Costs are rounded to this fraction of a US dollar. Smaller digits come from adding
/// floating-point numbers.
const PARTS_OF_A_DOLLAR: f64 = 1e12;

/// Rounds a cost in US dollars that a program reports. Returns `None` if the cost is zero, negative
/// or not finite, which means unknown.
pub(crate) fn rounded_cost(dollars: f64) -> Option<f64> {
    let rounded = (dollars * PARTS_OF_A_DOLLAR).round() / PARTS_OF_A_DOLLAR;
    (rounded.is_finite() && rounded > 0.0).then_some(rounded)
}

#[cfg(test)]
mod tests {
    use transcript::{Event, Millis, Record, ResponseId, Seq, SessionId};

    use super::*;

    #[test]
    fn price_rounds_off_floating_point_errors() {
        assert_eq!(rounded_cost(0.00094 + 0.00094 + 0.00048), Some(0.00236));
        assert_eq!(rounded_cost(0.1 + 0.2), Some(0.3));
        for none in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(rounded_cost(none), None);
        }
    }

    #[test]
    fn a_run_asked_to_stop_ends_as_cancelled() {
        let id = ResponseId::new("r");
        let asked = Event::CancelRequested { by: "user".to_owned() };
        let asked = Record::new(Seq(1), Millis(0), SessionId::new("s"), Some(id.clone()), asked);
        for status in [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled] {
            let end = Ending { status, error: None, usage: None, cost: Some(0.5) };
            let spent = RunCost { usage: None, cost: Some(0.5) };
            let ending = end.clone().of(&RunMessage::replay(&id, [&asked]));
            assert_eq!(ending, transcript::Ending::Cancelled { spent });
            let ending = end.of(&RunMessage::replay(&id, []));
            assert_eq!(ending.status(), status, "nobody asked");
        }
    }
}
