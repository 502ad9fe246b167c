//! Token usage and cost of a run.

use std::ops::Add;

use crate::{RunMessage, Usage};

/// Token usage and cost of a whole run, as the agent reports them at its end. A field that is
/// `None` is replaced by the sum over the run's steps.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunCost {
    /// Token counts of the whole run; `None` for the sum over its steps.
    pub usage: Option<Usage>,
    /// Cost of the whole run in US dollars; `None` for the sum over its steps.
    pub cost: Option<f64>,
}

impl RunMessage {
    /// Returns the token counts that the run reported at its end, or else the sum over its steps.
    /// `None` if neither is known.
    pub fn usage(&self) -> Option<Usage> {
        let finished = self.finish.as_ref().and_then(|it| it.usage);
        finished.or_else(|| {
            self.steps.iter().filter_map(|step| step.finished.as_ref()?.usage).reduce(Usage::plus)
        })
    }

    /// Returns the cost in US dollars that the run reported at its end, or else the sum over its
    /// steps. `None` if neither is known.
    pub fn cost(&self) -> Option<f64> {
        let finished = self.finish.as_ref().and_then(|it| it.cost);
        finished.or_else(|| {
            self.steps.iter().filter_map(|step| step.finished.as_ref()?.cost).reduce(f64::add)
        })
    }
}
