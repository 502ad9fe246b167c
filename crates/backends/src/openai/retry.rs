//! How long to wait before asking again: longer each time, and not all at the same moment.

use transcript::ResponseId;

const FIRST_PAUSE_MS: u64 = 500;
/// Whoever asks us to wait longer gets no second request from this run.
pub(super) const MAX_PAUSE_MS: u64 = 120_000;
const LONGEST_OWN_PAUSE_MS: u64 = 30_000;

/// After the attempt of that number, from 1. Between half and all of twice the pause before; the
/// run's id, which is random enough, says where.
pub(super) fn pause_ms(run: &ResponseId, attempt: u32) -> u64 {
    let doublings = attempt.saturating_sub(1).min(16);
    let longest = (FIRST_PAUSE_MS << doublings).min(LONGEST_OWN_PAUSE_MS);
    longest / 2 + hash(run.as_str(), attempt) % (longest / 2 + 1)
}

pub(super) fn in_seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

/// FNV-1a, with a last stir so that neighbours differ in all bits.
fn hash(text: &str, salt: u32) -> u64 {
    let bytes = text.bytes().chain(salt.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11
}
