//! Pauses between retries: exponential backoff with jitter.

use transcript::ResponseId;

const FIRST_PAUSE_MS: u64 = 500;
/// Longest pause before a retry. The run fails if the model service asks for a longer one.
pub(super) const MAX_PAUSE_MS: u64 = 120_000;
const LONGEST_OWN_PAUSE_MS: u64 = 30_000;

/// Returns the pause in milliseconds after a failed attempt, counted from 1: between half and all
/// of a limit that doubles each time. The run's id serves as the random seed.
pub(super) fn pause_ms(run: &ResponseId, attempt: u32) -> u64 {
    let doublings = attempt.saturating_sub(1).min(16);
    let longest = (FIRST_PAUSE_MS << doublings).min(LONGEST_OWN_PAUSE_MS);
    longest / 2 + hash(run.as_str(), attempt) % (longest / 2 + 1)
}

pub(super) fn in_seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

/// Computes an FNV-1a hash, with a final mix so that similar inputs differ in all bits.
fn hash(text: &str, salt: u32) -> u64 {
    let bytes = text.bytes().chain(salt.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11
}

#[cfg(test)]
mod tests {
    //! Pauses double up to a limit, and runs do not retry in lockstep.

    use std::collections::HashSet;

    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        for attempt in (1..200).chain([u32::MAX]) {
            let longest = [500, 1000, 2000, 4000, 8000, 16_000].get(attempt as usize - 1);
            let longest = longest.copied().unwrap_or(30_000);
            for run in 0..50 {
                let pause = pause_ms(&ResponseId::new(run.to_string()), attempt);
                assert!((longest / 2..=longest).contains(&pause), "{attempt}: {pause}");
            }
        }
    }

    #[test]
    fn pauses_differ_between_runs_and_attempts() {
        // From the seventh on, the limit is the same.
        let pause =
            |run: u32, attempt: u32| pause_ms(&ResponseId::new(format!("run-{run}")), attempt);
        let runs: HashSet<u64> = (0..100).map(|it| pause(it, 8)).collect();
        assert!(runs.len() > 90, "{} of 100", runs.len());
        let attempts: HashSet<u64> = (7..107).map(|it| pause(0, it)).collect();
        assert!(attempts.len() > 90, "{} of 100", attempts.len());
    }

    #[test]
    fn seconds_are_shown_with_one_decimal() {
        for (ms, words) in
            [(0, "0.0 s"), (99, "0.0 s"), (100, "0.1 s"), (1999, "1.9 s"), (30_000, "30.0 s")]
        {
            assert_eq!(in_seconds(ms), words);
        }
    }
}
