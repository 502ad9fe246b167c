//! Splits chunks of bytes into lines, which end with CR, LF or both, as server-sent events allow.
//!
//! A line within one chunk is returned without a copy.

use memchr::memchr2;

/// Maximum number of bytes of one line or one document that are buffered. A response that exceeds
/// it is an error.
pub(super) const MAX_LINE: usize = 32 * 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Beginning of a line whose end has not arrived.
    partial: Vec<u8>,
    /// Whether a CR ended the last line, so that a directly following LF belongs to it.
    after_cr: bool,
    /// Whether the first line, which may begin with a byte order mark, has ended.
    begun: bool,
}

impl Lines {
    /// Calls `take` with every line that these bytes complete. Returns false if an unfinished line
    /// has become longer than [`MAX_LINE`].
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut take: impl FnMut(&[u8])) -> bool {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                self.partial.extend_from_slice(bytes);
                return self.partial.len() <= MAX_LINE;
            };
            self.after_cr = bytes[end] == b'\r';
            if self.partial.is_empty() {
                take(self.without_bom(&bytes[..end]));
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(&bytes[..end]);
                take(self.without_bom(&line));
                line.clear();
                self.partial = line;
            }
            self.begun = true;
            bytes = &bytes[end + 1..];
        }
        true
    }

    /// Calls `take` with the last line of the response, if no line end follows it.
    pub(super) fn finish(&mut self, take: impl FnOnce(&[u8])) {
        let line = std::mem::take(&mut self.partial);
        if !line.is_empty() {
            take(self.without_bom(&line));
        }
    }

    fn without_bom<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        if self.begun { line } else { line.strip_prefix(BOM).unwrap_or(line) }
    }
}
