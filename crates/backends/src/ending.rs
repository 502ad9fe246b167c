//! How a run ended: as its agent says it, and as the log is to say it.

use transcript::{ErrorCode, ErrorInfo, RunMessage, RunStatus, Spent, Usage};

#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub status: RunStatus,
    pub error: Option<ErrorInfo>,
    pub usage: Option<Usage>,
    /// In US dollars, of the whole run.
    pub cost: Option<f64>,
}

impl Ending {
    /// What the driver closes `answer` with. Once somebody has asked to stop, the run is cancelled,
    /// whatever the agent says of its end.
    pub fn of(self, answer: &RunMessage) -> transcript::Ending {
        let Self { status, error, usage, cost } = self;
        let spent = Spent { usage, cost };
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

/// Nobody charges less; what stands behind it comes from adding up.
const PARTS_OF_A_DOLLAR: f64 = 1e12;

/// What a program says that something has cost. It says nothing where it does not know the price.
pub(crate) fn price(dollars: f64) -> Option<f64> {
    let rounded = (dollars * PARTS_OF_A_DOLLAR).round() / PARTS_OF_A_DOLLAR;
    (rounded.is_finite() && rounded > 0.0).then_some(rounded)
}

#[cfg(test)]
mod tests {
    use transcript::{Event, Millis, Record, ResponseId, Seq, SessionId};

    use super::*;

    #[test]
    fn a_price_has_no_dust_of_adding_up() {
        assert_eq!(price(0.00094 + 0.00094 + 0.00048), Some(0.00236));
        assert_eq!(price(0.1 + 0.2), Some(0.3));
        for none in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(price(none), None);
        }
    }

    #[test]
    fn a_run_that_was_asked_to_stop_is_cancelled_whatever_its_agent_says() {
        let id = ResponseId::new("r");
        let asked = Event::CancelRequested { by: "user".to_owned() };
        let asked = Record::new(Seq(1), Millis(0), SessionId::new("s"), Some(id.clone()), asked);
        for status in [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled] {
            let end = Ending { status, error: None, usage: None, cost: Some(0.5) };
            let spent = Spent { usage: None, cost: Some(0.5) };
            let ending = end.clone().of(&RunMessage::replay(&id, [&asked]));
            assert_eq!(ending, transcript::Ending::Cancelled { spent });
            let ending = end.of(&RunMessage::replay(&id, []));
            assert_eq!(ending.status(), status, "nobody asked");
        }
    }
}
