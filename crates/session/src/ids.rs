//! New ids. They rise with time, which keeps neighbours in the store's indexes together.

use transcript::{MessageId, Millis, ResponseId};
use uuid::Builder;

/// Source of new ids in the form of UUID v7. The random part comes from a seed that the driver
/// provides, so that the same inputs give the same ids.
#[derive(Debug)]
pub(crate) struct Ids {
    state: u128,
}

impl Ids {
    pub(crate) fn new(seed: u128) -> Self {
        Self { state: seed }
    }

    pub(crate) fn response(&mut self, now: Millis) -> ResponseId {
        ResponseId::new(self.next(now))
    }

    pub(crate) fn message(&mut self, now: Millis) -> MessageId {
        MessageId::new(self.next(now))
    }

    pub(crate) fn next(&mut self, now: Millis) -> String {
        let millis = u64::try_from(now.0).unwrap_or_default();
        let mut random = [0; 10];
        random.copy_from_slice(&self.random().to_le_bytes()[..10]);
        Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string()
    }

    /// Returns 128 pseudorandom bits from two independent splitmix64 generators.
    fn random(&mut self) -> u128 {
        let high = u64::try_from(self.state >> 64).unwrap_or_default();
        let low = u64::try_from(self.state & u128::from(u64::MAX)).unwrap_or_default();
        let (high, low) = (advance(high), advance(low));
        self.state = u128::from(high) << 64 | u128::from(low);
        u128::from(mix(high)) << 64 | u128::from(mix(low.rotate_left(32)))
    }
}

fn advance(state: u64) -> u64 {
    state.wrapping_add(0x9e37_79b9_7f4a_7c15)
}

fn mix(state: u64) -> u64 {
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_rise_with_time() {
        let mut ids = Ids::new(7);
        let made: Vec<String> = (0..1000).map(|n| ids.next(Millis(n))).collect();
        assert!(made.is_sorted());
        let mut other = Ids::new(8);
        let all: HashSet<String> =
            made.into_iter().chain((0..1000).map(|n| other.next(Millis(n)))).collect();
        assert_eq!(all.len(), 2000);
        assert_eq!(
            Ids::new(7).next(Millis(5)),
            Ids::new(7).next(Millis(5)),
            "a function of the seed"
        );
    }
}
