//! Splits a byte stream into lines, whatever the sizes of the pieces it arrives in.

/// A line of a byte stream, without its line end. Bytes that are not UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Text of a complete line.
    Whole(String),
    /// A line that exceeds the maximum length.
    Overlong {
        /// Size of the complete line in bytes.
        bytes: usize,
        /// First [`BEGINNING`] bytes of the line.
        beginning: String,
    },
}

impl Line {
    /// Returns how many bytes of the line are in memory.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Whole(text) | Self::Overlong { beginning: text, .. } => text.len(),
        }
    }

    /// Returns the line as raw line text. An overlong line is described and cut off.
    pub fn into_raw(self) -> String {
        match self {
            Self::Whole(text) => text,
            Self::Overlong { bytes, beginning } => {
                format!("a line of {bytes} bytes, which begins: {beginning}")
            }
        }
    }
}

/// Number of bytes that are kept of an overlong line.
const BEGINNING: usize = 2000;

/// Splits a byte stream into lines. Only `\n` ends a line, because other line separators may occur
/// in a text.
#[derive(Debug)]
pub struct Lines {
    longest: usize,
    /// Beginning of the current, incomplete line, up to `longest` bytes.
    begun: Vec<u8>,
    /// Size of the current, incomplete line in bytes, including bytes that are not kept.
    bytes: usize,
}

impl Lines {
    /// Creates a splitter for lines of up to `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self { longest, begun: Vec::new(), bytes: 0 }
    }

    /// Takes the next bytes of the stream and returns the lines that end in them.
    pub fn take(&mut self, piece: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|it| *it == b'\n') {
            self.add(&rest[..end]);
            lines.push(self.end());
            rest = &rest[end + 1..];
        }
        self.add(rest);
        lines
    }

    /// Returns the text after the last line end. `None` if there is none.
    pub fn finish(&mut self) -> Option<Line> {
        (self.bytes > 0).then(|| self.end())
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = self.longest.saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.bytes += bytes.len();
    }

    fn end(&mut self) -> Line {
        let mut line = std::mem::take(&mut self.begun);
        let bytes = std::mem::take(&mut self.bytes);
        if bytes > self.longest {
            line.truncate(BEGINNING);
            let beginning = String::from_utf8_lossy(&line).into_owned();
            return Line::Overlong { bytes, beginning };
        }
        Line::Whole(into_text(line))
    }
}

/// Converts bytes to text, with replacement characters where they are not UTF-8. Valid UTF-8 is not
/// copied.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    //! The lines do not depend on how the bytes are cut.

    use super::*;

    fn whole(text: &str) -> Line {
        Line::Whole(text.to_owned())
    }

    /// Cut at every two places.
    fn check(bytes: &[u8], longest: usize, expected: &[Line]) {
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let mut lines = Lines::new(longest);
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                let mut given: Vec<Line> =
                    pieces.iter().flat_map(|piece| lines.take(piece)).collect();
                given.extend(lines.finish());
                assert_eq!(given, expected, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn lines_do_not_depend_on_the_pieces() {
        check(b"", 9, &[]);
        check(b"one\ntwo\n", 9, &[whole("one"), whole("two")]);
        check(b"one\n\ntwo", 9, &[whole("one"), whole(""), whole("two")]);
        check("ä\r\n\u{2028}ß".as_bytes(), 9, &[whole("ä\r"), whole("\u{2028}ß")]);
        check(b"a\xffb\n\xc3", 9, &[whole("a\u{fffd}b"), whole("\u{fffd}")]);
    }

    #[test]
    fn an_overlong_line_is_counted_and_the_next_is_whole() {
        let overlong = |bytes, it: &str| Line::Overlong { bytes, beginning: it.to_owned() };
        check(b"abc\nabcd\nab\n", 3, &[whole("abc"), overlong(4, "abc"), whole("ab")]);
        check(b"abcdefgh", 3, &[overlong(8, "abc")]);
    }
}
