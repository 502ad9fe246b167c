//! The `[exchanges]` table: limits of the messages between agents.

use std::time::Duration;

use runtime::ExchangeLimits;
use serde::Deserialize;
use tools::SessionRule;

use super::agents::at_least_one;

/// The `[exchanges]` table of the configuration file: limits on messages that agents send to each
/// other without a person.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExchangesSection {
    max_depth: Option<u32>,
    max_per_run: Option<usize>,
    max_queued: Option<usize>,
    session: Option<SessionRule>,
    timeout_seconds: Option<u64>,
}

pub(super) fn exchanges(section: &ExchangesSection) -> anyhow::Result<ExchangeLimits> {
    let ExchangeLimits { depth, per_run, queued, timeout, session } = ExchangeLimits::default();
    let seconds = at_least_one("timeout_seconds", section.timeout_seconds, timeout.as_secs())?;
    Ok(ExchangeLimits {
        depth: section.max_depth.unwrap_or(depth),
        per_run: section.max_per_run.unwrap_or(per_run),
        queued: section.max_queued.unwrap_or(queued),
        timeout: Duration::from_secs(seconds),
        session: section.session.unwrap_or(session),
    })
}
