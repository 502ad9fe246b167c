//! Rate limit of tool calls.

use std::collections::VecDeque;

use transcript::Millis;

const MINUTE_MS: u64 = 60_000;

/// Start times of a session's tool calls within the last minute.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    recent: VecDeque<Millis>,
}

impl RateLimit {
    /// Returns whether another tool call may start, and counts it. At most `limit` calls may start
    /// within a minute; zero means no limit. Start times in the future, after the clock was set
    /// back, do not count.
    pub(crate) fn try_acquire(&mut self, now: Millis, limit: usize) -> bool {
        if limit == 0 {
            return true;
        }
        self.recent.retain(|at| *at <= now && now.since(*at) < MINUTE_MS);
        let is_within = self.recent.len() < limit;
        if is_within {
            self.recent.push_back(now);
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_at_most_the_limit_of_calls() {
        let mut limit = RateLimit::default();
        let mut acquire = |at| limit.try_acquire(Millis(at), 2);
        assert!(acquire(0) && acquire(10) && !acquire(20));
        assert!(acquire(60_000) && !acquire(60_001), "the first has expired, the second has not");
        assert!(acquire(5), "the clock was set back");
        assert!(RateLimit::default().try_acquire(Millis(0), 0), "no limit");
    }
}
