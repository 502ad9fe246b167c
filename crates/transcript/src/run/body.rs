//! Bodies: texts of any size, of which the beginning and end are kept and the middle is only counted.
//!
//! Arguments, output and results are bodies. The kept ends depend on the whole text alone, never on the
//! deltas in which it arrived.

/// Number of bytes that a transcript keeps of each end of a body, unless it keeps bodies whole.
pub const BODY_EDGE: usize = 8 * 1024;

/// A text of any size, of which only the beginning and end are kept.
#[derive(Debug, Clone)]
pub struct Body {
    /// Number of bytes that are kept of the beginning and of the end of the text.
    edge: usize,
    head: String,
    /// Text after the kept beginning, possibly without its first part; contains at least its last
    /// `edge` bytes.
    rest: String,
    bytes: u64,
    newlines: u64,
    /// Whether the text ends with a line that has no newline.
    ends_open: bool,
}

impl Default for Body {
    fn default() -> Self {
        Self::keeping(BODY_EDGE)
    }
}

impl Body {
    /// Creates an empty body that keeps `edge` bytes of each end; `usize::MAX` keeps everything.
    pub fn keeping(edge: usize) -> Self {
        Self {
            edge,
            head: String::new(),
            rest: String::new(),
            bytes: 0,
            newlines: 0,
            ends_open: false,
        }
    }

    /// Appends text to the body.
    pub fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let to_head = self.room_in_head(text);
        self.head.push_str(&text[..to_head]);
        self.rest.push_str(&text[to_head..]);
        self.drop_middle();
        self.bytes += text.len() as u64;
        self.newlines += count_newlines(text);
        self.ends_open = !text.ends_with('\n');
    }

    /// Replaces everything from the byte `offset` on with `text`. The dropped middle cannot be cut
    /// exactly: if `offset` lies in it, the kept end starts again with `text`.
    pub fn replace_from(&mut self, offset: u64, text: &str) {
        if offset < self.bytes {
            self.cut_to(offset);
        }
        self.push(text);
    }

    /// Replaces the whole text of the body.
    pub fn set(&mut self, text: &str) {
        *self = Self::keeping(self.edge);
        self.push(text);
    }

    /// Returns the size of the whole text in bytes, including the part that is not kept.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of lines of the whole text; a last line without a newline counts.
    pub fn lines(&self) -> u64 {
        self.newlines + u64::from(self.ends_open)
    }

    /// Returns whether the whole text of the body is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the kept beginning of the text.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// Returns the kept end of the text; it never overlaps with the kept beginning.
    pub fn tail(&self) -> &str {
        let start = self.rest.len().saturating_sub(self.edge);
        &self.rest[ceil_boundary(&self.rest, start)..]
    }

    /// Returns the whole text; `None` if its middle is not kept.
    pub fn whole(&self) -> Option<String> {
        let kept = self.head.len() + self.tail().len();
        (kept as u64 == self.bytes).then(|| format!("{}{}", self.head, self.tail()))
    }

    /// Returns the whole text, or its kept beginning and end around an ellipsis if the middle is
    /// not kept.
    pub fn both_ends(&self) -> String {
        self.whole().unwrap_or_else(|| format!("{}\n…\n{}", self.head(), self.tail()))
    }

    /// Returns at most [`BODY_EDGE`] bytes of each end of the text, with the number of omitted
    /// bytes between them.
    pub fn excerpt(&self) -> String {
        let mut edges = Self::default();
        edges.push(&self.both_ends());
        match edges.omitted() {
            0 => edges.both_ends(),
            omitted => format!("{}\n[{omitted} bytes left out]\n{}", edges.head(), edges.tail()),
        }
    }

    /// Returns the number of bytes in the middle of the text that are not kept.
    pub fn omitted(&self) -> u64 {
        self.bytes - (self.head.len() + self.tail().len()) as u64
    }

    /// Returns how many bytes of the appended `text` still belong to the kept beginning; none once
    /// anything follows the beginning.
    fn room_in_head(&self, text: &str) -> usize {
        if !self.rest.is_empty() || self.bytes > self.head.len() as u64 {
            return 0;
        }
        let room = self.edge.saturating_sub(self.head.len());
        floor_boundary(text, room.min(text.len()))
    }

    /// Drops the middle of the text once it is as long as the kept end, so that the cost is
    /// amortised.
    fn drop_middle(&mut self) {
        if self.rest.len() > self.edge.saturating_mul(2) {
            let start = ceil_boundary(&self.rest, self.rest.len() - self.edge);
            self.rest.drain(..start);
        }
    }

    /// Cuts the text at the byte `offset`. Uses only the kept beginning and end, not other text
    /// that is still in memory, because the result must not depend on the deltas in which the text
    /// arrived.
    fn cut_to(&mut self, offset: u64) {
        self.rest = self.tail().to_owned();
        let tail_start = self.bytes - self.rest.len() as u64;
        if offset <= self.head.len() as u64 {
            self.head.truncate(floor_boundary(&self.head, offset as usize));
            self.rest.clear();
            self.bytes = self.head.len() as u64;
            self.newlines = count_newlines(&self.head);
        } else if offset >= tail_start {
            let end = floor_boundary(&self.rest, (offset - tail_start) as usize);
            self.newlines -= count_newlines(&self.rest[end..]);
            self.rest.truncate(end);
            self.bytes = tail_start + end as u64;
        } else {
            self.newlines = count_newlines(&self.head);
            self.rest.clear();
            self.bytes = offset;
        }
        let last = if self.rest.is_empty() { &self.head } else { &self.rest };
        self.ends_open = self.bytes > 0 && !last.ends_with('\n');
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        (self.bytes, self.lines()) == (other.bytes, other.lines())
            && self.head() == other.head()
            && self.tail() == other.tail()
    }
}

fn count_newlines(text: &str) -> u64 {
    text.bytes().filter(|&b| b == b'\n').count() as u64
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}
