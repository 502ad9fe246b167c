//! Output of a command, read and reported as text while it arrives.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;
use transcript::OutputStream;

use crate::{ToolContext, ToolEvent};

/// Maximum output of a shell command in bytes. All output is kept, so a command that prints more is
/// stopped.
pub(super) const MAX_OUTPUT: u64 = 16 * 1024 * 1024;
/// Size in bytes of the buffer for reading the output of a shell command.
const BUFFER: usize = 8 * 1024;

/// Number of bytes that a shell command has printed to stdout and stderr together.
#[derive(Default)]
pub(super) struct Printed {
    bytes: AtomicU64,
    is_too_much: Notify,
}

impl Printed {
    /// Returns whether the shell command has printed more than [`MAX_OUTPUT`].
    pub(super) fn is_too_much(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > MAX_OUTPUT
    }

    /// Waits until the shell command has printed more than [`MAX_OUTPUT`].
    pub(super) async fn too_much(&self) {
        self.is_too_much.notified().await;
    }

    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if self.is_too_much() {
            self.is_too_much.notify_one();
        }
    }
}

/// Reports the output of a shell command from one pipe as tool events. Returns when the pipe is
/// closed, the output limit is exceeded, or nobody receives the events any more.
pub(super) async fn stream_output(
    mut pipe: impl AsyncRead + Unpin,
    stream: OutputStream,
    context: &ToolContext,
    printed: &Printed,
) {
    let mut decoder = Decoder::default();
    let mut offset = 0;
    let mut buffer = vec![0; BUFFER];
    loop {
        let n = pipe.read(&mut buffer).await.unwrap_or(0);
        let delta = if n == 0 { decoder.finish() } else { decoder.feed(&buffer[..n]) };
        let length = delta.len() as u64;
        let is_received =
            delta.is_empty() || context.report(ToolEvent::Output { stream, offset, delta }).await;
        offset += length;
        printed.add(n);
        if n == 0 || !is_received || printed.is_too_much() {
            return;
        }
    }
}

/// Decoder of UTF-8 chunks, which may be cut within a character. Invalid bytes become U+FFFD.
#[derive(Default)]
pub(super) struct Decoder {
    /// Bytes of the incomplete UTF-8 character at the end of the last chunk.
    rest: Vec<u8>,
}

impl Decoder {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let cut = match std::str::from_utf8(last_character(&self.rest)) {
            Err(error) if error.error_len().is_none() => {
                last_character(&self.rest).len() - error.valid_up_to()
            }
            _ => 0,
        };
        let rest = self.rest.split_off(self.rest.len() - cut);
        let whole = std::mem::replace(&mut self.rest, rest);
        String::from_utf8_lossy(&whole).into_owned()
    }

    pub(super) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.rest)).into_owned()
    }
}

/// Returns the bytes from the start of the last UTF-8 character, which may be incomplete.
fn last_character(bytes: &[u8]) -> &[u8] {
    let is_start = |byte: u8| byte & 0b1100_0000 != 0b1000_0000;
    let near_end = bytes.len().saturating_sub(4);
    let start = bytes[near_end..].iter().rposition(|it| is_start(*it));
    &bytes[near_end + start.unwrap_or(0)..]
}

#[cfg(test)]
mod tests {
    use super::Decoder;

    #[test]
    fn every_split_decodes_to_the_same_text() {
        let texts: [&[u8]; 5] = [
            "aä€😀z".as_bytes(),
            b"\xff\xfea\xe2\x82",
            b"\xf0\x9f\x98",
            b"a\x80\x80\x80\x80b",
            b"",
        ];
        for bytes in texts {
            let expected = String::from_utf8_lossy(bytes);
            for first in 0..=bytes.len() {
                for second in first..=bytes.len() {
                    let mut decoder = Decoder::default();
                    let buffers = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                    let mut text: String = buffers.iter().map(|it| decoder.feed(it)).collect();
                    text += &decoder.finish();
                    assert_eq!(text, expected, "{bytes:?} cut at {first} and {second}");
                }
            }
        }
    }
}
