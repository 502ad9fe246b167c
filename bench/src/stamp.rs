//! Deltas that contain their due time, so that a receiver knows their age.
//!
//! A stamp is found in any bytes: a record, a patch, an event of a peer. Repetitions, as in a complete
//! text after its deltas, are recognised by their time: a stream's stamps only grow.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use crate::Delays;

#[cfg(test)]
mod tests;

const MARK: u8 = b'@';
const STREAM_DIGITS: usize = 4;
const TIME_DIGITS: usize = 16;
/// The mark, the stream's number, the time in nanoseconds; in hexadecimal.
pub const LENGTH: usize = 1 + STREAM_DIGITS + TIME_DIGITS;

/// Time since 1970.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
pub fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

pub fn write(stream: u16, at: Duration) -> String {
    format!("@{stream:04x}{:016x}", at.as_nanos() as u64)
}

/// Finds stamps in bytes that arrive in pieces.
#[derive(Default)]
pub struct Finder {
    /// The end of the last piece, where a stamp may have begun.
    rest: Vec<u8>,
    newest: HashMap<u16, u64>,
    pub delays: Delays,
}

impl Finder {
    /// Adds received bytes.
    pub fn feed(&mut self, piece: &[u8]) {
        let now = now().as_nanos() as u64;
        self.rest.extend_from_slice(piece);
        let bytes = std::mem::take(&mut self.rest);
        let mut from = 0;
        while let Some(at) = memchr::memchr(MARK, &bytes[from..]) {
            let start = from + at;
            let Some(stamp) = bytes.get(start..start + LENGTH) else {
                from = start;
                break;
            };
            from = start + 1;
            if let Some((stream, time)) = read(stamp) {
                self.see(stream, time, now);
            }
        }
        if bytes.get(from) == Some(&MARK) {
            self.rest.extend_from_slice(&bytes[from..]);
        }
    }

    fn see(&mut self, stream: u16, time: u64, now: u64) {
        let newest = self.newest.entry(stream).or_default();
        if time > *newest {
            *newest = time;
            self.delays.add(Duration::from_nanos(now.saturating_sub(time)));
        }
    }
}

fn read(stamp: &[u8]) -> Option<(u16, u64)> {
    let digits = std::str::from_utf8(&stamp[1..]).ok()?;
    let (stream, time) = digits.split_at_checked(STREAM_DIGITS)?;
    Some((u16::from_str_radix(stream, 16).ok()?, u64::from_str_radix(time, 16).ok()?))
}
