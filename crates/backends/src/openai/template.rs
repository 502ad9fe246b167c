//! Skips parsing of similar chunks: the chunks of an answer usually differ only in their text. If a chunk
//! begins and ends like the one before, its text is extracted without parsing the rest.

#[derive(Debug, Default)]
pub(super) struct Template {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Template {
    /// Remembers a chunk whose only content is `text`, as the template for the chunks that follow.
    pub(super) fn learn(&mut self, chunk: &str, text: &str) {
        let at = (text.as_ptr() as usize).wrapping_sub(chunk.as_ptr() as usize);
        self.before.clear();
        self.after.clear();
        // A text with escapes is not a slice of the chunk, and is skipped.
        if let Some((before, rest)) = chunk.as_bytes().split_at_checked(at)
            && let Some(after) = rest.strip_prefix(text.as_bytes())
        {
            self.before.extend_from_slice(before);
            self.after.extend_from_slice(after);
        }
    }

    /// Returns the text of a chunk that differs from the remembered chunk only in its text. `None`
    /// for any other chunk.
    pub(super) fn text_of<'a>(&self, chunk: &'a [u8]) -> Option<&'a str> {
        if self.before.is_empty() {
            return None;
        }
        let text = chunk.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        // These bytes end a JSON string, begin an escape, or are not allowed.
        let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..=31);
        if !text.iter().all(is_plain) {
            return None;
        }
        std::str::from_utf8(text).ok()
    }
}
