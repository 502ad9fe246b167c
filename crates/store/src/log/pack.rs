//! The deltas of a folded stream: where each begins and ends, in a few bytes.
//!
//! Per delta, as LEB128 numbers: the step of `seq` from the one before (the first from the stream's
//! `first_seq`), the step of `at`, the length in bytes, and for output how far its offset is from the
//! end of the one before. Steps that may be negative are zigzag coded.

use transcript::{Millis, Seq};

use crate::log::stream::Delta;

pub(crate) fn pack(first: Seq, deltas: &[Delta]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut last = Last::before(first);
    for delta in deltas {
        push(&mut packed, delta.seq.0.wrapping_sub(last.seq));
        push(&mut packed, zigzag(delta.at.0.wrapping_sub(last.at)));
        push(&mut packed, delta.text.len() as u64);
        if let Some(offset) = delta.offset {
            push(&mut packed, zigzag(offset.wrapping_sub(last.end).cast_signed()));
        }
        last = Last::after(delta);
    }
    packed
}

/// Unpacks the deltas of a stream with this text; `None` if [`pack`] did not make `packed` from
/// such a stream.
pub(crate) fn unpack(
    first: Seq,
    has_offsets: bool,
    mut packed: &[u8],
    mut text: &str,
) -> Option<Vec<Delta>> {
    let mut deltas = Vec::new();
    let mut last = Last::before(first);
    while !packed.is_empty() {
        let seq = Seq(last.seq.wrapping_add(pull(&mut packed)?));
        let at = Millis(last.at.wrapping_add(unzigzag(pull(&mut packed)?)));
        let (own, rest) = text.split_at_checked(usize::try_from(pull(&mut packed)?).ok()?)?;
        text = rest;
        let offset = match has_offsets {
            true => Some(last.end.wrapping_add(unzigzag(pull(&mut packed)?).cast_unsigned())),
            false => None,
        };
        let delta = Delta { seq, at, offset, text: own.to_owned() };
        last = Last::after(&delta);
        deltas.push(delta);
    }
    text.is_empty().then_some(deltas)
}

/// Values of the previous delta, to which the next one is encoded as a difference.
struct Last {
    seq: u64,
    at: i64,
    end: u64,
}

impl Last {
    fn before(first: Seq) -> Self {
        Self { seq: first.0, at: 0, end: 0 }
    }

    fn after(delta: &Delta) -> Self {
        let end = delta.offset.unwrap_or(0).wrapping_add(delta.text.len() as u64);
        Self { seq: delta.seq.0, at: delta.at.0, end }
    }
}

fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)).cast_unsigned()
}

fn unzigzag(n: u64) -> i64 {
    (n >> 1).cast_signed() ^ -(n & 1).cast_signed()
}

fn push(bytes: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
}

fn pull(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        n |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(n);
        }
    }
    None
}
