//! Bytes into lines, however they are cut into pieces.

/// A line without its end; what is no UTF-8 in it is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Whole(String),
    /// Longer than anybody wants to read: how many bytes it had, and its beginning.
    Overlong {
        bytes: usize,
        beginning: String,
    },
}

impl Line {
    /// How much of it is kept.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Whole(text) | Self::Overlong { beginning: text, .. } => text.len(),
        }
    }

    /// As it is kept for who wants to see what the program has written.
    pub(super) fn into_raw(self) -> String {
        match self {
            Self::Whole(text) => text,
            Self::Overlong { bytes, beginning } => {
                format!("a line of {bytes} bytes, which begins: {beginning}")
            }
        }
    }
}

/// How much is kept of a line that is too long.
const BEGINNING: usize = 2000;

/// Takes pieces and gives lines. Ends at `\n` alone: other marks of a line's end may stand in a text.
pub(super) struct Lines {
    longest: usize,
    /// The line that has begun, up to `longest` bytes of it.
    begun: Vec<u8>,
    /// Of the line that has begun, whether kept or not.
    bytes: usize,
}

impl Lines {
    pub(super) fn new(longest: usize) -> Self {
        Self { longest, begun: Vec::new(), bytes: 0 }
    }

    /// The lines that end within this piece.
    pub(super) fn take(&mut self, piece: &[u8]) -> Vec<Line> {
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

    /// What stands after the last end of a line, if anything does.
    pub(super) fn finish(&mut self) -> Option<Line> {
        (self.bytes > 0).then(|| self.end())
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = self.longest.saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.bytes += bytes.len();
    }

    fn end(&mut self) -> Line {
        let (mut line, bytes) = (std::mem::take(&mut self.begun), std::mem::take(&mut self.bytes));
        if bytes > self.longest {
            line.truncate(BEGINNING);
            let beginning = String::from_utf8_lossy(&line).into_owned();
            return Line::Overlong { bytes, beginning };
        }
        Line::Whole(into_text(line))
    }
}

/// Copied only where something has to be replaced.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    //! However the bytes are cut, the lines are the same.

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
    fn lines_are_the_same_wherever_the_bytes_are_cut() {
        check(b"", 9, &[]);
        check(b"one\ntwo\n", 9, &[whole("one"), whole("two")]);
        check(b"one\n\ntwo", 9, &[whole("one"), whole(""), whole("two")]);
        check("ä\r\n\u{2028}ß".as_bytes(), 9, &[whole("ä\r"), whole("\u{2028}ß")]);
        check(b"a\xffb\n\xc3", 9, &[whole("a\u{fffd}b"), whole("\u{fffd}")]);
    }

    #[test]
    fn a_line_that_is_too_long_is_counted_and_the_next_one_is_whole() {
        let overlong = |bytes, it: &str| Line::Overlong { bytes, beginning: it.to_owned() };
        check(b"abc\nabcd\nab\n", 3, &[whole("abc"), overlong(4, "abc"), whole("ab")]);
        check(b"abcdefgh", 3, &[overlong(8, "abc")]);
    }
}
