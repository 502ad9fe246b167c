//! The ids of calls in one request: each names one call and its result.
//!
//! A provider gets its own id back while that is unique; every other call has nine letters and
//! digits made from our id, which is what the strictest of them takes.

use std::collections::HashSet;

use transcript::Call;

const LENGTH: u32 = 9;
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

#[derive(Default)]
pub(super) struct CallIds {
    used: HashSet<String>,
}

impl CallIds {
    pub(super) fn assign(&mut self, call: &Call, is_native: bool) -> String {
        let own = call.provider_call_id.as_deref().filter(|it| is_native && !it.trim().is_empty());
        if let Some(own) = own
            && self.used.insert(own.to_owned())
        {
            return own.to_owned();
        }
        // Generated ids collide about once in 10^14; then the next is tried.
        let made = (0..).map(|n| short_id(call.id.as_str(), n));
        let id = made.into_iter().find(|it| !self.used.contains(it)).unwrap_or_default();
        self.used.insert(id.clone());
        id
    }
}

/// Returns the n-th choice for the short id of a tool call: an FNV-1a hash, mixed so that similar
/// ids differ in all digits.
fn short_id(id: &str, n: u64) -> String {
    let bytes = id.bytes().chain(n.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut hash = (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
    let digit = |_| {
        let digit = DIGITS[(hash % 36) as usize];
        hash /= 36;
        char::from(digit)
    };
    (0..LENGTH).map(digit).collect()
}
