//! Skips parsing: the chunks of an answer differ in little but their text. The text of a chunk that begins
//! and ends like the one before is cut out without reading the rest.

#[derive(Debug, Default)]
pub(super) struct Template {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Template {
    /// Remembers a chunk that has only `text`, which must be a part of it.
    pub(super) fn learn(&mut self, chunk: &str, text: &str) {
        let at = (text.as_ptr() as usize).wrapping_sub(chunk.as_ptr() as usize);
        self.before.clear();
        self.after.clear();
        // A text with escapes is not a part of the chunk.
        if let Some((before, rest)) = chunk.as_bytes().split_at_checked(at)
            && let Some(after) = rest.strip_prefix(text.as_bytes())
        {
            self.before.extend_from_slice(before);
            self.after.extend_from_slice(after);
        }
    }

    /// Returns the text of a chunk that equals the remembered one but for the text.
    pub(super) fn text_of<'a>(&self, chunk: &'a [u8]) -> Option<&'a str> {
        if self.before.is_empty() {
            return None;
        }
        let text = chunk.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        // Within a string these end it, are escapes, or are not allowed.
        let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..=31);
        if !text.iter().all(is_plain) {
            return None;
        }
        std::str::from_utf8(text).ok()
    }
}
