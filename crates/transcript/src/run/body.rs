//! A text that may be of any size: its head and tail are kept, the middle only counted.
//!
//! Arguments, output and results are bodies. What a body keeps is a function of the whole text
//! alone, never of the pieces it came in.

/// How much of a body's head, and of its tail, a transcript keeps.
pub const BODY_EDGE: usize = 8 * 1024;

#[derive(Debug, Clone)]
pub struct Body {
    /// How many bytes of head and of tail are kept.
    edge: usize,
    head: String,
    /// What follows the head, from some point on; holds at least the last `edge` bytes of it.
    rest: String,
    bytes: u64,
    newlines: u64,
    ends_open: bool,
}

impl Default for Body {
    fn default() -> Self {
        Self::keeping(BODY_EDGE)
    }
}

impl Body {
    /// A body that keeps `edge` bytes of head and of tail; `usize::MAX` keeps everything.
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

    pub fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let to_head = self.room_in_head(text);
        self.head.push_str(&text[..to_head]);
        self.rest.push_str(&text[to_head..]);
        self.forget_middle();
        self.bytes += text.len() as u64;
        self.newlines += count_newlines(text);
        self.ends_open = !text.ends_with('\n');
    }

    /// Puts `text` at `offset` bytes, dropping all that was there and after it. What lies in the
    /// forgotten middle cannot be cut exactly: there the tail restarts with `text`.
    pub fn replace_from(&mut self, offset: u64, text: &str) {
        if offset < self.bytes {
            self.cut_to(offset);
        }
        self.push(text);
    }

    pub fn set(&mut self, text: &str) {
        *self = Self::keeping(self.edge);
        self.push(text);
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Lines as a reader counts them: a last line without its newline is one.
    pub fn lines(&self) -> u64 {
        self.newlines + u64::from(self.ends_open)
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub fn head(&self) -> &str {
        &self.head
    }

    pub fn tail(&self) -> &str {
        let start = self.rest.len().saturating_sub(self.edge);
        &self.rest[ceil_boundary(&self.rest, start)..]
    }

    /// The whole text, unless it was too long to keep.
    pub fn whole(&self) -> Option<String> {
        let kept = self.head.len() + self.tail().len();
        (kept as u64 == self.bytes).then(|| format!("{}{}", self.head, self.tail()))
    }

    /// Returns the text, or head and tail if the middle is not kept.
    pub fn both_ends(&self) -> String {
        self.whole().unwrap_or_else(|| format!("{}\n…\n{}", self.head(), self.tail()))
    }

    /// Returns at most [`BODY_EDGE`] bytes of head and of tail, with the number of bytes between them.
    pub fn excerpt(&self) -> String {
        let mut edges = Self::default();
        edges.push(&self.both_ends());
        match edges.omitted() {
            0 => edges.both_ends(),
            omitted => format!("{}\n[{omitted} bytes left out]\n{}", edges.head(), edges.tail()),
        }
    }

    /// Bytes between head and tail.
    pub fn omitted(&self) -> u64 {
        self.bytes - (self.head.len() + self.tail().len()) as u64
    }

    /// How many bytes of `text` still belong to the head. None do once anything follows the head.
    fn room_in_head(&self, text: &str) -> usize {
        if !self.rest.is_empty() || self.bytes > self.head.len() as u64 {
            return 0;
        }
        let room = self.edge.saturating_sub(self.head.len());
        floor_boundary(text, room.min(text.len()))
    }

    /// Amortised: the middle is dropped only when it has grown as long as what is kept.
    fn forget_middle(&mut self) {
        if self.rest.len() > self.edge.saturating_mul(2) {
            let start = ceil_boundary(&self.rest, self.rest.len() - self.edge);
            self.rest.drain(..start);
        }
    }

    /// Only head and tail count here, not what else happens to be in memory: the outcome must not
    /// depend on the pieces that the text came in.
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
